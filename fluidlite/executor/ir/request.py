"""`Request`: what a plan is to be compiled for; `Feeds`: the inputs of an iteration of a scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ...base.sizes import SymInt, always_equal, current
from ...framework import Block, Operator, Program
from ..scope import Scope

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


@dataclass(frozen=True)
class Request:
    """The input of the compiler: operators, the arrays that they get, and the values that are wanted.

    A plan serves its request as long as the program does not change (`Program._version`).
    """

    program: Program
    scope: Scope
    """Where the persistable variables live."""

    feed: Mapping[str, Any]
    """Arrays like those to come, as `feeding.expanded` gives them: sequences and SelectedRows as several arrays."""

    fetches: Sequence[str]
    """The variables to return."""

    ops: Sequence[Operator] | None = None
    """The operators to run; by default those of the global block."""

    block: Block | None = None
    """Where their variables are declared; by default the global block."""

    device: CudaDevice | None = None
    """The GPU; None for the CPU."""

    fixed: bool = False
    """Whether all steps have just the shapes of `feed`, and their arrays are used where they are."""

    held: Sequence[str] = ()
    """Persistable variables in memory of the caller, who may replace it: those that the plan uses are fed as well."""

    early: int | None = None
    """The number of fetches of the first half of a plan in two halves; None for a plan that is not split."""

    late: Mapping[str, str] = field(default_factory=dict)
    """Feeds of the second half, the backward operators, each with the variable that it has shape and type of."""

    check_finite: bool = False
    """Whether results with NaN or infinities are refused, operator by operator (FLAGS_check_nan_inf)."""

    sizes: Mapping[str, int] | None = None
    """Data-dependent sizes by label, as earlier steps have observed them; None: the plan may not have any."""

    body: Feeds | None = None
    """The inputs of an iteration, if the operators are the body of a scan."""

    @property
    def declarations(self) -> Block:
        """The block that declares the variables."""
        return self.block or self.program.global_block()

    @property
    def has_jumps(self) -> bool:
        """Whether the target can jump past the blocks of branches and back in loops."""
        return self.device is None and self.early is None


FIRST = "@FIRST"
"""Suffix of the name that a prefix of offsets has in an iteration."""


class Feeds:
    """The inputs of a body: `arrays` of the right shapes, labels of their `sizes` ("" if fixed, "n+1" for one more than
    n), and the names of their offsets (`levels`).

    `moving`: the sizes that vary between iterations: "n", rows of a step; "m", rows of the step before; by the name of
    offsets, rows of a prefix of these sequences. `outer`: label of another size -> that size outside of the scan.
    """

    def __init__(self, moving: Mapping[str, int], rows: int | None = None) -> None:
        self.moving = moving
        self.rows = rows  # rows of each step, if the program declares them
        self.arrays: dict[str, np.ndarray] = {}
        self.sizes: dict[str, list[str]] = {}
        self.levels: dict[str, tuple[str, ...]] = {}
        self.outer: dict[str, Any] = {}

    def add(self, name: str, shape: Sequence[Any], dtype: VarType, levels: tuple[str, ...] = ()) -> None:
        """Add an input. `shape`: with labels for the sizes that vary."""
        labels, sizes = [], []
        for axis, size in enumerate(shape):
            if isinstance(size, str):
                labels.append("" if size == "n" and self.rows is not None else size)
                sizes.append(self.moving[size.removesuffix("+1")] + size.endswith("+1"))
                continue
            labels.append(self._label(size, f"{name}.{axis}") if isinstance(size, SymInt) else "")
            sizes.append(current(size))
        self.arrays[name] = np.empty(sizes, to_numpy(dtype))
        self.sizes[name] = labels
        if levels:
            self.levels[name] = levels

    def _label(self, size: SymInt, new: str) -> str:
        """The label of a size from outside: that of one that is always equal, or else `new`."""
        known = next((label for label, other in self.outer.items() if always_equal(other, size)), new)
        self.outer.setdefault(known, size)
        return known
