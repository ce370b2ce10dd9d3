"""An estimate of the memory that a program needs (`fluid.contrib.memory_usage_calc`)."""

from __future__ import annotations

import numbers

from ..base import missing
from ..base.dtypes import FLOATS, VarType, to_numpy
from ..base.sizes.shapes import product
from ..framework import Program

__all__ = ["memory_usage"]

_WHOLE = {VarType.INT16, VarType.INT32, VarType.INT64, VarType.BOOL, VarType.UINT8}
_LEAST, _MOST = 1.05, 1.1
_UNITS = ("B", "KB", "MB")

DEBUG = False

dtype_to_size = {kind: to_numpy(kind).itemsize for kind in sorted(FLOATS | _WHOLE)}
"""The bytes of one element of each type."""


def memory_usage(program: Program, batch_size: int) -> tuple[float, float, str]:
    """Bounds of the memory of the results of a program's operators (`fluid.contrib.memory_usage`).

    The sum of their declared sizes, plus 5 to 10 percent. A plan, in which results share memory, needs less: see
    `Executor.describe`.

    Args:
        program: a program; its first block counts.
        batch_size: the size of dimensions of -1; positive.

    Returns:
        The least, the most, and their unit: 'B', 'KB' or 'MB'.

    Raises:
        TypeError: `program` is no Program.
        ValueError: `batch_size` is not positive, or a result has several open dimensions.
    """
    if not isinstance(program, Program):
        raise TypeError(f"memory_usage takes a Program, got {type(program).__name__}")
    if not isinstance(batch_size, numbers.Real):
        raise TypeError(f"batch_size must be a number, got {batch_size!r}")
    if batch_size <= 0:
        raise ValueError(f"batch_size must be positive, got {batch_size}")
    block = program.global_block()
    names = dict.fromkeys(name for op in block.ops for name in op.output_arg_names)
    total = 0.0
    for name in names:
        var = block.vars.get(name)
        if var is None or var.type != VarType.LOD_TENSOR or var.dtype is None:
            continue
        if sum(size < 0 for size in var.shape) > 1:
            raise ValueError(f"{name} has several open dimensions, {list(var.shape)}: its size is unknown")
        elements = product([-size * batch_size if size < 0 else size for size in var.shape])
        total += elements * to_numpy(var.dtype).itemsize
    power = 0
    while total > 1024 and power < len(_UNITS) - 1:
        total, power = total / 1024, power + 1
    return total * _LEAST, total * _MOST, _UNITS[power]


__getattr__ = missing.reporter(__name__)
