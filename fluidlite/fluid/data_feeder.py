"""`fluid.data_feeder`: the public name of `reader.feeder`, and checks for layers of one's own."""

from collections.abc import Collection
from typing import Any

from ..base.dtypes import to_numpy
from ..framework import Variable
from ..framework.mode import in_dygraph_mode
from ..reader.feeder import BatchedTensorProvider, DataFeeder, DataToLoDTensorConverter

__all__ = [
    "BatchedTensorProvider",
    "DataFeeder",
    "DataToLoDTensorConverter",
    "check_dtype",
    "check_type",
    "check_variable_and_dtype",
    "convert_dtype",
]


def convert_dtype(dtype: Any) -> str:
    """The name, such as 'float32', of a VarType, a NumPy type or a name (`fluid.data_feeder.convert_dtype`).

    Raises ValueError for anything else, as Fluid does.
    """
    try:
        return to_numpy(dtype).name
    except TypeError as error:
        raise ValueError(str(error)) from None


def check_type(
    input: Any,
    input_name: str,
    expected_type: type | tuple[type, ...],
    op_name: str,
    extra_message: str = "",
) -> None:
    """Raise TypeError unless argument `input_name` of layer `op_name` is of one of the types expected.

    Nothing is checked in dygraph mode. Follows `fluid.data_feeder.check_type`.
    """
    if not in_dygraph_mode() and not isinstance(input, expected_type):
        raise TypeError(
            f"The type of '{input_name}' in {op_name} must be {expected_type}, but received {type(input)}. "
            f"{extra_message}"
        )


def check_dtype(
    input_dtype: Any,
    input_name: str,
    expected_dtype: Collection[str],
    op_name: str,
    extra_message: str = "",
) -> None:
    """Raise TypeError unless the data type of argument `input_name` of layer `op_name` is among those expected, which
    are names; ValueError for what is no data type.

    Nothing is checked in dygraph mode. Follows `fluid.data_feeder.check_dtype`.
    """
    if in_dygraph_mode():
        return
    name = convert_dtype(input_dtype)
    if name not in expected_dtype:
        raise TypeError(
            f"The data type of '{input_name}' in {op_name} must be {expected_dtype}, but received {name}. "
            f"{extra_message}"
        )


def check_variable_and_dtype(
    input: Any,
    input_name: str,
    expected_dtype: Collection[str],
    op_name: str,
    extra_message: str = "",
) -> None:
    """Raise TypeError unless argument `input_name` of layer `op_name` is a Variable of one of the data types expected.

    Nothing is checked in dygraph mode. Follows `fluid.data_feeder.check_variable_and_dtype`.
    """
    check_type(input, input_name, Variable, op_name, extra_message)
    check_dtype(input.dtype, input_name, expected_dtype, op_name, extra_message)
