"""What is found out about operators before their plan is made: which matter, exact shapes, sequences, constants."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._ext.engine import InOrder, Ranks
from ...base.dtypes import VarType, to_numpy, to_vartype
from ...base.sizes import Size, Sizes, current, is_fixed
from ...framework import Block, Operator, sequences
from ...framework.gradients.blocks import names_read
from ...ops import kernel_types
from ...ops.program.feed_fetch import ENDS
from ...ops.registry import LEVEL, OpDef, OperatorError, OpView, Shape, check_result, find
from ...ops.tensor.selected_rows import ROWS, VALUES, parts
from .. import failures
from ..tensors.lod_tensor import LoDTensor
from ..tensors.scope import Scope
from .found import Sought, seek

FOLD_LIMIT = 256
"""Results with more elements are computed at run time even if they could be known before, except for those that the
operator lists itself."""


RANKED = ("order", "back", "items", "places", "ranks", "bounds", "first", "count")
"""What a plan knows of sequences that are ranked, as `engine.Ranks` has it."""

ORDERED = ("offsets", "rows", "back", "bounds")
"""What it knows of others in their order, as `engine.InOrder` has it."""


def ranked(table: str, what: str) -> str:
    """The name of an array that belongs to a rank table."""
    return f"{table}.{what}"


NO_TENSORS = frozenset({VarType.LOD_TENSOR_ARRAY, VarType.LOD_RANK_TABLE, VarType.STEP_SCOPES})


class CannotPlan(Exception):
    """An operator, or this way to run it, cannot be part of a plan; the message says why.

    `op`: the operator, where it is one that makes the difference; `passing`: whether a second run may do better.
    """

    def __init__(self, reason: str, op: Operator | None = None, passing: bool = False) -> None:
        super().__init__(reason)
        self.op = op
        self.passing = passing


class Other(NamedTuple):
    """Other sequences in the order of a rank table: the offsets that are fed, the table, and how many rows of them its
    steps have together.
    """

    level: str
    table: str
    total: int


class Named(NamedTuple):
    """What is said of feeds beforehand: what their sizes are called ("" for those that stay, "n+1" for one more than
    n), and whose offsets they have.
    """

    sizes: dict[str, Sequence[str]]
    levels: dict[str, tuple[str, ...]]


class InTurns(NamedTuple):
    """What the turns of a loop have made of a variable: its shape in a turn, with names for sizes, and its offsets."""

    shape: tuple[Any, ...]
    levels: tuple[str, ...]


class Unfound(CannotPlan):
    """Sizes that only the data know, in a plan that does not find any."""


class ExactMeta:
    """Answers an operator's questions with the exact shapes of one run, and values that are already known.

    `feeds`: arrays like those to come; offsets of sequences and the parts of SelectedRows under names of their own
    (`feeding.expanded`). With `varying` the dimensions that `block` leaves open are sizes that may change (`sizes`),
    otherwise everything is a number. `later`: what is fed when part has run; of each the variable that it is like.
    `values`: feeds of a few integers that sizes are made of. `finds`: whether sizes may be found while a plan runs, and
    what some of them have been found to be; None if not. `named`: what is said of feeds; by default all sizes are
    others. `make_body`: what makes plans for the turns of loops.
    """

    exact = True

    def __init__(
        self,
        block: Block,
        scope: Scope,
        feeds: dict[str, np.ndarray],
        varying: bool,
        later: Mapping[str, str] | None = None,
        values: Iterable[str] = (),
        finds: Mapping[str, int] | None = None,
        named: Named | None = None,
        make_body: Any = None,
    ) -> None:
        self.block = block
        self._finds = finds
        self.finds = finds is not None
        self.make_body = make_body
        self.ranks: dict[str, str] = {}  # rank table -> the offsets of the sequences that it is of
        self.in_order: dict[str, Other] = {}  # offsets of others in the order of a table -> these
        self.in_turns: dict[str, InTurns] = {}  # what loops have made -> what it is in a turn
        self.kinds: dict[
            str, tuple[Shape, VarType]
        ] = {}  # array in memory of the engine's -> an element of it
        self.matched: list[tuple[str, str]] = []  # fed offsets that are the same
        self.roots: dict[str, Any] = {}  # what sizes are called in `named` -> these
        self._feeds: Mapping[str, np.ndarray] = feeds
        self.finding: list[list[str]] = []  # what the sizes are called that are found, in order
        self.sought: dict[str, Sought] = {}  # result of an operator whose reference kernel finds sizes
        self.rooms: dict[str, Shape] = {}  # of what has sizes that are found: how large it may be
        self._later = later or {}
        self._scope: Scope | None = scope
        self.sizes = Sizes()
        self.shapes: dict[str, Shape] = {}
        self.lods: dict[str, tuple[str, ...]] = {}  # variable -> its arrays of offsets, outermost level first
        self.dtypes: dict[str, VarType] = {}
        self.known: dict[str, np.ndarray] = {}
        self.sized: dict[str, np.ndarray] = {}  # values that are sizes: arrays of `Size`s and integers
        self.persistable: dict[str, LoDTensor] = {}
        self.sparse: dict[str, int] = {}  # SelectedRows -> how many rows they hold
        self.part_of: dict[str, str] = {}  # array of SelectedRows -> these
        self.retyped: set[str] = set()  # what has another type of elements than the program says
        self.halves = False  # whether anything is of float16
        for name, array in feeds.items():
            if named is not None:
                self.shapes[name] = self._called(array.shape, named.sizes[name])
            else:
                self.shapes[name] = self._varying(name, array.shape) if varying else array.shape
            self._type(name, to_vartype(array.dtype))
        if named is not None:
            self.lods.update(named.levels)
        for name in feeds if named is None else ():
            if name.endswith(ROWS):
                self._fed_rows(name.removesuffix(ROWS))
            elif LEVEL in name:
                self._fed_level(name)
        self.valued = {name: self._counted(name, feeds[name]) for name in values}
        self.sized.update(self.valued)

    def _called(self, shape: Shape, names: Sequence[str]) -> Shape:
        """A shape with the sizes of these names."""
        found = []
        for name, size in zip(names, shape, strict=True):
            root = name.removesuffix("+1")
            more = int(root != name)
            if root and root not in self.roots:
                self.roots[root] = self.sizes.root(size - more, root)
            found.append(self.roots[root] + more if root else size)
        return tuple(found)

    def rank(self, level: str, table: str, rows: int) -> None:
        """Have the sequences with the fed offsets `level` over so many rows be ranked, when they are fed."""
        if level not in self._feeds:
            raise CannotPlan(f"the sequences {level!r}, which are ranked, are found by the step")
        offsets = self._feeds[level]
        lengths = offsets[1:] - offsets[:-1]
        if not lengths.any():
            raise CannotPlan("there is no step", passing=True)
        running = self.sizes.root(int(np.count_nonzero(lengths)), ranked(table, "first"))
        bounds = self.sizes.root(int(lengths.max()) + 1, ranked(table, "bounds"))
        every = self.shapes[level][0] - 1
        shapes: Sequence[Any] = (every, every, rows, rows, rows, bounds, running, 1)
        for what, size in zip(RANKED, shapes, strict=True):
            self.shapes[ranked(table, what)] = tuple([size])
            self._type(ranked(table, what), VarType.INT64)
        self.ranks[table] = level

    def order(self, level: str, table: str, rows: int) -> str:
        """Have the sequences with the fed offsets `level` over so many rows be put in the order of a rank table; what
        their offsets are called there."""
        other = ranked(table, level)
        offsets = ranked(other, "offsets")
        if offsets in self.in_order:
            return offsets
        if level not in self._feeds or self.shapes[level] != self.shapes[self.ranks[table]]:
            raise CannotPlan(
                f"the sequences {level!r} are found by the step, or are not as many as are ranked"
            )
        found = self.ordered(offsets, Other(level, table, 0))
        total = self.sizes.root(int(found.bounds[-1]), ranked(other, "total"))
        shapes = (self.shapes[level], (rows,), (rows,), self.shapes[ranked(table, "bounds")])
        for what, shape in zip(ORDERED, shapes, strict=True):
            self.shapes[ranked(other, what)] = shape
            self._type(ranked(other, what), VarType.INT64)
        self.in_order[offsets] = Other(level, table, total)  # type: ignore[arg-type]
        return offsets

    def ordered(self, offsets: str, other: Other | None = None) -> InOrder:
        """Sequences in the order of a rank table, as they are fed now."""
        level, table, _ = other or self.in_order[offsets]
        return InOrder(self._feeds[level], self.ranked_now(table))

    def ranked_now(self, table: str) -> Ranks:
        """A rank table, as it is now."""
        return Ranks(self._feeds[self.ranks[table]])

    def match(self, level: str, other: str) -> None:
        """Have the fed offsets `level` be the same as `other` in each step."""
        if level == other or (level, other) in self.matched:
            return
        if level not in self._feeds or other not in self._feeds:
            raise CannotPlan(f"the sequences {level!r} are found by the step")
        if not np.array_equal(self._feeds[level], self._feeds[other]):
            raise CannotPlan(f"the sequences {level!r} are others than {other!r}", passing=True)
        self.matched.append((level, other))

    def _counted(self, name: str, array: np.ndarray) -> np.ndarray:
        """The elements of a feed as sizes."""
        made = np.empty(array.size, object)
        made[:] = [self.sizes.root(n, f"{name}[{k}]") for k, n in enumerate(array.ravel().tolist())]
        return made.reshape(array.shape)

    def found(
        self, name: str, most: Sequence[int], least: Sequence[float], axes: Sequence[int] = ()
    ) -> list[int] | None:
        """See `OpView.found`."""
        if self._finds is None:
            return None
        labels = [f"{name}#{k}" for k in axes or range(len(most))]
        return self.find(labels, most, least or (2,) * len(most))

    def find(self, labels: list[str], guesses: Sequence[int], least: Sequence[float]) -> list[int]:
        """Sizes that an operator finds, by what they are called: as they have been found to be, or else as guessed."""
        self.finding.append(labels)
        found = self._finds or {}
        return [
            self.sizes.root(current(found.get(label, n)), label, low, len(self.finding))  # type: ignore[misc]
            for label, n, low in zip(labels, guesses, least, strict=True)
        ]

    def expected(self, label: str) -> int | None:
        """What a size has been found to be, by what it is called; None if it never was."""
        return (self._finds or {}).get(label)

    def seek(self, op: Operator, view: OpView) -> None:
        """Have the reference kernel of an operator find sizes; CannotPlan if no plan can have the operator."""
        reason = f"operator {op.type} makes {', '.join(op.output_arg_names)}, whose shape depends on data"
        if self._finds is None:
            raise Unfound(reason, op)
        sought = seek(view, self)
        if sought is None:
            raise CannotPlan(reason, op)
        self.sought.update(dict.fromkeys(op.output_arg_names, sought))

    def _varying(self, name: str, shape: Shape) -> Shape:
        """The shape of a feed, with sizes for the dimensions that may change."""
        if LEVEL in name:  # one offset more than there are sequences
            return (self.sizes.root(shape[0], f"{name}.0", least=3),)  # type: ignore[return-value]
        if name.endswith((ROWS, VALUES)):
            open_axes: set[int] = {0}
        else:
            var = self.block._find_var_recursive(name)
            declared = var._shape if var is not None and var._shape is not None else ()
            if len(declared) != len(shape):  # a step of something, under its name, or what nobody declares
                declared = (-1,)
            open_axes = {axis for axis, n in enumerate(declared) if n < 0}
        sizes: list[Any] = list(shape)
        for axis in open_axes.intersection(range(len(shape))):
            sizes[axis] = self.sizes.root(shape[axis], f"{name}.{axis}")
        return tuple(sizes)

    def _fed_level(self, name: str) -> None:
        """Note that `name`, which is fed, are offsets of another feed, whose levels come in order."""
        owner = name[: name.index(LEVEL)]
        self.lods[owner] = (*self.lods.get(owner, ()), name)

    def lod(self, name: str) -> tuple[str, ...]:
        return self.lods.get(name, ())

    def carry(self, name: str, levels: tuple[str, ...]) -> None:
        self.lods[name] = levels

    def _fed_rows(self, name: str) -> None:
        values = parts(name)[1]
        self.shapes[name] = (self.block._var_recursive(name).shape[0], *self.shapes[values][1:])
        self.dtypes[name] = self.dtypes[values]
        self.set_rows(name, self.shapes[values][0])

    def bytes(self, name: str) -> int:
        """How many bytes a variable has, at most where that is found."""
        return math.prod(self.rooms.get(name) or self.shapes[name]) * to_numpy(self.dtypes[name]).itemsize

    def has(self, name: str, op: Operator | None = None) -> bool:
        """Whether the variable, which `op` asks for, has a value by now; looks into the scope for persistable ones."""
        if name in self.shapes:
            return True
        like = self._later.get(name)
        if like is not None and self.has(like):
            self.shapes[name] = self.shapes[like]
            self._type(name, self.dtypes[like])
            return True
        found = self._scope.find_var(name) if self._scope is not None else None
        value = found.get() if found is not None else None
        if not isinstance(value, LoDTensor) or value.array is None:
            var = op.block._find_var_recursive(name) if op is not None else None
            return var is not None and var.type == VarType.RAW  # which nothing here reads
        if value.offsets:
            raise CannotPlan(f"variable {name!r} of the scope has sequences", op)
        if isinstance(value.array, np.ndarray):
            value.own()
        self.persistable[name] = value
        self.shapes[name] = value.array.shape
        self._type(name, to_vartype(value.array.dtype))
        return True

    def _type(self, name: str, dtype: VarType) -> None:
        self.dtypes[name] = dtype
        self.halves = self.halves or dtype == VarType.FP16
        if self.declared(name) not in (None, dtype):
            self.retyped.add(name)

    def declared(self, name: str) -> VarType | None:
        """The element type that the program was built with; None for what it has no variable for."""
        var = self.block._find_var_recursive(name)
        return None if var is None else var._dtype

    def is_persistable(self, name: str) -> bool:
        """Whether a variable outlives the step."""
        if name in self.persistable:
            return True
        var = self.block._find_var_recursive(name)
        return var is not None and var.persistable

    def forget_scope(self) -> None:
        """Look at the scope and at feeds no more: everything that will be asked for is known."""
        self._scope = self.make_body = None
        self._feeds = {}

    def shape(self, name: str) -> Shape:
        return self.shapes[name]

    def dtype(self, name: str) -> VarType:
        return self.dtypes[name]

    def set(self, name: str, shape: Shape, dtype: VarType) -> None:
        if self.shapes.get(name, shape) != shape or self.dtypes.get(name, dtype) != dtype:
            raise CannotPlan(
                f"variable {name!r} gets another shape or type on the way: {dtype} {shape} after "
                f"{self.dtypes[name]} {self.shapes[name]}"
            )
        # What the program declares is not asked: kernels write what is inferred, and that is what gets memory. An equal
        # shape may be said by sizes that are found later.
        self.shapes.setdefault(name, shape)
        self._type(name, dtype)

    def value(self, name: str) -> np.ndarray | None:
        found = self.known.get(name)
        return self.sized.get(name) if found is None else found

    def rows(self, name: str) -> int | None:
        return self.sparse.get(name)

    def set_rows(self, name: str, count: int) -> None:
        rows, values = parts(name)
        self.sparse[name] = count
        self.part_of[rows] = self.part_of[values] = name
        self.shapes[rows], self.dtypes[rows] = (count,), VarType.INT64
        self.shapes[values], self.dtypes[values] = (count, *self.shapes[name][1:]), self.dtypes[name]


def in_place_of(
    op: Operator,
    kind: str | OpDef,
    inputs: dict[str, list[str]],
    outputs: dict[str, list[str]],
    attrs: dict[str, Any] | None = None,
) -> Operator:
    """An operator that stands where `op` does, as errors say; without `attrs` its attributes are those of `op`."""
    made = copy.copy(op)
    made.definition = find(kind) if isinstance(kind, str) else kind
    made.type, made.inputs, made.outputs = made.definition.type, inputs, outputs
    if attrs is not None:
        made.attrs = attrs
    return made


def renamed(op: Operator, names: Mapping[str, str], inputs: bool = True, outputs: bool = True) -> Operator:
    """`op` with other names for the variables in `names`."""
    if not names or names.keys().isdisjoint((*op.input_arg_names, *op.output_arg_names)):
        return op
    made = copy.copy(op)
    if inputs:
        made.inputs = {slot: [names.get(n, n) for n in each] for slot, each in op.inputs.items()}
    if outputs:
        made.outputs = {slot: [names.get(n, n) for n in each] for slot, each in op.outputs.items()}
    return made


def live(ops: list[Operator], targets: Iterable[str]) -> list[Operator]:
    """The operators that matter: for `targets`, for persistable variables, or for what they do besides computing."""
    needed = set(targets)
    kept = []
    for op in reversed(ops):
        if op.type in ENDS:
            continue  # feeds and fetches go by name
        if _acts(op) or not needed.isdisjoint(op.writes()):
            kept.append(op)
            # Operators of gradients need not name all that their blocks read.
            needed.update(op.reads(), *map(names_read, op.sub_blocks()))
    return kept[::-1]


def _acts(op: Operator) -> bool:
    """Whether an operator, or one in a block that it runs, does something besides computing its results."""
    inside = (each for block in op.sub_blocks() for inner in block.within() for each in inner.ops)
    return any(
        each.definition.host
        or any(each.block._is_persistable(name) for name in each.writes())
        or bool(each.inputs.get(each.definition.takes_out))
        for each in (op, *inside)
    )


def takes_no_part(op: Operator) -> bool:
    """Whether nothing is done for an operator in a step: what it gives or takes goes by name (feed, fetch, readers),
    or it passes a variable on under the same name.
    """
    passes_on = op.definition.passes_on
    if passes_on is not None and op.outputs[passes_on[0]] == op.inputs[passes_on[1]]:
        return True
    return op.type in ENDS or (
        op.definition.host and op.definition.kernel is None and not op.definition.control
    )


def works_alone(op: Operator) -> bool:
    """Whether an operator is never part of a plan: it runs blocks, looks at what may not be there yet, or works on
    what is no tensor.
    """
    definition = op.definition
    if definition.infer is None or definition.control or definition.updates or definition.unset:
        return True
    return any(is_no_tensor(op, name) for name in (*op.reads(), *op.writes()))


def infer(op: Operator, meta: ExactMeta, fed: Iterable[str]) -> OpView:
    """Exact shapes of the outputs of `op`.

    Raises EnforceNotMet for an input without a value, CannotPlan if the shapes depend on data, or it makes
    a persistable variable that is not there yet.
    """
    definition = op.definition
    for name in op.writes():
        if meta.is_persistable(name) and not meta.has(name, op):
            reason = f"operator {op.type} makes variable {name!r}, which is not in the scope yet"
            raise CannotPlan(reason, op, passing=True)
    if definition.infer is None or works_alone(op):
        raise CannotPlan(
            f"operator {op.type} works on blocks, on what its output holds, or on what is no tensor", op
        )
    for name in op.reads():
        if not meta.has(name, op):
            raise failures.missing_value(op, name, fed)
    view = OpView(definition, op.inputs, op.outputs, op.attrs, meta)
    try:
        if not meta.retyped.isdisjoint(op.reads()):
            _check_types(view, meta)
        definition.infer(view)
        unknown = any(n < 0 for name in op.writes() for n in meta.shapes.get(name, ()))
        if unknown or (definition.lod and definition.native is None and not definition.carried):
            meta.seek(op, view)
        if meta.lods:
            carry_over(op, view, meta)
        if definition.rows is not None:
            definition.rows.mark(view)
    except CannotPlan as refusal:
        refusal.op = op
        raise
    except Exception as error:
        failures.raise_in_operator(op, error)
    return view


def _check_types(view: OpView, meta: ExactMeta) -> None:
    """Raise as `kernel_types.check`, but CannotPlan for what only plans have, and for inputs of several types."""
    try:
        _, several = kernel_types.check(view, meta.declared)
    except OperatorError:
        if view.definition.kernel is None:
            raise CannotPlan("a variable changes its type on the way") from None
        raise
    if several:
        raise CannotPlan(f"operator {view.type} gets data of several types")


def is_no_tensor(op: Operator, name: str) -> bool:
    """Whether a variable is an array of tensors, a rank table, or what is kept for a gradient."""
    var = op.block._find_var_recursive(name)
    return var is not None and var.type in NO_TENSORS


def carry_over(op: Operator, view: OpView, meta: ExactMeta) -> None:
    """Give the outputs of an ordinary operator the sequences of what its declaration says, where they fit."""
    for one in sequences.kept(view):
        levels = meta.lods.get(one.source)
        if not levels or one.out in meta.lods:
            continue
        if one.others:
            if all(len(meta.lod(name)) == len(levels) for name in one.others):
                raise CannotPlan(f"operator {op.type} joins sequences", op)
            continue
        shape = meta.shapes.get(one.out)
        if shape is None or not one.fits(shape, meta.shapes[one.source]):
            continue
        if not sequences.same_rows(op.block, one):
            continue
        if meta.is_persistable(one.out):
            raise CannotPlan(f"persistable variable {one.out!r} gets sequences", op)
        meta.lods[one.out] = levels


def _note_sizes(op: Operator, view: OpView, meta: ExactMeta) -> None:
    """Remember what an operator makes of sizes that change from step to step, if that can be said by formulas."""
    definition = op.definition
    if not all(
        to_numpy(meta.dtypes[name]).kind == "i" and is_fixed(meta.shapes[name])
        for name in op.output_arg_names
    ):
        return
    if definition.sizes is not None:
        results: list[Any] = [np.array(definition.sizes(view), dtype=object)]
    else:
        inputs = {slot: [meta.value(name) for name in names] for slot, names in op.inputs.items() if names}
        try:
            with meta.sizes.tentatively():
                results = definition.call(np, inputs, op.attrs)
        except Exception:  # a kernel is made for numbers; then this is computed in each step
            return
    for name, value in op._named(results):
        if isinstance(value, np.ndarray) and value.shape == meta.shapes[name]:
            if all(isinstance(n, (int, Size, np.integer)) for n in value.flat):
                meta.sized[name] = value


def fold(op: Operator, view: OpView, meta: ExactMeta, written_once: set[str]) -> bool:
    """Compute a small constant now (`fill_constant`, `shape`, ...); False if it is not one."""
    definition = op.definition
    if definition.random or definition.host or definition.kernel is None:
        return False
    if definition.sizes is None and not all(name in meta.known or name in meta.sized for name in op.reads()):
        return False
    outputs = op.output_arg_names
    if not outputs or not all(name in written_once for name in outputs):
        return False
    if not meta.sized.keys().isdisjoint(op.reads()) or not all(
        is_fixed(meta.shapes[name]) for name in (*op.reads(), *outputs)
    ):
        _note_sizes(op, view, meta)
        return False
    listed = sum(len(value) for value in op.attrs.values() if isinstance(value, (list, tuple)))
    if sum(math.prod(meta.shapes[name]) for name in outputs) > max(FOLD_LIMIT, listed):
        return False
    if definition.sizes is not None:
        (out,) = outputs
        results: list[Any] = [np.array(definition.sizes(view), dtype=to_numpy(meta.dtypes[out]))]
    else:
        inputs = {slot: [meta.known[name] for name in names] for slot, names in op.inputs.items() if names}
        try:
            results = definition.call(np, inputs, op.attrs)
        except Exception as error:
            raise failures.in_operator(op, error) from error
    for name, value in op._named(results):
        dtype = to_numpy(meta.dtypes[name])
        check_result(op.type, value, meta.shapes[name], dtype)
        meta.known[name] = np.array(value, dtype, order="C")
    return True
