"""`Code`: calls of kernels, the representation between the phases for the CPU.

Rollback: a step that fails a guard must restore the persistable variables that it has written before (`changed_early`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from ..._ext import engine
from ..._ext.operands import Aliases
from ...base.dtypes import to_numpy
from ...base.sizes import current
from ...framework import Operator
from ...ops.op_view import RESOLVE_SIZES
from ...ops.registry import Call
from ..control_flow.array_ops import MAY_MISS, ON_ELEMENTS
from ..control_flow.rank_ops import RANK
from ..control_flow.scan import SCAN, SCAN_KERNEL
from ..failures import Unsupported
from ..ir import jumps
from ..ir.instructions import Instruction, outermost_loops
from ..ir.legalization import CHECK_FINITE
from ..ir.ranks import RankedFeeds
from ..ir.type_env import TypeEnv


class Buffers:
    """The memory of variables as NumPy arrays, for reference kernels; usable after `connect`."""

    def __init__(self, meta: TypeEnv, aliases: dict[str, str], inputs: frozenset[str], moves: bool) -> None:
        self._meta, self._aliases = meta, aliases
        self._inputs, self._moves = inputs, moves
        self._views: dict[str, np.ndarray] = {}
        self._generation = -1

    def connect(
        self, engine: engine.Engine, slots: dict[str, int], shapes: dict[str, tuple[int, ...]]
    ) -> None:
        """Use the memory of this engine. `shapes`: the shapes of the variables to view, in registers."""
        self._engine, self._slots, self._shapes = engine, slots, shapes

    def forget(self) -> None:
        """Drop the cached views: the memory of variables has moved."""
        self._views.clear()

    def __call__(self, name: str) -> np.ndarray:
        """The elements of a variable; valid for this step."""
        if self._generation != self._engine.generation or self._moves:
            self._views.clear()
            self._generation = self._engine.generation
        found = self._views.get(name)
        if found is None:
            root = self._aliases.get(name, name)
            dtype = to_numpy(self._meta.dtypes[name])
            found = self._engine.array(self._slots[root], dtype, self._shapes[name])
            if root not in self._inputs and not self._meta.size_labels:
                self._views[name] = found
        return found


@dataclass
class Code:
    """Instructions for the engine, and facts about their operands.

    `feeds`, `fetches`: the inputs and results of a step, arrays of offsets included.
    """

    meta: TypeEnv
    feeds: list[str]
    fetches: list[str]
    levels: list[tuple[str, ...]]
    """The offsets of each fetched variable; they follow the variables in `fetches`."""

    instructions: list[Instruction] = field(default_factory=list)

    late: list[str] = field(default_factory=list)
    """Feeds of the second half."""

    tensor_arrays: list[str] = field(default_factory=list)
    """Operands that are tensor arrays of the engine."""

    aliases: Aliases = field(default_factory=Aliases)
    """Alias -> variable that owns the memory."""

    root: Callable[[str], str] = field(init=False, repr=False)
    """The variable that owns the memory of another one."""

    external: set[str] = field(default_factory=set)
    """Temporaries in memory of the caller (of a body), and constants that the caller provides."""

    isolated: bool = False
    """Whether the caller binds results by name, so that each must own its memory."""

    cut: int = 0
    """The first instruction of the second half."""

    saved: Counter[str] = field(default_factory=Counter)
    """The number of instructions that each pass has saved, or replaced one by one."""

    notes: list[str] = field(default_factory=list)
    """Reports of passes, for descriptions."""

    def __post_init__(self) -> None:
        self.ranked = RankedFeeds(self.meta.ranking, self.feeds, self.meta)
        self.inputs = frozenset([*self.feeds, *self.late, *self.ranked.names])
        self.root = self.aliases.root
        self.buffers = Buffers(self.meta, self.aliases, self.inputs, self.isolated)

    def is_temporary(self, name: str) -> bool:
        """Whether a variable lives in the arena of the plan."""
        if name in self.inputs or name in self.meta.constants or name in self.external:
            return False
        return name not in self.tensor_arrays and not self.meta.is_persistable(name)

    def may_be_shared(self, name: str) -> bool:
        """True if passes may change the layout of a variable, or let it share memory."""
        return self.is_temporary(name) and not (self.isolated and name in self.fetches)

    def persistable_results(self, instructions: Iterable[Instruction]) -> set[str]:
        """The persistable variables that some of the instructions write."""
        written = {name for each in instructions for name in each.writes}
        return {*filter(self.meta.is_persistable, written)}


REPLAYABLE = (*jumps.JUMPS, jumps.ASSERT_DEFINED, jumps.NONEMPTY, RANK, CHECK_FINITE, *ON_ELEMENTS)
"""Side-effecting operators that are safe to replay."""

MOST_COPIED = 1 << 20
"""The limit for bytes of persistable variables that each step copies for a rollback."""


def changed_early(code: Code) -> list[str] | None:
    """The persistable variables that are written before the last guard; None if a step cannot be rolled back.

    Raises Unsupported where guards on data-dependent sizes follow an operator that cannot be rolled back.
    """
    instructions = code.instructions
    ops = [(at, op) for at, each in enumerate(instructions) for op in _all_of(each)]
    resolved = _calls(instructions, RESOLVE_SIZES)
    checked = (jumps.ASSERT_DEFINED, *(MAY_MISS if resolved else MAY_MISS[:2]))
    guards = [at for at, op in ops if op.definition in checked]
    # After data-dependent sizes, a scan checks when it runs whether it has bodies for all of its iterations.
    guards += [at for at in _calls(instructions, SCAN_KERNEL) if resolved and at > resolved[0]]
    last = max([*resolved[-1:], *guards], default=0)
    for begin, end in outermost_loops(instructions):  # a later iteration follows all of the loop
        if begin < last < end:
            last = end
    for at, op in ops:
        if at >= last:
            break
        effects = op.definition.effects
        if effects.random or (effects.host and op.definition not in REPLAYABLE):
            if not resolved:
                return None
            later = next((instructions[place].op for place in resolved if place > at), op)
            raise Unsupported(
                f"data-dependent sizes follow operator {op.type}, which cannot be rolled back", later
            )
    names = sorted(code.persistable_results(instructions[:last]))
    if sum(current(code.meta.bytes(name)) for name in names if name in code.meta.shapes) > MOST_COPIED:
        raise Unsupported(
            f"guards follow writes of more persistable variables ({names[0]!r}, ...) than a step copies for rollback"
        )
    return names


def is_call(instruction: Instruction, kernel: str) -> bool:
    """True for a call of this kernel."""
    return isinstance(instruction.action, Call) and instruction.action.kernel == kernel


def _calls(instructions: Iterable[Instruction], kernel: str) -> list[int]:
    """The calls of this kernel, by index."""
    return [at for at, each in enumerate(instructions) if is_call(each, kernel)]


def _all_of(instruction: Instruction) -> Iterable[Operator]:
    """The operators of an instruction, and those of the iterations that it runs."""
    op = instruction.ops[0]
    return (*instruction.ops, *op.attrs["spec"].ops) if op.definition is SCAN else instruction.ops
