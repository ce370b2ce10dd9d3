"""`RaggedScanLowering`: loops over the steps of ranked sequences, as `DynamicRNN` makes them, as scans.

    lod_rank_table(x) -> table           rank(x)                            computed when the offsets are fed
    lod_tensor_to_array(x) -> a          in_steps(x) -> a@VW                the rows of all steps, step by step
    write_to_array(h, 0) -> states
    while: read a, states                mul(a@VW, w) -> b@VW1              loop fission: once, for all rows
           mul(a, w) -> b                scan(b@VW1, init h) -> new@VW1     the rest of the body, once per step
           ...
           write new -> states, out
    array_to_lod_tensor(out) -> y        sequences(new@VW1) -> y

An array becomes a variable with the rows of all its elements, or one variable for each constant index. The gradient
reads the residuals under their names after lowering.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...framework import Block, Operator
from ...framework.gradients.blocks import kept_names
from ...ops.registry import EMPTY, grad_name
from ..failures import Unsupported
from ..ir.inference import in_place_of, is_noop, is_unplannable
from ..ir.ranks import ranked
from .blocks import everywhere, is_inlinable, residuals_of_block
from .counted_loops import Access, CountedLoop
from .rank_ops import ZEROS
from .ranked_arrays import ARRAY_LOWERINGS, Array, Number, RankedArrays
from .recurrent import RecurrentLowering
from .scan_lowering import ALIAS, Prefix, Ragged, ScanLowering, ShapeOnly, Value


class RaggedScanLowering(RankedArrays):
    """Lowers loops over ranked sequences, and the operators on their rank tables and arrays."""

    def __init__(self, ops: Sequence[Operator], inner: RecurrentLowering) -> None:
        super().__init__()
        self.any = False
        self._inner = inner
        self._gradients = {
            op.inputs["StepScopes"][0]: op for op in everywhere(ops) if op.type == "while_grad"
        }
        self._loops: dict[str, ScanLowering] = {}

    def of(self, ops: Iterable[Operator]) -> Iterator[Operator]:
        for op in ops:
            lower = _LOWERINGS.get(op.type)
            if lower is None or is_inlinable(op):
                if is_unplannable(op) and not (is_inlinable(op) or is_noop(op)):
                    # It may change arrays and counters in ways that are not tracked.
                    raise Unsupported(f"operator {op.type} has sub-blocks or non-tensor variables", op)
                self._note(op)
                yield op
            else:
                self.any = True
                yield from lower(self, op)

    def kept(self, ops: Iterable[Operator]) -> list[str]:
        """The residuals of the loops among `ops`, and of those in branches among them."""
        found: list[str] = []
        for op in ops:
            if op.type == "conditional_block":
                found += self.kept(op.attrs["sub_block"].ops)
            for scope in op.outputs.get("StepScopes", ()):
                if scope in self._loops:
                    found += [value.whole for value in self._loops[scope].values.values()]
        return found

    def _counted_loop(self, op: Operator, condition: str | None, forward: Block | None = None) -> CountedLoop:
        try:
            counted = CountedLoop(op.attrs["sub_block"], condition, forward)
        except Unsupported as reason:
            raise Unsupported(str(reason), op) from None
        for each in counted.ops:
            if any(map(op.block._is_persistable, each.writes())):
                raise Unsupported("it changes persistable variables", op)
        return counted

    def _while(self, op: Operator) -> Iterator[Operator]:
        (condition,) = op.inputs["Condition"]
        counted = self._counted_loop(op, condition)
        table, starts = self._initial(op, counted)
        loop = ScanLowering(op, counted.block, counted.ops, table, False, self._inner)

        def at(access: Any) -> int:
            return starts[access.counter].value + int(access.offset)

        self._bind_reads(loop, counted, at)
        self._shorten(loop, counted, at)
        first, only = counted.outer
        if only:
            raise Unsupported(f"the value of {only[0]!r} from the last iteration is needed", op)
        for name in first:
            loop.carry(name, name, name, "")
            loop.last[name] = ""
        saved, is_local = self._residuals(loop, counted)
        loop.run(
            [*(access.variable for access in counted.writes), *is_local],
            loop.last,
            (),
            kept_names(op) is not None,
        )
        yield from loop.made
        for access in counted.writes:
            array = self._arrays.setdefault(access.array, Array())
            array.whole, array.table, array.start = loop.all_rows(access.variable), table, at(access)
        for name in loop.last:
            yield in_place_of(op, ALIAS, {"X": [self._final_value(loop, name)]}, {"Out": [name]}, {})
        yield from self._advance(op, table, starts, 1)
        yield in_place_of(op, "fill_zeros_like", {"X": [condition]}, {"Out": [condition]}, {})
        for name in op.outputs.get("StepScopes", ()):
            loop.values = saved | {each: loop.values[loop.ssa_name(each)] for each in (*is_local, *loop.kept)}
            self._loops[name] = loop

    def _initial(self, op: Operator, counted: CountedLoop) -> tuple[str, dict[str, Number]]:
        """The rank table whose steps a loop iterates over, and the initial values of its counters."""
        compared_before = self._conditions.get(op.inputs["Condition"][0])
        if compared_before is None or counted.limit is None:
            raise Unsupported("its trip count is data-dependent", op)
        counter, number, table = compared_before
        compared, offset, limit = counted.limit
        if compared != counter or self._numbers.get(counter) != number:
            raise Unsupported("its condition compares other values than the one before the loop", op)
        if self._lengths.get(limit) != table or number.table or number.value + offset != 1:
            raise Unsupported("its trip count is not the number of steps of the ranked sequences", op)
        starts = {name: self._numbers[name] for name in counted.counters if name in self._numbers}
        if len(starts) < len(counted.counters) or any(start.table for start in starts.values()):
            raise Unsupported("the initial value of a counter is data-dependent", op)
        return table, starts

    def _bind_reads(self, loop: ScanLowering, counted: CountedLoop, at: Callable[[Any], int]) -> None:
        """Bind what iterations read of arrays: earlier elements, or what the previous iteration has written."""
        written = {access.array: access for access in counted.writes}
        for read in counted.reads:
            array = self._arrays.get(read.array, Array())
            if read.array in written:
                if array.whole or list(array.elements) != [at(read)]:
                    raise Unsupported(
                        "the array of a loop-carried variable has more than its initial element", loop.op
                    )
                loop.carry(read.variable, written[read.array].variable, array.elements[at(read)], "")
            elif array.has_all(at(read), loop.table):
                loop.values[read.variable] = Ragged(array.whole)
            else:
                raise Unsupported(
                    "an array that is read does not hold the steps of the ranked sequences", loop.op
                )
        for name, access in written.items():
            array = self._arrays.get(name, Array())
            if array.whole or len(array.elements) != at(access):
                raise Unsupported("an array is not written from its end on", loop.op)

    def _residuals(self, loop: ScanLowering, counted: CountedLoop) -> tuple[dict[str, Value], list[str]]:
        """The residuals: those that exist before the scan, and the names of those that its body computes."""
        op, block = loop.op, counted.block
        kept = kept_names(op) or frozenset()
        gradient = self._gradients.get((op.outputs.get("StepScopes") or [""])[0])
        inner = gradient.attrs["sub_block"] if gradient is not None else None
        whole: list[str] = []
        saved: dict[str, Value] = {}
        for name in (*loop.values, *loop.after, *loop.shortened):
            if name not in kept or name not in block.vars:
                continue
            if name in loop.values:
                saved[name] = loop.values[name]
            elif name in loop.shortened:
                whole.append(name)
            elif inner is None or _needs_elements(inner, name):
                raise Unsupported(f"the gradient reads the loop-carried variable {name!r}", op)
            elif loop.rows[name] != "m":
                raise Unsupported(
                    f"the gradient reads the shape of {name!r}, which is not shortened",
                    op,
                )
            else:
                saved[name] = ShapeOnly(loop.firsts[name])
        return saved, [
            *whole,
            *residuals_of_block(block, counted.ops, kept),
            *(counted.branch_residuals if kept else ()),
        ]

    def _advance(
        self, op: Operator, table: str, starts: Mapping[str, Number], way: int
    ) -> Iterator[Operator]:
        """Set counters to their values after the loop; `way`: 1 forward, -1 for a gradient."""
        steps = ranked(table, "count")
        for name, start in starts.items():
            self._numbers[name] = Number(start.value, table if way > 0 else "")
            kind = "elementwise_add" if way > 0 else "elementwise_sub"
            yield in_place_of(op, kind, {"X": [name], "Y": [steps]}, {"Out": [name]}, {"axis": -1})

    def _shorten(self, loop: ScanLowering, counted: CountedLoop, at: Callable[[Any], int]) -> None:
        """Bind the variables that are the first rows of others."""
        for each in counted.shortened:
            if self._tables.get(each.table) != loop.table or at(each):
                raise Unsupported(
                    "it takes the first rows by another rank table, or for another step", loop.op
                )
            if each.source in loop.after:
                loop.shortened[each.variable] = each.source
                loop.rows[each.source] = "m"
            elif each.source in loop.values:
                loop.values[each.variable] = loop.values[each.source]
            else:
                loop.values[each.variable] = Prefix(each.source)

    def _while_grad(self, op: Operator) -> Iterator[Operator]:
        forward = self._loops.get(op.inputs["StepScopes"][0])
        if forward is None:
            raise Unsupported("its forward loop is not a scan of this plan", op)
        counted, table = self._counted_loop(op, None, forward.block), forward.table
        starts = {name: self._numbers[name] for name in counted.counters if name in self._numbers}
        left = len(starts) == len(counted.counters) and all(start.table == table for start in starts.values())
        if counted.step != -1 or not left:
            raise Unsupported("its counters do not begin where the forward loop ended", op)
        loop = ScanLowering(op, counted.block, counted.ops, table, True, self._inner)
        loop.values = dict(forward.values)

        def at(access: Any) -> int:
            return starts[access.counter].value + 1 + int(access.offset)

        arrays: dict[str, str] = {}  # gradients of arrays: in the block, outside
        states: dict[str, str] = {}
        used = {access.array for access in (*counted.reads, *counted.writes)}
        pairs = zip(op.attrs["original_output_grad"], op.inputs.get("Out@GRAD", []), strict=True)
        for inside, outside in pairs:
            (arrays if inside in used else states)[inside] = outside
        wanted = [
            (name, grad_name(name), out)
            for name, out in zip(op.inputs["X"], op.outputs["X@GRAD"], strict=True)
            if out != EMPTY
        ]
        for _, inside, out in wanted:
            if inside in used and inside not in arrays:
                arrays[inside] = out
        written = {access.array: access for access in counted.writes}
        readers = {access.array: access for access in counted.reads}
        for access in counted.writes:
            array = self._arrays.get(arrays.get(access.array, ""), Array())
            if access.array not in arrays or not (array.empty or access.array in readers):
                raise Unsupported("the gradient of an array has elements already", op)
        for read in counted.reads:
            self._bind_gradient(loop, read, written.get(read.array), arrays, at)
        self._shorten(loop, counted, at)
        first, only = counted.outer
        if only or not {*first} <= states.keys():
            raise Unsupported("its gradients of outer variables are not loop-carried", op)
        for name in first:
            loop.carry(name, name, states[name], "")
            loop.last[name] = ""
        for access in counted.writes:
            if access.array in readers:
                loop.last[access.variable] = ""
        made = {name for each in counted.ops for name in each.writes()}
        sums = [inside for _, inside, _ in wanted if inside in made and inside not in (*arrays, *states)]
        whole = [access.variable for access in counted.writes if access.array not in readers]
        loop.run(whole, loop.last, sums, False)
        yield from loop.made
        for read in counted.reads:
            self._arrays[arrays[read.array]] = Array()
        for access in counted.writes:
            array = self._arrays.setdefault(arrays[access.array], Array())
            if access.array in readers:
                array.elements[at(access)] = self._final_value(loop, access.variable)
            else:
                array.whole, array.table, array.start = loop.all_rows(access.variable), table, at(access)
        yield from self._advance(op, table, starts, -1)
        for name, inside, out in wanted:
            if inside in arrays:
                found = self._arrays.get(arrays[inside])
                if found is not None:
                    self._arrays[out] = found
                continue
            source = (
                self._final_value(loop, inside)
                if inside in first
                else states.get(inside) or loop.total(inside)
            )
            if source is None:
                yield in_place_of(op, "fill_zeros_like", {"X": [name]}, {"Out": [out]}, {})
            elif source != out:
                yield in_place_of(op, ALIAS, {"X": [source]}, {"Out": [out]}, {})

    def _final_value(self, loop: ScanLowering, name: str) -> str:
        out = loop.last[name]
        if not out:
            raise Unsupported(
                f"the final value of {name!r} is loop-invariant, or also needed of all iterations", loop.op
            )
        return out

    def _bind_gradient(
        self,
        loop: ScanLowering,
        read: Access,
        write: Access | None,
        arrays: Mapping[str, str],
        at: Callable[[Any], int],
    ) -> None:
        """Bind what iterations of a gradient read of an array: gradients from outside, or of the previous iteration."""
        like = loop.values.get(read.like)
        array = self._arrays.get(arrays.get(read.array, ""), Array())
        if read.array not in arrays or like is None or isinstance(like, Prefix):
            raise Unsupported("the shape of an array's gradient is not known", loop.op)
        first = [ranked(loop.table, "first")]
        if write is None:
            if array.has_all(at(read), loop.table):
                loop.values[read.variable] = Ragged(array.whole)
            elif array.empty and isinstance(like, Ragged):
                whole = loop.label(read.variable)
                loop.values[read.variable] = Ragged(loop.add("fill_zeros_like", {"X": [like.whole]}, whole))
            else:
                raise Unsupported("the gradient of an array has several sources", loop.op)
            return
        if not array.empty or not isinstance(like, Ragged):
            raise Unsupported("the gradient of a loop-carried variable also comes from outside", loop.op)
        zeros = loop.add(ZEROS, {"X": [like.whole], "Index": first}, loop.label(f"{read.variable}.zeros"))
        loop.carry(read.variable, write.variable, zeros, "n")


def _needs_elements(block: Block, name: str) -> bool:
    """True if an operator of a gradient's block reads more than the shape of a variable."""
    for op in block.ops:
        for slot, names in op.inputs.items():
            if (
                name in names
                and slot not in op.definition.shape_only
                and slot != op.definition.effects.consumes
            ):
                return True
    return False


_LOWERINGS: dict[str, Callable[[RaggedScanLowering, Operator], Iterator[Operator]]] = {
    **ARRAY_LOWERINGS,
    "while": RaggedScanLowering._while,
    "while_grad": RaggedScanLowering._while_grad,
}
"""The method that lowers an operator, by its type; other operators stay."""
