"""Operators that meet the host: feed, fetch, readers, print, assert, delete_var, py_func."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from ...backend import to_host
from ...base.dtypes import to_vartype
from ..host_fallback import hosted
from ..infer import same_as
from ..registry import (
    GRAD,
    Attr,
    Effects,
    Levels,
    LodArray,
    OperatorError,
    OpSpec,
    OpView,
    Sequences,
    grad_name,
    register,
)
from ..sequence import Lods


def _assert(xp: Any, Cond: Any, message: str) -> tuple[()]:
    if not to_host(Cond).all():
        raise AssertionError(message)
    return ()


def _infer(op: OpView) -> None:
    """Infer nothing: there are no outputs."""


register(
    "assert",
    inputs=("Cond",),
    outputs=(),
    attrs={"message": ""},
    infer=_infer,
    kernel=_assert,
    effects=Effects(host=True),
    doc="Raises AssertionError with a message unless all elements of a condition are true.",
)

register(
    "delete_var",
    inputs=("X*",),
    outputs=(),
    infer=_infer,
    kernel=lambda xp, X: (),
    doc="Says that a run has no more use for X, whose memory goes when nothing reads it: plans know by themselves.",
)

# `feed` and `fetch`: where a saved inference program takes its inputs and gives its outputs; `get_places`.
#
# They mark the two ends of a program file and compute nothing: `Executor.run` feeds and fetches by name.

ENDS = frozenset({"feed", "fetch"})
"""The types of operators that mark the ends of a program."""

register(
    "feed",
    inputs=("X",),
    outputs=("Out",),
    attrs={"col": 0},
    effects=Effects(host=True),
    doc="Names `Out` as input number `col` of a saved inference program; X holds all inputs.",
)
register(
    "fetch",
    inputs=("X",),
    outputs=("Out",),
    attrs={"col": 0},
    effects=Effects(host=True),
    doc="Names `X` as output number `col` of a saved inference program; Out holds all outputs.",
)
register(
    "get_places",
    outputs=("Out",),
    attrs={"device_count": 0, "device_type": "AUTO"},
    effects=Effects(host=True),
    doc="Names a list of devices, which nothing uses any more.",
)

READING = frozenset({"create_py_reader", "create_double_buffer_reader", "read"})
"""The operators of this file."""

register(
    "create_py_reader",
    inputs=("blocking_queue",),
    outputs=("Out*",),
    attrs={
        "shape_concat": [],
        "ranks": [],
        "lod_levels": [],
        "dtypes": [],
        "need_check_feed": [],
        "use_data_config": True,
        "device_index": 0,
        "device_count": 1,
    },
    effects=Effects(host=True),
    doc="A reader of the batches in a loader's queue; the attributes say what a batch holds.",
)

register(
    "create_double_buffer_reader",
    inputs=("UnderlyingReader",),
    attrs={"place": ""},
    effects=Effects(host=True),
    doc="A reader that prepares the next batch of another one ahead of time.",
)


def _read_infer(op: OpView) -> None:
    """Infer nothing: the outputs keep their declared shapes, as batches come from a loader."""
    for index in range(op.count("Out")):
        op.set("Out", op.shape("Out", index), to_vartype(op.dtype("Out", index)), index)


register(
    "read",
    inputs=("Reader",),
    outputs=("Out*",),
    attrs={"throw_eof_exp": True, "infer_out": True, "drop_last": True},
    infer=_read_infer,
    effects=Effects(host=True),
    doc="The next batch of a reader; raises EOFException when there is none.",
)

_shown: Counter[tuple[int, bool]] = Counter()
"""Numbers of prints of each print operator (by its `serial`, forward or backward), for `first_n`."""


def _print(
    xp: Any,
    In: Any,
    first_n: int,
    message: str,
    summarize: int,
    is_forward: bool,
    serial: int,
    lod: Lods,
    **attrs: Any,
) -> Any:
    levels = (lod.get("In") or [None])[0] or []
    wanted = attrs["print_phase"].upper() in ("BOTH", "FORWARD" if is_forward else "BACKWARD")
    if wanted and (first_n <= 0 or _shown[serial, is_forward] < first_n):
        _shown[serial, is_forward] += 1
        lines = [f"{int(time.time())}\t{message}\tThe place is:{'CPUPlace' if xp is np else 'CUDAPlace'}"]
        if attrs["print_tensor_name"]:
            lines.append(f"Tensor[{attrs['tensor_name']}]")
        if attrs["print_tensor_shape"]:
            lines.append(f"\tshape: [{_listed(In.shape)}]")
        if attrs["print_tensor_type"]:
            lines.append(f"\tdtype: {In.dtype}")
        if attrs["print_tensor_lod"] and levels:
            lines.append("\tLoD: [" + "".join(f"[ {_listed(level)} ]" for level in levels) + "]")
        shown = In.ravel() if summarize < 0 else In.ravel()[:summarize]
        lines.append(f"\tdata: {_listed(shown.tolist())}")
        print("\n".join(lines), flush=True)
    return LodArray(In, levels)


def _listed(values: Any) -> str:
    return "".join(f"{value:g}," if isinstance(value, float) else f"{value}," for value in values)


def _rule(op: OpView) -> list[OpSpec]:
    gradient = grad_name(op.name("Out"))
    attrs = {**op.attrs, "is_forward": False, "tensor_name": gradient}
    return [OpSpec("print", {"In": [gradient]}, {"Out": [grad_name(op.name("In"))]}, attrs)]


register(
    "print",
    inputs=("In",),
    attrs={
        "first_n": -1,
        "message": "",
        "summarize": 20,
        "print_tensor_name": True,
        "print_tensor_type": True,
        "print_tensor_shape": True,
        "print_tensor_lod": True,
        "print_phase": "BOTH",
        "is_forward": True,
        "tensor_name": "",
        "serial": 0,
    },
    infer=same_as("In"),
    kernel=_print,
    grad=_rule,
    sequences=Sequences(takes_lod=True, levels=Levels("In")),
    effects=Effects(host=True),
    doc="Prints a tensor, its gradient or both, and passes it on; first_n limits how often.",
)

Function = Callable[[list[LodArray]], list[LodArray | None]]

_functions: list[Function] = []


def registered(function: Function) -> int:
    """Register `function` under a number for programs, for the life of the process, as programs may live as long."""
    _functions.append(function)
    return len(_functions) - 1


@hosted
def _py_func(xp: Any, X: list[Any], forward_callable_id: int, lod: Lods) -> Any:
    if not 0 <= forward_callable_id < len(_functions):
        raise OperatorError(
            f"operator py_func: there is no function {forward_callable_id}; a saved program does not hold functions, "
            "the script has to build it anew"
        )
    levels = [lod_of or () for lod_of in lod.get("X", [])]
    # Functions get copies, as in Fluid: other operators do not see their writes into inputs.
    given = [LodArray(xp.array(x), own) for x, own in zip(X, levels, strict=True)]
    made = _functions[forward_callable_id](given)
    return [one and LodArray(xp.asarray(one.array), one.lod) for one in made]


def _py_func_infer(op: OpView) -> None:
    """Give gradients the shape and type of their variables; other outputs keep those that the user declared."""
    for index, name in enumerate(op.outputs.get("Out", ())):
        base = name.split(GRAD)[0]
        if name and base != name and not op.exact and op.has_meta(base):
            op.set("Out", op.meta.shape(base), op.meta.dtype(base), index)


def _py_func_rule(op: OpView) -> list[OpSpec]:
    function = op.attr("backward_callable_id")
    if function < 0:
        return []
    skipped = set(op.attr("backward_skip_vars"))
    own, made = list(op.names("X")), list(op.names("Out"))
    takes = [name for name in (*own, *made) if name not in skipped]
    takes += [grad_name(name) for name in made]
    gives = [grad_name(name) for name in own]
    return [OpSpec("py_func", {"X": takes}, {"Out": gives}, {"forward_callable_id": function})]


register(
    "py_func",
    inputs=("X*?",),
    outputs=("Out*?",),
    attrs={
        "forward_callable_id": 0,
        "backward_callable_id": -1,
        "backward_skip_vars": Attr([], "STRINGS"),
    },
    infer=_py_func_infer,
    kernel=_py_func,
    grad=_py_func_rule,
    sequences=Sequences(takes_lod=True, source=None),
    effects=Effects(host=True, user_errors=True, external="calls Python functions"),
    doc="Calls a Python function with the inputs; what it returns are the outputs.",
)
