"""Branches and loops in plans: the operators of a block stand in line with the others, behind a jump past them.

    conditional_block(c) -> y         begin_branch(c)     past the block unless c
      fc(x) -> h                      fc(x) -> h@VB2      what the block declares has names of its own
      assign(h) -> y                  assign(h@VB2) -> y@VB2
                                      merge(y@VB2) -> y   what others read, in one place whether the block runs or not
                                      end_branch

A variable that held something before is copied to that place in front (`hold`). A loop ends with a jump back to the one
past it (`loop`, `loop_end`): what it replaces is in the same place when each turn begins. The gradient of a branch
stands behind a jump by the same condition: what the condition was (`@RAN`) takes the place of the environments that are
kept of blocks that run through Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from weakref import WeakKeyDictionary

from ...base.dtypes import VarType
from ...framework import Block, Operator, Program
from ...framework.gradients.blocks import kept_names
from ...ops.registry import EMPTY, VERSION, grad_name
from .marks import AGAIN, BEGIN, CHOOSE, END, FULL, HOLD, LOOP, MARKS, MERGE
from .shapes import CannotPlan, in_place_of, renamed, takes_no_part, works_alone

RAN = "@RAN"
"""Stands behind the name of the environments that a branch keeps: whether it has run."""


_CONDITIONS = {"conditional_block": "Cond", "conditional_block_grad": "Cond", "while": "Condition"}
"""The operators that run a block which may stand in line, and the slot of their condition."""
_OfBlocks = dict[int, dict[str, None]]
"""Names, by the number of the block, which several operators may run."""


def in_line(op: Operator) -> bool:
    """Whether an operator is a branch or a loop, or belongs to a branch, and may be in a plan, as far as can be said
    without knowing what varies.
    """
    if op.type == "select_input":
        return True
    if op.type == "select_output":
        return _for_branches_only(op)
    if op.type not in _CONDITIONS or len(op.inputs.get(_CONDITIONS[op.type], ())) != 1:
        return False
    if op.type == "while":
        if kept_names(op) is not None:
            return False
    elif not op.attr("is_scalar_condition"):
        return False
    return _block_in_line(op)


def by_size(op: Operator) -> bool:
    """Whether an operator is a branch, or the gradient of one, that runs if nothing that it reads is empty, and may be
    in a plan: sizes decide while that is made.
    """
    branch = op.type in ("conditional_block", "conditional_block_grad")
    return branch and not op.attr("is_scalar_condition") and _block_in_line(op)


def _block_in_line(op: Operator) -> bool:
    if op.type == "conditional_block_grad" and not _gradient_in_line(op):
        return False
    block = op.attrs["sub_block"]
    # Each operator would put a shared block in its place, and those in it the ones that they share.
    if block.idx in _shared(block.program):
        return False
    if any(works_alone(each) and not takes_no_part(each) and not in_line(each) for each in block.ops):
        return False
    persistable = any(var.persistable for var in block.vars.values())
    return not persistable and {*op.writes()}.issuperset(written_outside(op))


def _shared(program: Program) -> frozenset[int]:
    """The numbers of the blocks that several operators run."""
    version, found = _shared_blocks.get(program, (None, frozenset()))
    if version != program._version:
        runs = Counter(inner.idx for block in program.blocks for op in block.ops for inner in op.sub_blocks())
        found = frozenset(number for number, count in runs.items() if count > 1)
        _shared_blocks[program] = program._version, found
    return found


_shared_blocks: WeakKeyDictionary[Program, tuple[int, frozenset[int]]] = WeakKeyDictionary()


def in_pieces(op: Operator) -> bool:
    """Whether a branch may be in the plan of a part of a block.

    Not if it has a gradient: that may be in another part, and finds then that the branch has kept no environments.
    """
    return in_line(op) and op.type != "conditional_block_grad" and kept_names(op) is None


def _gradient_in_line(op: Operator) -> bool:
    block = op.attrs["sub_block"]
    if _forward(op) is None:
        return False
    for name, out in _gradients(op):
        var = op.block._find_var_recursive(name)
        if var is None or any(
            each.type != VarType.LOD_TENSOR for each in (var, op.block._var_recursive(out))
        ):
            return False
        if (
            name in op.inputs.get("Out", ())
            and grad_name(name) in block.vars
            and _arriving(op).get(name, EMPTY) != EMPTY
        ):
            return False
    return True


def _for_branches_only(op: Operator) -> bool:
    """Whether only gradients of branches read what a `select_output` makes: then the others may get it as well."""
    outs = {*op.outputs["Out"]}
    for other in op.block.ops:
        if other is not op and not outs.isdisjoint(other.writes()):
            return False
        if other.type != "conditional_block_grad" and not outs.isdisjoint(other.reads()):
            return False
    return all(name in op.block.vars for name in outs)


def written_outside(op: Operator, known: _OfBlocks | None = None) -> list[str]:
    """The variables outside of its block that a branch may write and that do not last; `known`: of blocks."""
    block: Block = op.attrs["sub_block"]
    known = {} if known is None else known
    found = known.get(block.idx)
    if found is None:
        found = known[block.idx] = {}
        for inner in block.ops:
            names = written_outside(inner, known) if inner.type in _CONDITIONS else inner.writes()
            for name in names:
                if name != EMPTY and name not in block.vars and not block._is_persistable(name):
                    found[name] = None
    if op.type == "conditional_block_grad":
        inside = {grad_name(name) for name, _ in _gradients(op)}
        found = {name: None for name in found if name not in inside}
        found.update(dict.fromkeys(out for _, out in _gradients(op)))
    return list(found)


def results(op: Operator) -> list[str]:
    """What an operator of a plan may make, but for persistable variables and the environments of blocks."""
    return written_outside(op) if op.type in _CONDITIONS else [*op.writes()]


def read_before(op: Operator) -> list[str]:
    """What an operator needs of what was before: what it writes perhaps stays as it was."""
    return written_outside(op) if op.type in _CONDITIONS else []


def reads(op: Operator, known: _OfBlocks | None = None) -> list[str]:
    """What an operator of a plan reads of what is around it; `known`: what operators of blocks read."""
    if op.type not in _CONDITIONS:
        return [*op.reads()]
    block = op.attrs["sub_block"]
    known = {} if known is None else known
    found = known.get(block.idx)
    if found is None:
        every = (name for inner in block.ops for name in reads(inner, known) if name not in block.vars)
        found = known[block.idx] = dict.fromkeys(every)
    if op.type != "conditional_block_grad":
        return [*op.inputs[_CONDITIONS[op.type]], *found]
    arriving = [name for name in _arriving(op).values() if name != EMPTY]
    return [*(name for name, _ in _gradients(op)), *arriving, *found]


def _arriving(op: Operator) -> dict[str, str]:
    outs = op.inputs.get("Out", ())
    return dict(zip(outs, op.inputs.get("Out@GRAD", (EMPTY,) * len(outs)), strict=True))


def _gradients(op: Operator) -> list[tuple[str, str]]:
    """Each of Input with its gradient, as far as there is one."""
    pairs = zip(op.inputs.get("Input", ()), op.outputs.get("Input@GRAD", ()), strict=True)
    return [(n, out) for n, out in pairs if out != EMPTY and op.block._find_var_recursive(out) is not None]


def _forward(op: Operator) -> Operator | None:
    """The branch of which `op` is the gradient; None if there are several by that name."""
    program: Program = op.block.program
    every = (other for block in program.blocks for other in block.ops if other.type == "conditional_block")
    found = [other for other in every if other.outputs.get("Scope") == op.inputs["Scope"]]
    return found[0] if len(found) == 1 else None


def own_names(block: Block) -> dict[str, str]:
    """What the variables of a branch's block are called in line."""
    return {name: f"{name}{VERSION}B{block.idx}" for name in block.vars}


def _names_within(block: Block) -> Callable[[str], bool]:
    """What says whether a name in line is that of something that nobody outside of the block knows."""
    numbers = {each.idx for each in block.within()}

    def known(name: str) -> bool:
        for mark in ("B", "S"):
            head, found, number = name.removesuffix(RAN).rpartition(VERSION + mark)
            if found and number.isdigit():
                return int(number) in numbers and (mark == "B" or int(number) != block.idx)
        return False

    return known


class InLine:
    """Operators with the blocks of branches in their places.

    `given`: the variables that have a value before; `empty`: the branches that nothing goes through, by the addresses
    of their attributes.
    `unset`: what holds nothing as long as no branch has run that makes it, and the operator that may.
    """

    def __init__(self, given: Collection[str], empty: Collection[int] = ()) -> None:
        self.unset: dict[str, Operator] = {}
        self._known = set(given)
        self._empty = empty

    def of(self, ops: Iterable[Operator], names: Mapping[str, str] | None = None) -> Iterator[Operator]:
        """The operators, by the `names` that variables have here."""
        names = names or {}
        for op in ops:
            if takes_no_part(op):
                continue
            if by_size(op):
                yield from [*self._by_size(op, names)]
            elif not in_line(op):
                made = renamed(op, names)
                if op.definition not in MARKS:
                    for name in made.reads():
                        if name in self.unset:
                            raise CannotPlan(
                                f"variable {name!r} has no value where a branch is not taken",
                                self.unset[name],
                            )
                    self._set(made.writes())
                yield made
            elif op.type == "select_input":
                made = renamed(op, names)
                for name in made.inputs["X"]:
                    if name not in self._known and name not in self.unset:
                        raise CannotPlan(f"variable {name!r} has no value where a branch is not taken", op)
                yield in_place_of(op, CHOOSE, made.inputs, made.outputs, {})
                self._set(made.writes())
            elif op.type == "select_output":
                made = renamed(op, names)
                for name in made.outputs["Out"]:
                    yield in_place_of(op, HOLD, {"X": made.inputs["X"]}, {"Out": [name]}, {})
                self._set(made.writes())
            else:
                in_place = self._gradient if op.type == "conditional_block_grad" else self._block
                try:
                    yield from [*in_place(op, names)]
                except CannotPlan as refusal:
                    raise CannotPlan(str(refusal), op) from None

    def _set(self, names: Iterable[str]) -> None:
        self._known.update(names)
        for name in names:
            self.unset.pop(name, None)

    def _block(self, op: Operator, names: Mapping[str, str]) -> Iterator[Operator]:
        block = op.attrs["sub_block"]
        (condition,) = (names.get(name, name) for name in op.inputs[_CONDITIONS[op.type]])
        if kept_names(op) is not None:
            (scope,) = op.outputs["Scope"]
            ran = names.get(scope, scope) + RAN
            yield in_place_of(op, HOLD, {"X": [condition]}, {"Out": [ran]}, {})
            self._set([ran])
            condition = ran
        body = self._body(block, {**names, **own_names(block)}, op.type == "while")
        yield from self._jump(op, condition, body)

    def _by_size(self, op: Operator, names: Mapping[str, str]) -> Iterator[Operator]:
        """A branch that runs if nothing that it reads is empty."""
        if op.type == "conditional_block_grad":
            yield from self._gradient(op, names)
            return
        empty = id(op.attrs) in self._empty
        block, reads = op.attrs["sub_block"], [names.get(name, name) for name in op.inputs["Input"]]
        known = [name for name in reads if name in self._known or block._is_persistable(name)]
        yield in_place_of(op, FULL, {"X": known}, {}, {"empty": empty, "branch": id(op.attrs)})
        if not empty:
            yield from self.of(block.ops, {**names, **own_names(block)})
            return
        for name in op.outputs.get("Out", ()):
            var, out = op.block._find_var_recursive(name), names.get(name, name)
            if var is not None and out not in self._known and not var.persistable:
                shape = [0, *(max(size, 0) for size in var.shape[1:])]
                attrs = {"shape": shape, "dtype": int(var.dtype), "value": 0.0}
                yield in_place_of(op, "fill_constant", {}, {"Out": [out]}, attrs)
                self._set([out])

    def _body(self, block: Block, names: Mapping[str, str], again: bool = False) -> list[Operator]:
        """The operators of a block; what they set is set where it has run only. `again`: whether turns follow."""
        known, unset = set(self._known), dict(self.unset)
        made = [*self.of(block.ops, names)]
        within = _names_within(block)
        for name in self.unset.keys() - unset.keys():
            if again and not within(name):
                raise CannotPlan(f"perhaps nothing is left of {name!r} by the last turn")
        self._known, self.unset = known, unset
        return made

    def _jump(self, op: Operator, condition: str, body: list[Operator]) -> Iterator[Operator]:
        """Operators that run if a condition holds, and what they write in places where it is found in any case."""
        block = op.attrs["sub_block"]
        within = _names_within(block)
        outside = dict.fromkeys(
            name
            for each in body
            for name in each.writes()
            if name != EMPTY and not block._is_persistable(name) and not within(name)
        )
        beside = {name: f"{name}{VERSION}B{block.idx}" for name in outside}
        for name in outside:
            if name in self._known:
                yield in_place_of(op, HOLD, {"X": [name]}, {"Out": [name]}, {})
        again = op.type == "while"
        yield in_place_of(op, LOOP if again else BEGIN, {"Cond": [condition]}, {}, op.attrs)
        latest: dict[str, str] = {}
        for each in body:
            made = renamed(each, latest, outputs=False)
            latest.update((name, beside[name]) for name in each.writes() if name in beside)
            yield renamed(made, latest, inputs=False)
        for name, source in beside.items():
            yield in_place_of(op, MERGE, {"X": [source]}, {"Out": [name]}, {})
            if name not in self._known:
                self.unset.setdefault(name, op)
        yield in_place_of(op, AGAIN if again else END, {}, {})

    def _gradient(self, op: Operator, names: Mapping[str, str]) -> Iterator[Operator]:
        forward, block = _forward(op), op.attrs["sub_block"]
        assert forward is not None
        (scope,) = op.inputs["Scope"]
        scope = names.get(scope, scope)
        by_size = not op.attr("is_scalar_condition")
        if not names and not by_size and scope + RAN not in self._known:
            raise CannotPlan("the branch has run elsewhere, and its gradient is here", op)
        inner = {**names, **own_names(forward.attrs["sub_block"]), **own_names(block)}
        arriving, states = _arriving(op), {}
        pairs = [(name, names.get(name, name), names.get(out, out)) for name, out in _gradients(op)]
        for name, _, _ in pairs:
            source, inside = arriving.get(name, EMPTY), grad_name(name)
            inner[inside] = f"{inside}{VERSION}S{block.idx}"  # not what may be known by this name outside
            if source != EMPTY:
                states[inside], source = inner[inside], names.get(source, source)
                if source in self.unset or source not in self._known:
                    raise CannotPlan(f"perhaps nothing computes {source!r}", op)
                yield in_place_of(op, HOLD, {"X": [source]}, {"Out": [states[inside]]}, {})
                self._set([states[inside]])
        spared = {
            name: self.unset.pop(name) for name in [*self.unset] if self.unset[name].attrs is forward.attrs
        }
        body = self._body(block, inner)
        self.unset.update(spared)
        made = {name for each in body for name in each.writes()}
        ends = []
        for name, value, out in pairs:
            inside = grad_name(name)
            if inside in states:
                ends.append((states[inside], out))
                continue
            zeros = in_place_of(op, "fill_zeros_like", {"X": [value]}, {"Out": [out]}, {})
            yield zeros
            self._set([out])
            if inner[inside] in made:
                body.append(in_place_of(op, HOLD, {"X": [inner[inside]]}, {"Out": [out]}, {}))
        if not by_size:
            yield from self._jump(op, scope + RAN, body)
        elif id(forward.attrs) not in self._empty:
            yield from body
        for source, out in ends:
            yield in_place_of(op, HOLD, {"X": [source]}, {"Out": [out]}, {})
            self._set([out])
