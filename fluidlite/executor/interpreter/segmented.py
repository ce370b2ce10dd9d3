"""`SegmentedExecutor`: partitions the blocks of a program into segments, which are plans, and fallback operators.

Operators with sub-blocks or data-dependent sizes that no plan can have are fallback operators; the operators between
two of them are a segment. Segments are compiled when a run first reaches them, with all sizes known, and cached by
position for later steps with other sizes.

    block:     mul  elementwise_add | sequence_expand | sequence_conv ... | while     | ... adam
    segments:  a plan                 fallback          a plan              fallback    a plan
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...framework import Block, Operator
from ...ops.tensor.gather import parts
from ..compile import compile_for_cpu
from ..control_flow.blocks import needs_lowering, results
from ..cpu.plan import Plan
from ..failures import GuardFailure, Unsupported
from ..feeding import Feed
from ..ir.inference import is_non_tensor
from ..ir.request import Request
from ..scope import Scope
from .frame import Frame
from .interpreter import Interpreter
from .segments import BlockSegments, FallbackOp, ProgramSegments, Segment, feed_from, frame_inputs

MAX_REPLANS = 4
"""The limit of compilations for one run of a segment with wrong guesses of data-dependent sizes."""


class SegmentedExecutor(Interpreter):
    """One run of a program in segments; see the module's text."""

    def __init__(self, blocks: ProgramSegments, scope: Scope, feed: Feed) -> None:
        self._blocks = blocks
        super().__init__(blocks.program, scope, feed, check_finite=blocks.check_finite)

    def run(self, part: ProgramSegments | None = None) -> None:
        self._blocks = part or self._blocks
        with np.errstate(all="ignore"):  # infinities and NaNs are results like any other
            self.run_block(self.program.global_block(), self.frame)

    def run_block(self, block: Block, frame: Frame) -> None:
        segments = self._blocks.of(block)
        at, end = 0, len(segments.ops)
        while at < end:
            at = self._run_segment(segments, at, frame)

    def _run_segment(self, segments: BlockSegments, at: int, frame: Frame) -> int:
        """Run the segment or fallback operator at a position of a block; returns the next position."""
        try:
            return self._run_planned(segments, at, frame)
        except GuardFailure as missed:
            segment = FallbackOp(at, segments.ops[at], str(missed))
            segments.made[at] = [segment]
            segment.run(self, frame)
            return segment.end

    def _run_planned(self, segments: BlockSegments, at: int, frame: Frame) -> int:
        made = segments.made.get(at, ())
        for number, segment in enumerate(made):
            if self._fits(segments, at, segment, frame):
                if number:
                    segments.made[at] = [segment, *(other for other in made if other is not segment)]
                return segment.end
        for attempt in range(MAX_REPLANS + 1):
            if attempt == MAX_REPLANS:
                # Operators with data-dependent sizes are fallback operators from now on.
                segments.sizes[at] = None
            segment = self._make(segments, at, frame)
            if self._fits(segments, at, segment, frame):
                if isinstance(segment, Segment) or segment.reason:
                    segments.keep(at, segment)
                return segment.end
        raise AssertionError("internal error: a new plan rejected its own inputs")

    def _fits(self, segments: BlockSegments, at: int, segment: Segment | FallbackOp, frame: Frame) -> bool:
        """Run a segment; False, with the sizes recorded, if it is for other inputs or data-dependent sizes."""
        try:
            return segment.run(self, frame)
        except GuardFailure as missed:
            if missed.sizes is None:
                raise
            segments.sizes[at] = {**(segments.sizes[at] or {}), **missed.sizes}
            return False

    def _make(self, segments: BlockSegments, at: int, frame: Frame) -> Segment | FallbackOp:
        """Compile the segment at a position for the values in the frame; a fallback operator if that fails."""
        end = segments.end_of_segment(at)
        reason = "it has sub-blocks or non-tensor variables"
        while end > at:
            try:
                return self._planned(segments, at, end, frame)
            except Unsupported as refusal:
                reason = str(refusal)
                end = _position(segments, refusal.op, at, end)
                if end == at and refusal.retryable:
                    return FallbackOp(at, segments.ops[at])
        if needs_lowering(segments.ops[at]):
            reason += "; it has sub-blocks or non-tensor variables"
        return FallbackOp(at, segments.ops[at], reason)

    def _planned(self, segments: BlockSegments, begin: int, end: int, frame: Frame) -> Segment:
        accesses = segments.accesses(begin, end)
        ops = accesses.ops
        for load in accesses.loads:
            if not load.run(frame):
                op = next(op for op in segments.ops[begin:end] if load.out in op.writes())
                raise Unsupported(f"array {load.array!r} has no element to read", op, retryable=True)
        inputs = frame_inputs(ops, frame)
        feed = feed_from(inputs, frame)
        written = {name for op in ops for name in results(op)}
        stored = [name for store in accesses.stores for name in (store.value, store.at)]
        outputs = [
            name
            for name in dict.fromkeys([*segments.needed(begin, end), *stored])
            if name in written
            and not segments.block._is_persistable(name)
            and not is_non_tensor(ops[0], name)
        ]

        def plan_of(outputs: Sequence[str]) -> Plan:
            return compile_for_cpu(
                Request(
                    self.program, self.scope, feed, outputs, ops, segments.block,
                    check_finite=self.check_finite, sizes=segments.sizes[begin],
                )
            )  # fmt: skip

        plan = plan_of(outputs)
        if sparse := plan.meta.sparse.keys() & outputs:
            outputs = [part for name in outputs for part in (parts(name) if name in sparse else (name,))]
            plan = plan_of(outputs)
        return Segment(end, plan, inputs, outputs, accesses)


def _position(segments: BlockSegments, op: Operator | None, begin: int, end: int) -> int:
    """The position of the operator that cannot be planned; the renamed copy `op` shares its attributes.

    By default the first operator that is lowered to others, which may be the cause, or `begin`.
    """
    places = range(begin, end)
    found = (at for at in places if op is not None and segments.ops[at].attrs is op.attrs)
    return next(found, next((at for at in places if needs_lowering(segments.ops[at])), begin))
