"""save, load, save_combine, load_combine: tensors in files while a program runs."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...backend import to_host
from ...base.dtypes import to_vartype
from ...base.storage import messages
from ...base.storage.files import atomic_writer
from ..registry import Attr, Effects, LodArray, OperatorError, OpView, Sequences, register
from ..sequence import Lods


def _write(
    op_type: str,
    path: str,
    overwrite: bool,
    narrow: bool,
    tensors: Iterable[tuple[Any, Sequence[Any] | None]],
) -> None:
    if not overwrite and os.path.exists(path):
        raise OperatorError(f"operator {op_type}: {path} exists, and overwrite is False")
    try:
        with atomic_writer(path) as file:
            for x, lod in tensors:
                array = to_host(x)
                messages.write(file, array.astype("float16") if narrow else array, lod or ())
    except OSError as error:
        raise OperatorError(f"operator {op_type}: {error.strerror or error}") from None


def _save(xp: Any, X: Any, file_path: str, overwrite: bool, save_as_fp16: bool, lod: Lods) -> Any:
    levels = (lod.get("X") or [None])[0]
    _write("save", file_path, overwrite, save_as_fp16, [(X, levels)])
    return None


def _save_combine(
    xp: Any, X: list[Any], file_path: str, overwrite: bool, save_as_fp16: bool, lod: Lods
) -> Any:
    levels = lod.get("X") or [()] * len(X)
    _write("save_combine", file_path, overwrite, save_as_fp16, zip(X, levels, strict=True))
    return None


def _tensors(xp: Any, op_type: str, path: str, narrow: bool) -> list[LodArray]:
    found: list[LodArray] = []
    try:
        with open(path, "rb") as file:
            reader = messages.Reader(file, path)
            while reader.left or not found:
                array, lod = reader.tensor(f"number {len(found)}")
                found.append(LodArray(xp.asarray(array.astype("float16") if narrow else array), lod))
    except FileNotFoundError:
        raise OperatorError(f"operator {op_type}: there is no file {path}") from None
    except OSError as error:
        raise OperatorError(f"operator {op_type}: cannot read {path}: {error.strerror or error}") from None
    return found


def _load(xp: Any, file_path: str, load_as_fp16: bool, shape: list[int], seek: int) -> LodArray:
    found = _tensors(xp, "load", file_path, load_as_fp16)
    if len(found) != 1:
        raise OperatorError(f"operator load: {file_path} must hold one tensor, it holds {len(found)}")
    if seek < 0:
        return found[0]
    flat, count = found[0].array.reshape(-1), math.prod(shape)
    if seek + count > flat.size:
        raise OperatorError(
            f"operator load: elements {seek} to {seek + count} were asked for, {file_path} has {flat.size}"
        )
    return LodArray(flat[seek : seek + count].reshape(shape), ())


def _load_combine(xp: Any, Out: list[Any], file_path: str, load_as_fp16: bool) -> list[LodArray]:
    found = _tensors(xp, "load_combine", file_path, load_as_fp16)
    if len(found) != len(Out):
        raise OperatorError(
            f"operator load_combine: {file_path} holds {len(found)} tensors, there are {len(Out)} variables for them"
        )
    return found


def _infer_nothing(op: OpView) -> None:
    if op.type == "save_combine" and op.attr("save_to_memory"):
        raise op.fail("save_to_memory is not there: tensors are saved to files")


def _infer_loaded(op: OpView) -> None:
    """Keep the shapes that the user declared; in a run the file says the rank, and sizes are open."""
    if op.building:
        return
    path, names = op.attr("file_path"), op.outputs["Out"]
    found = _tensors(np, op.type, path, op.attr("load_as_fp16"))
    for index, (one, _) in enumerate(zip(found, names, strict=False)):
        rank = len(op.attr("shape")) if op.type == "load" and op.attr("seek") >= 0 else one.array.ndim
        op.set("Out", (-1,) * rank, to_vartype(one.array.dtype), index)


_FILE = {"file_path": ""}

register(
    "save",
    ("X",),
    ("kLookupTablePath?",),
    {**_FILE, "overwrite": True, "save_as_fp16": False},
    infer=_infer_nothing,
    kernel=_save,
    sequences=Sequences(takes_lod=True),
    effects=Effects(host=True, external="writes files"),
    doc="Writes a tensor to a file, as fluid.io.save_vars does.",
)
register(
    "save_combine",
    ("X*",),
    ("Y?",),
    {**_FILE, "overwrite": True, "save_as_fp16": False, "save_to_memory": False},
    infer=_infer_nothing,
    kernel=_save_combine,
    sequences=Sequences(takes_lod=True),
    effects=Effects(host=True, external="writes files"),
    doc="Writes several tensors to one file, as fluid.io.save_vars(filename=...) does.",
)
register(
    "load",
    (),
    ("Out",),
    {**_FILE, "load_as_fp16": False, "shape": Attr([], "LONGS"), "seek": Attr(-1, "LONG")},
    infer=_infer_loaded,
    kernel=_load,
    sequences=Sequences(source=None),
    effects=Effects(host=True, external="reads files"),
    doc="The tensor of a file; with seek >= 0 as many of its elements as make `shape`.",
)
register(
    "load_combine",
    (),
    ("Out*",),
    {**_FILE, "load_as_fp16": False, "model_from_memory": False},
    infer=_infer_loaded,
    kernel=_load_combine,
    sequences=Sequences(source=None),
    effects=Effects(host=True, external="reads files", updates=("Out",)),
    doc="All tensors of a file, in their order.",
)
