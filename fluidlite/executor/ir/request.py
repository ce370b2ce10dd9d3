"""`Request`: what a plan is to be compiled for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...framework import Block, Operator, Program
from ..tensors.scope import Scope
from .scan_inputs import Feeds

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

    late: Mapping[str, str] = field(default_factory=dict)
    """Feeds of the second half of a split plan, each with the variable that it has shape and type of."""

    split: bool = False
    """Whether the backward operators run in a second half, on the `late` feeds."""

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
        return self.device is None and not self.split
