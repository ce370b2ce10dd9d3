"""`fluid.core.var_names`: names with a meaning of their own."""

from ...framework.names import EMPTY_VAR_NAME, TEMP_VAR_NAME


def empty() -> str:
    """The name of a variable that is not there."""
    return EMPTY_VAR_NAME


def temp() -> str:
    """A part of the names of temporaries."""
    return TEMP_VAR_NAME
