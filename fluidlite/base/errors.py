"""Exceptions that Fluid code catches by name, and those for what does not exist here."""


class EOFException(Exception):
    """A non-iterable reader has no more data in this epoch (`fluid.core.EOFException`)."""


class EnforceNotMet(Exception):
    """A program could not be run as asked (`fluid.core.EnforceNotMet`): not initialised, not fed, bad value."""


class NotSupportedError(AttributeError, NotImplementedError):
    """A name, operator or option that Fluid 1.8 has and fluidlite does not have yet."""


class FormatError(EnforceNotMet, ValueError):
    """A file, or bytes from one, is not what it should be: foreign, truncated or damaged."""
