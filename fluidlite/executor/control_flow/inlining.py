"""`BlockInliner`: inlines the blocks of branches and loops that `branching.py` admits; `inlining_gradients.py` adds
their gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ...base.dtypes import VarType
from ...framework import Block, Operator
from ...framework.gradients.blocks import kept_names
from ...framework.gradients.versions import changes_nothing
from ...ops.registry import EMPTY, VERSION, grad_name
from ..ir.errors import Unsupported
from ..ir.inference import in_place_of, is_noop, is_unplannable, renamed
from ..ir.jumps import (
    ASSERT_DEFINED,
    BACK_EDGE,
    BEGIN,
    COPY_IN,
    COPY_OUT,
    END,
    JUMPS,
    LOOP,
    NONEMPTY,
    SELECT,
    UNDEFINED,
)
from .array_ops import CLEAR, STASH_PUSH, TENSOR_ARRAY, lowered_array_op
from .branching import ON_ARRAYS, STEPS, TRIP_COUNT, is_inlinable, is_local_name, mangled_names, ranks
from .gradient_pairs import SCOPES, backward_of
from .residuals import residuals_of_block, residuals_of_branches

if TYPE_CHECKING:
    from .ragged_scan import RaggedScanLowering
    from .recurrent import RecurrentLowering


class BlockInliner(ABC):
    """Inlines the blocks of branches and loops into the operators around them.

    Args:
        defined: the variables that are defined before the first operator.
        arrays: whether tensor arrays are memory of the engine.
        steps: lowers `recurrent` operators; None leaves them as they are.
        loops: lowers loops over ranked sequences.

    `unset`: variables without a value unless a branch runs, with that branch; `touched`: the arrays met so far;
    `stashes`: the names of the stashes.
    """

    def __init__(
        self,
        defined: Collection[str],
        arrays: bool = False,
        steps: RecurrentLowering | None = None,
        loops: RaggedScanLowering | None = None,
    ) -> None:
        self.unset: dict[str, Operator] = {}
        self.touched: list[str] = []
        self.stashes: list[str] = []
        self._defined = set(defined)
        self._arrays = arrays
        self._steps = steps
        self._loops = loops
        self._array_aliases: dict[str, str] = {}  # gradient of an array -> the array of the same storage

    def of(self, ops: Iterable[Operator], names: Mapping[str, str] | None = None) -> Iterator[Operator]:
        """Yield the operators with their blocks inlined. `names`: variable -> its name after inlining."""
        names = names or {}
        for op in ops:
            if is_noop(op) or (is_unplannable(op) and changes_nothing(op)):
                continue
            if op.type in ON_ARRAYS and self._arrays:
                yield from self._checked(self._on_array(op, names))
            elif op.type in STEPS and self._steps is not None and is_inlinable(op):
                known = {name for name in op.reads() if names.get(name, name) in self._defined}
                for each in self._steps.of(op, known.__contains__):
                    yield from self._checked(renamed(each, names))
            elif op.type in STEPS or not is_inlinable(op, self._arrays):
                yield from self._checked(renamed(op, names))
            elif op.type == "select_input":
                made = renamed(op, names)
                for name in made.inputs["X"]:
                    if name not in self._defined and name not in self.unset:
                        raise Unsupported(f"variable {name!r} is undefined where a branch is not taken", op)
                yield in_place_of(op, SELECT, made.inputs, made.outputs, {})
                self._set(made.writes())
            elif op.type == "select_output":
                made = renamed(op, names)
                for name in made.outputs["Out"]:
                    yield self._copy_in(op, made.inputs["X"][0], name)
            else:
                try:
                    yield from [*_INLINE[op.type](self, op, names)]
                except Unsupported as refusal:
                    raise Unsupported(str(refusal), op) from None

    def with_prologue(self, ops: Sequence[Operator], arrays: Sequence[str]) -> list[Operator]:
        """The inlined operators behind one that empties the arrays, without the undefined flags that nothing checks."""
        checked = {op.inputs["X"][0].partition(UNDEFINED)[0] for op in ops if op.definition is ASSERT_DEFINED}
        ops = [
            op
            for op in ops
            if checked.issuperset(n.partition(UNDEFINED)[0] for n in op.writes() if UNDEFINED in n)
        ]
        if not arrays:
            return [*ops]
        return [in_place_of(ops[0], CLEAR, {}, {}, {"arrays": arrays}), *ops]

    def _checked(self, op: Operator) -> list[Operator]:
        checks = []
        for name in dict.fromkeys(op.reads()) if op.definition not in JUMPS else ():
            if name in self.unset:
                checks.append(in_place_of(op, ASSERT_DEFINED, {"X": [name + UNDEFINED]}, {}, {}))
                self._set([name])
        self.stashes += [
            n.removesuffix(TENSOR_ARRAY) for n in op.inputs.get("Invariant", ()) if n.endswith(TENSOR_ARRAY)
        ]
        self._set(op.writes())
        return [*checks, op]

    def _on_array(self, op: Operator, names: Mapping[str, str]) -> Operator:
        made = renamed(op, names)
        name = (op.outputs["Out"] if op.type == "write_to_array" else op.inputs["X"])[0]
        array = self._array(op, name, names)
        gradient = op.outputs.get(grad_name("X"))
        return lowered_array_op(made, array, self._array(op, gradient[0], names) if gradient else "")

    def _array(self, op: Operator, name: str, names: Mapping[str, str]) -> str:
        """The name of an array's storage."""
        found = names.get(name, name)
        found = self._array_aliases.get(found, found)
        if VERSION + "B" in found or op.block._is_persistable(name):
            raise Unsupported("an array is local to an iteration, or persistable", op)
        if found not in self.touched:
            self.touched.append(found)
        return found

    def _set(self, names: Iterable[str]) -> None:
        self._defined.update(names)
        for name in names:
            self.unset.pop(name, None)

    def _branch(self, op: Operator, names: Mapping[str, str]) -> Iterator[Operator]:
        block = op.attrs["sub_block"]
        if op.attr("is_scalar_condition"):
            (condition,) = (names.get(name, name) for name in op.inputs["Cond"])
        else:  # a side of an IfElse, which runs if it has rows
            inputs = [names.get(name, name) for name in op.inputs.get("Input", ())]
            yield in_place_of(op, NONEMPTY, {"X": [n for n in inputs if n in self._defined]}, {}, {})
            condition = f"{op.inputs['Cond'][0]}@SIDE{VERSION}B{block.idx}"
            yield self._constant(op, condition, 1, VarType.BOOL)
            self._set([condition])
        if kept_names(op) is not None:
            (scope,) = op.outputs["Scope"]
            ran = names.get(scope, scope) + TRIP_COUNT
            yield self._copy_in(op, condition, ran)
            condition = ran
        body = self._body(op, {**names, **mangled_names(block)})
        yield from self._jump(op, condition, body, is_local_name(block))

    def _loop(self, op: Operator, names: Mapping[str, str]) -> Iterator[Operator]:
        block = op.attrs["sub_block"]
        (condition,) = (names.get(name, name) for name in op.inputs["Condition"])
        own = {**names, **mangled_names(block)}
        is_local = is_local_name(block)
        kept = loop_residuals(op, names, self._arrays)
        ran = "" if kept is None else kept[0]
        if ran:
            yield self._integer(op, ran, 0)
        body = self._body(op, own, is_local)
        if kept is not None:
            body.append(incremented(op, ran, 1))
            for number in range(len(backward_of(op))):
                for name in (*kept[1], *self._scan_residuals(op, own)):
                    stash = self._stash(name, block, number)
                    body.append(in_place_of(op, STASH_PUSH, {"X": [name]}, {}, {"array": stash}))
        yield from self._jump(op, condition, body, is_local, True)

    def _scan_residuals(self, op: Operator, names: Mapping[str, str]) -> list[str]:
        """The residuals of scans in the block of a loop that are not variables of the block."""
        ops = op.attrs["sub_block"].ops
        found = [] if self._steps is None else self._steps.kept(ops)
        found += [] if self._loops is None else self._loops.kept(ops)
        return [name for name in dict.fromkeys(found) if name not in names]

    def _stash(self, name: str, block: Block, number: int) -> str:
        """The name of the stash of a variable of a loop; each gradient of the loop, by `number`, has its own."""
        array = f"{name}@STASH{block.idx}.{number}"
        if array not in self.stashes:
            self.stashes.append(array)
        return array

    def _copy_in(self, op: Operator, source: str, out: str) -> Operator:
        self._set([out])
        return in_place_of(op, COPY_IN, {"X": [source]}, {"Out": [out]}, {})

    def _integer(self, op: Operator, name: str, value: int) -> Operator:
        self._set([name])
        return self._constant(op, name, value)

    def _constant(self, op: Operator, name: str, value: int, dtype: VarType = VarType.INT64) -> Operator:
        attrs = {"shape": [1], "dtype": int(dtype), "value": float(value)}
        return in_place_of(op, "fill_constant", {}, {"Out": [name]}, attrs)

    def _inside(self, op: Operator) -> Iterable[Operator]:
        """The operators of a block, with its loops over ranked sequences lowered to scans."""
        ops: Iterable[Operator] = op.attrs["sub_block"].ops
        return self._loops.of(ops) if self._loops is not None and ranks(op) else ops

    def _body(
        self,
        op: Operator,
        names: Mapping[str, str],
        repeated: Callable[[str], bool] | None = None,
        defined: Sequence[str] = (),
    ) -> list[Operator]:
        """The operators of a block, whose results are defined only where it has run.

        Args:
            repeated: of a loop, a predicate of names: is this local to an iteration?
            defined: further variables that are defined when the block begins.
        """
        known, unset = set(self._defined), dict(self.unset)
        self._set(defined)
        made = [*self.of(self._inside(op), names)]
        for name in self.unset.keys() - unset.keys():
            if repeated is not None and not repeated(name):
                raise Unsupported(f"variable {name!r} may be undefined after the last iteration")
        self._defined, self.unset = known, unset
        return made

    def _jump(
        self,
        op: Operator,
        condition: str,
        body: list[Operator],
        is_local: Callable[[str], bool],
        repeated: bool = False,
    ) -> Iterator[Operator]:
        """Operators between jumps: they run if a condition holds, or as long as it holds if `repeated`.

        What they write outside of their block is copied to one place, whether they run or not.
        """
        block = op.attrs["sub_block"]
        outside = dict.fromkeys(
            name
            for each in body
            for name in each.writes()
            if name != EMPTY and not block._is_persistable(name) and not is_local(name)
        )
        for name in [name for name in outside if name not in self._defined]:
            flag = name if name.endswith(UNDEFINED) else name + UNDEFINED
            if flag not in outside:
                body.append(self._constant(op, flag, 0))
                outside[flag] = None
            if flag not in self._defined:
                yield self._integer(op, flag, 1)
        temporaries = {name: f"{name}{VERSION}B{block.idx}" for name in outside}
        for name in outside:
            if name in self._defined:
                yield in_place_of(op, COPY_IN, {"X": [name]}, {"Out": [name]}, {})
        yield in_place_of(op, LOOP if repeated else BEGIN, {"Cond": [condition]}, {}, op.attrs)
        latest: dict[str, str] = {}
        for each in body:
            made = renamed(each, latest, outputs=False)
            latest.update((name, temporaries[name]) for name in each.writes() if name in temporaries)
            yield renamed(made, latest, inputs=False)
        for name, source in temporaries.items():
            yield in_place_of(op, COPY_OUT, {"X": [source]}, {"Out": [name]}, {})
            if name not in self._defined:
                self.unset.setdefault(name, op)
        yield in_place_of(op, BACK_EDGE if repeated else END, {}, {})

    @abstractmethod
    def _gradient(self, op: Operator, names: Mapping[str, str]) -> Iterator[Operator]:
        """The gradient of a branch."""

    @abstractmethod
    def _loop_gradient(self, op: Operator, names: Mapping[str, str]) -> Iterator[Operator]:
        """A loop with the trip count of the forward loop, from its last iteration to the first."""


def loop_residuals(op: Operator, names: Mapping[str, str], arrays: bool) -> tuple[str, list[str]] | None:
    """The names of the trip count and of the residuals of an iteration of a loop; None if it has no gradient."""
    kept = kept_names(op)
    if kept is None:
        return None
    (scope,), block = op.outputs[SCOPES[op.type]], op.attrs["sub_block"]
    own = {**names, **mangled_names(block)}
    found = [own.get(name, name) for name in residuals_of_block(block, block.ops, kept)]
    return names.get(scope, scope) + TRIP_COUNT, [*found, *residuals_of_branches(block.ops, own, arrays)]


def incremented(op: Operator, name: str, step: int) -> Operator:
    return in_place_of(op, "increment", {"X": [name]}, {"Out": [name]}, {"step": float(step)})


_INLINE: dict[str, Callable[[BlockInliner, Operator, Mapping[str, str]], Iterator[Operator]]] = {
    "conditional_block": BlockInliner._branch,
    "conditional_block_grad": lambda line, op, names: line._gradient(op, names),
    "while": BlockInliner._loop,
    "while_grad": lambda line, op, names: line._loop_gradient(op, names),
}
