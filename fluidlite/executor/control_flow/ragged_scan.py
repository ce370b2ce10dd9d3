"""Loops over sequences in plans: rank tables, arrays of steps, and loops that count through them, as `DynamicRNN` makes
them, stand in line with the others.

    lod_rank_table(x) -> table           rank(x)                            known when the offsets are fed
    lod_tensor_to_array(x) -> a          in_steps(x) -> a@VW                the rows of all steps, one behind the other
    write_to_array(h, 0) -> states
    while: read a, states                mul(a@VW, w) -> b@VW1              what needs no other turn: once, for all rows
           mul(a, w) -> b                turns(b@VW1, first h) -> new@VW1   plans of their own, one turn after the other
           ...
           write new -> states, out
    array_to_lod_tensor(out) -> y        sequences(new@VW1) -> y

An array is a name for the rows of all its elements here, or for one element at each index that is known beforehand. The
gradient reads what the turns have left under the names that it has in line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...framework import Block, Operator
from ...framework.gradients.blocks import kept_names
from ...ops.registry import EMPTY, grad_name
from ..ir.errors import Unsupported
from ..ir.inference import in_place_of, is_noop, is_unplannable
from ..ir.ranks import ranked
from .branching import everywhere, is_inlinable
from .counted_loops import Access, CountedLoop
from .rank_ops import ZEROS
from .ranked_arrays import ON_ARRAYS, Array, Number, RankedArrays
from .recurrent import RecurrentLowering
from .residuals import residuals_of_block
from .scan_lowering import ALIAS, Like, Packed, Same, ScanLowering, Value


class RaggedScanLowering(RankedArrays):
    """Operators with loops over ranked sequences in their places, and what they work on."""

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
            take = _TAKEN.get(op.type)
            if take is None or is_inlinable(op):
                if is_unplannable(op) and not (is_inlinable(op) or is_noop(op)):
                    # It may change what is known of arrays and counters.
                    raise Unsupported(f"operator {op.type} has sub-blocks or non-tensor variables", op)
                self._note(op)
                yield op
            else:
                self.any = True
                yield from take(self, op)

    def kept(self, ops: Iterable[Operator]) -> list[str]:
        """What the gradients of the loops among `ops` find, and of those in branches among them."""
        found: list[str] = []
        for op in ops:
            if op.type == "conditional_block":
                found += self.kept(op.attrs["sub_block"].ops)
            for scope in op.outputs.get("StepScopes", ()):
                if scope in self._loops:
                    found += [value.whole for value in self._loops[scope].values.values()]
        return found

    def _form(self, op: Operator, condition: str | None, forward: Block | None = None) -> CountedLoop:
        try:
            form = CountedLoop(op.attrs["sub_block"], condition, forward)
        except Unsupported as reason:
            raise Unsupported(str(reason), op) from None
        for each in form.ops:
            if any(map(op.block._is_persistable, each.writes())):
                raise Unsupported("it changes persistable variables", op)
        return form

    def _while(self, op: Operator) -> Iterator[Operator]:
        (condition,) = op.inputs["Condition"]
        form = self._form(op, condition)
        table, starts = self._begun(op, form)
        loop = ScanLowering(op, form.block, form.ops, table, False, self._inner)

        def at(access: Any) -> int:
            return starts[access.counter].value + int(access.offset)

        self._give(loop, form, at)
        self._shorten(loop, form, at)
        first, only = form.outer
        if only:
            raise Unsupported(f"what the last turn makes of {only[0]!r} is wanted", op)
        for name in first:
            loop.carry(name, name, name, "")
            loop.last[name] = ""
        saved, is_local = self._kept(loop, form)
        loop.run(
            [*(access.variable for access in form.writes), *is_local],
            loop.last,
            (),
            kept_names(op) is not None,
        )
        yield from loop.made
        for access in form.writes:
            array = self._arrays.setdefault(access.array, Array())
            array.whole, array.table, array.start = loop.packed(access.variable), table, at(access)
        for name in loop.last:
            yield in_place_of(op, ALIAS, {"X": [self._left(loop, name)]}, {"Out": [name]}, {})
        yield from self._counted(op, table, starts, 1)
        yield in_place_of(op, "fill_zeros_like", {"X": [condition]}, {"Out": [condition]}, {})
        for name in op.outputs.get("StepScopes", ()):
            loop.values = saved | {each: loop.values[loop.found(each)] for each in (*is_local, *loop.kept)}
            self._loops[name] = loop

    def _begun(self, op: Operator, form: CountedLoop) -> tuple[str, dict[str, Number]]:
        """The rank table of which a loop takes all steps, and what its counters are before."""
        begun = self._conditions.get(op.inputs["Condition"][0])
        if begun is None or form.limit is None:
            raise Unsupported("how many turns there are is found by the step", op)
        counter, number, table = begun
        compared, offset, limit = form.limit
        if compared != counter or self._numbers.get(counter) != number:
            raise Unsupported("its condition compares something else than before", op)
        if self._lengths.get(limit) != table or number.table or number.value + offset != 1:
            raise Unsupported("it does not take as many turns as sequences have steps", op)
        starts = {name: self._numbers[name] for name in form.counters if name in self._numbers}
        if len(starts) < len(form.counters) or any(start.table for start in starts.values()):
            raise Unsupported("where its counters begin is found by the step", op)
        return table, starts

    def _give(self, loop: ScanLowering, form: CountedLoop, at: Callable[[Any], int]) -> None:
        """Note what turns read of arrays: what is there before, or what the turn before has written."""
        written = {access.array: access for access in form.writes}
        for read in form.reads:
            array = self._arrays.get(read.array, Array())
            if read.array in written:
                if array.whole or list(array.elements) != [at(read)]:
                    raise Unsupported("the array of a state has other elements than the first one", loop.op)
                loop.carry(read.variable, written[read.array].variable, array.elements[at(read)], "")
            elif array.has_all(at(read), loop.table):
                loop.values[read.variable] = Packed(array.whole)
            else:
                raise Unsupported(
                    "an array that is read is not made of the sequences that are ranked", loop.op
                )
        for name, access in written.items():
            array = self._arrays.get(name, Array())
            if array.whole or len(array.elements) != at(access):
                raise Unsupported("an array that is written has other elements already", loop.op)

    def _kept(self, loop: ScanLowering, form: CountedLoop) -> tuple[dict[str, Value], list[str]]:
        """What the gradient reads of turns: what is known before these, and the names of what they make."""
        op, block = loop.op, form.block
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
                raise Unsupported(f"the gradient reads what the turn before has left as {name!r}", op)
            elif loop.rows[name] != "m":
                raise Unsupported(f"the shape of {name!r} is asked", op)
            else:
                saved[name] = Like(loop.firsts[name])
        return saved, [*whole, *residuals_of_block(block, form.ops, kept), *(form.inside if kept else ())]

    def _counted(
        self, op: Operator, table: str, starts: Mapping[str, Number], way: int
    ) -> Iterator[Operator]:
        """Have counters be what they are after the turns."""
        steps = ranked(table, "count")
        for name, start in starts.items():
            self._numbers[name] = Number(start.value, table if way > 0 else "")
            kind = "elementwise_add" if way > 0 else "elementwise_sub"
            yield in_place_of(op, kind, {"X": [name], "Y": [steps]}, {"Out": [name]}, {"axis": -1})

    def _shorten(self, loop: ScanLowering, form: CountedLoop, at: Callable[[Any], int]) -> None:
        """Note which variables are the first rows of others."""
        for each in form.shortened:
            if self._tables.get(each.table) != loop.table or at(each):
                raise Unsupported(
                    "it looks at the sequences of another rank table, or at other steps", loop.op
                )
            if each.source in loop.after:
                loop.shortened[each.variable] = each.source
                loop.rows[each.source] = "m"
            elif each.source in loop.values:
                loop.values[each.variable] = loop.values[each.source]
            else:
                loop.values[each.variable] = Same(each.source)

    def _while_grad(self, op: Operator) -> Iterator[Operator]:
        forward = self._loops.get(op.inputs["StepScopes"][0])
        if forward is None:
            raise Unsupported("its turns have been taken elsewhere", op)
        form, table = self._form(op, None, forward.block), forward.table
        starts = {name: self._numbers[name] for name in form.counters if name in self._numbers}
        left = len(starts) == len(form.counters) and all(start.table == table for start in starts.values())
        if form.step != -1 or not left:
            raise Unsupported("its counters are not what the turns have left", op)
        loop = ScanLowering(op, form.block, form.ops, table, True, self._inner)
        loop.values = dict(forward.values)

        def at(access: Any) -> int:
            return starts[access.counter].value + 1 + int(access.offset)

        arrays: dict[str, str] = {}  # gradients of arrays: in the block, outside
        states: dict[str, str] = {}
        used = {access.array for access in (*form.reads, *form.writes)}
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
        written = {access.array: access for access in form.writes}
        readers = {access.array: access for access in form.reads}
        for access in form.writes:
            array = self._arrays.get(arrays.get(access.array, ""), Array())
            if access.array not in arrays or not (array.empty or access.array in readers):
                raise Unsupported("the gradient of an array has other elements already", op)
        for read in form.reads:
            self._give_gradient(loop, read, written.get(read.array), arrays, at)
        self._shorten(loop, form, at)
        first, only = form.outer
        if only or not {*first} <= states.keys():
            raise Unsupported("its gradients do not go from turn to turn", op)
        for name in first:
            loop.carry(name, name, states[name], "")
            loop.last[name] = ""
        for access in form.writes:
            if access.array in readers:
                loop.last[access.variable] = ""
        made = {name for each in form.ops for name in each.writes()}
        sums = [inside for _, inside, _ in wanted if inside in made and inside not in (*arrays, *states)]
        whole = [access.variable for access in form.writes if access.array not in readers]
        loop.run(whole, loop.last, sums, False)
        yield from loop.made
        for read in form.reads:
            self._arrays[arrays[read.array]] = Array()
        for access in form.writes:
            array = self._arrays.setdefault(arrays[access.array], Array())
            if access.array in readers:
                array.elements[at(access)] = self._left(loop, access.variable)
            else:
                array.whole, array.table, array.start = loop.packed(access.variable), table, at(access)
        yield from self._counted(op, table, starts, -1)
        for name, inside, out in wanted:
            if inside in arrays:
                found = self._arrays.get(arrays[inside])
                if found is not None:
                    self._arrays[out] = found
                continue
            source = self._left(loop, inside) if inside in first else states.get(inside) or loop.total(inside)
            if source is None:
                yield in_place_of(op, "fill_zeros_like", {"X": [name]}, {"Out": [out]}, {})
            elif source != out:
                yield in_place_of(op, ALIAS, {"X": [source]}, {"Out": [out]}, {})

    def _left(self, loop: ScanLowering, name: str) -> str:
        out = loop.last[name]
        if not out:
            raise Unsupported(
                f"what the last turn leaves of {name!r} is the same in all, or wanted of all", loop.op
            )
        return out

    def _give_gradient(
        self,
        loop: ScanLowering,
        read: Access,
        write: Access | None,
        arrays: Mapping[str, str],
        at: Callable[[Any], int],
    ) -> None:
        """Note what a gradient's turns read of an array: what others have put there, or what the turn before has."""
        like = loop.values.get(read.like)
        array = self._arrays.get(arrays.get(read.array, ""), Array())
        if read.array not in arrays or like is None or isinstance(like, Same):
            raise Unsupported("the gradient of an array has no shape", loop.op)
        first = [ranked(loop.table, "first")]
        if write is None:
            if array.has_all(at(read), loop.table):
                loop.values[read.variable] = Packed(array.whole)
            elif array.empty and isinstance(like, Packed):
                whole = loop.label(read.variable)
                loop.values[read.variable] = Packed(loop.add("fill_zeros_like", {"X": [like.whole]}, whole))
            else:
                raise Unsupported("the gradient of an array has several sources", loop.op)
            return
        if not array.empty or not isinstance(like, Packed):
            raise Unsupported("the gradient of a state comes from elsewhere as well", loop.op)
        zeros = loop.add(ZEROS, {"X": [like.whole], "Index": first}, loop.label(f"{read.variable}.zeros"))
        loop.carry(read.variable, write.variable, zeros, "n")


def _needs_elements(block: Block, name: str) -> bool:
    """Whether an operator of a gradient's block reads more than the shape of a variable."""
    for op in block.ops:
        for slot, names in op.inputs.items():
            if (
                name in names
                and slot not in op.definition.shape_only
                and slot != op.definition.effects.consumes
            ):
                return True
    return False


_TAKEN: dict[str, Callable[[RaggedScanLowering, Operator], Iterator[Operator]]] = {
    **ON_ARRAYS,
    "while": RaggedScanLowering._while,
    "while_grad": RaggedScanLowering._while_grad,
}
"""By type of operator; the others stand as they are."""
