"""Kernels of reductions."""

from __future__ import annotations

from .kernel_def import NUMERIC, declare

_AXES = "pre n post"

declare("reduce_sum", "X Out", ints=_AXES, floats="scale?", types=NUMERIC)
for _name in ("max", "min", "prod"):
    declare(f"reduce_{_name}", "X Out", ints=_AXES, types=NUMERIC)
for _name in ("all", "any"):
    declare(f"reduce_{_name}", "X Out", ints=_AXES, types="u8")
for _name in ("max", "min"):
    declare(f"reduce_{_name}_grad", "X Out DOut DX", ints=_AXES, alias="DX=X")
    declare(f"arg_{_name}", "X Out", ints=_AXES, types=NUMERIC)
declare("squared_l2_norm", "X Out", ints="n")
declare("clip_by_norm", "X Out", ints="n", floats="max_norm", alias="Out=X")
