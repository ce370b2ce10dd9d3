"""The print operator: shows a tensor while the program runs and passes it on."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np

from ..infer import same_as
from ..registry import Effects, Levels, LodArray, OpDef, OpSpec, OpView, Sequences, grad_name, register
from ..sequence import Lods

_shown: Counter[tuple[int, bool]] = Counter()
"""Numbers of prints of each print operator (by its `serial`, forward or backward), for `first_n`."""


def _print(
    xp: Any,
    In: Any,
    first_n: int,
    message: str,
    summarize: int,
    print_tensor_name: bool,
    print_tensor_type: bool,
    print_tensor_shape: bool,
    print_tensor_lod: bool,
    print_phase: str,
    is_forward: bool,
    tensor_name: str,
    serial: int,
    lod: Lods,
) -> Any:
    levels = (lod.get("In") or [None])[0] or []
    wanted = print_phase.upper() in ("BOTH", "FORWARD" if is_forward else "BACKWARD")
    if wanted and (first_n <= 0 or _shown[serial, is_forward] < first_n):
        _shown[serial, is_forward] += 1
        lines = [f"{int(time.time())}\t{message}\tThe place is:{'CPUPlace' if xp is np else 'CUDAPlace'}"]
        if print_tensor_name:
            lines.append(f"Tensor[{tensor_name}]")
        if print_tensor_shape:
            lines.append(f"\tshape: [{_listed(In.shape)}]")
        if print_tensor_type:
            lines.append(f"\tdtype: {In.dtype}")
        if print_tensor_lod and levels:
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
    OpDef(
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
)
