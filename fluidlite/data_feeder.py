"""`fluid.data_feeder`: the public name of `reader.feeder`."""

from typing import Any

from .base import missing
from .base.dtypes import to_numpy
from .reader.feeder import DataFeeder

__all__ = ["DataFeeder", "convert_dtype"]


def convert_dtype(dtype: Any) -> str:
    """The name, such as 'float32', of a VarType, a NumPy type or a name (`fluid.data_feeder.convert_dtype`).

    Raises ValueError for anything else, as Fluid does.
    """
    try:
        return to_numpy(dtype).name
    except TypeError as error:
        raise ValueError(str(error)) from None


__getattr__ = missing.reporter(__name__)
