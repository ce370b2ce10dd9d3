"""The phases of the compiler for GPUs: lowering to launches of kernels, and the passes over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ...ops.registry import LEVEL
from ..failures import Unsupported
from ..frontend import Typed
from ..ir.instructions import Instruction
from ..ir.request import Request
from ..ir.type_env import TypeEnv
from ..passes.rewriting import Pass, apply_passes, in_halves
from . import fusion, multi_tensor
from .chains import join_chains
from .launch import of_operator


@dataclass
class Launches:
    """The instructions of a step on a GPU.

    `persistable`: the variables of the scope that they write; `cut`: the first instruction of the second half.
    """

    meta: TypeEnv
    fetches: list[str]
    instructions: list[Instruction]
    persistable: set[str]
    cut: int = 0


def lower(found: Typed, request: Request) -> Launches:
    """Lower operators with exact shapes to launches, and fuse these; raises Unsupported for sequences."""
    if any(LEVEL in name for name in request.feed):
        raise Unsupported("sequences are fed")
    if any(found.meta.lods.values()):
        raise Unsupported("it makes sequences, which plans for GPUs do not carry")
    made = [of_operator(op, view) for op, view in found.steps]
    persistable = {*filter(found.meta.is_persistable, {name for each in made for name in each.writes})}
    needed, run = [*found.fetches, *persistable], partial(apply_passes, passes=PASSES)
    made, cut = in_halves(made, needed, run) if request.early is not None else (run(made, needed), 0)
    return Launches(found.meta, found.fetches, made, persistable, cut)


PASSES: tuple[Pass, ...] = (
    *fusion.LOSSES,
    *multi_tensor.GRADIENTS,
    *fusion.LAYERS,
    *multi_tensor.UPDATES,
    join_chains,
)
