"""Layers that write tensors to files and read them while a program runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.errors import ArgumentTypeError
from ...framework import Variable
from ...layer_helper import LayerHelper, check_variable

__all__ = ["load", "load_combine", "save", "save_combine"]


def load(out: Variable, file_path: str, load_as_fp16: bool | None = None) -> None:
    """Read `out` from a file in each run (`fluid.layers.load`); it holds what `save` or `fluid.io.save_vars` wrote.

    `load_as_fp16`: as float16, whatever the file has. Running raises EnforceNotMet if there is no such file, or if it
    holds no single tensor.
    """
    check_variable(out, "out", "load")
    attrs: dict[str, Any] = {"file_path": file_path}
    if load_as_fp16 is not None:
        attrs["load_as_fp16"] = load_as_fp16
    LayerHelper("load").append_op(type="load", inputs={}, outputs={"Out": [out]}, attrs=attrs)


def save(x: Variable, file_path: str, overwrite: bool = True) -> None:
    """Write `x` to a file in each run (`fluid.layers.tensor.save`, which fails in Fluid 1.8 itself).

    Folders are made. With `overwrite=False` running raises EnforceNotMet if the file is there.
    """
    check_variable(x, "x", "save")
    attrs = {"file_path": file_path, "overwrite": overwrite}
    LayerHelper("save").append_op(type="save", inputs={"X": [x]}, outputs={}, attrs=attrs)


def save_combine(x: Sequence[Variable], file_path: str, overwrite: bool = True) -> None:
    """Write several tensors to one file in each run (`fluid.layers.tensor.save_combine`); see `save`."""
    attrs = {"file_path": file_path, "overwrite": overwrite}
    LayerHelper("save_combine").append_op(
        type="save_combine", inputs={"X": _variables(x, "save_combine")}, outputs={}, attrs=attrs
    )


def load_combine(out: Sequence[Variable], file_path: str) -> None:
    """Read several tensors from one file in each run, in their order (`fluid.layers.tensor.load_combine`)."""
    LayerHelper("load_combine").append_op(
        type="load_combine",
        inputs={},
        outputs={"Out": _variables(out, "load_combine")},
        attrs={"file_path": file_path},
    )


def _variables(given: Sequence[Variable], layer: str) -> list[Variable]:
    if not isinstance(given, (list, tuple)) or not all(isinstance(one, Variable) for one in given):
        raise ArgumentTypeError(f"{layer} takes a list of Variables, got {given!r}")
    return list(given)
