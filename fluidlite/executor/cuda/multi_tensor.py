"""GPU fusion of one operation on many arrays: parameter updates, sums of squares and products with one scalar, of which
clipping by the global norm consists, and the gradients of several lookups in one table with their sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...backend.cupy_ import launch
from ...backend.cupy_.launchers import moves, updates
from ...base.sizes import product
from ...ops.registry import OpView, grad_name
from ..ir.instructions import Instruction
from ..passes.patterns import Match, Node, Pattern, Reader, require
from ..passes.rewriting import Pass, Replacement, fuse_alike, fuse_matches, joined
from .fusion import REAL, operator, replaced
from .launch import Argument, Get, Launch, one_by_one

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


@dataclass(frozen=True)
class _Update:
    """The update of one parameter, its variables by slot, and the launches that make it without the kernel for many.

    `decay`: the factor of the parameter in its gradient (weight decay). `carry`: the factor by which the power of beta
    is multiplied afterwards.
    """

    view: OpView
    names: Mapping[str, str]
    launches: Sequence[Instruction]
    decay: float = 0.0
    carry: float = 1.0

    @property
    def key(self) -> tuple[Any, ...]:
        """Type, dtypes, hyperparameters and powers of beta, which are the same for all updates of a launch."""
        view, rule = self.view, updates.RULES[self.view.type]
        rate = view.dtype("LearningRate") if rule.rated else None
        betas = tuple(self.names.get(slot) for slot in rule.betas)
        return view.type, view.dtype("Param"), rate, rule.numbers(_attrs(view)), betas, self.carry


def _attrs(view: OpView) -> dict[str, Any]:
    return {name: view.attr(name) for name in view.definition.attrs}


@dataclass(frozen=True)
class _Updates:
    """Runs updates in one launch, or one by one if the arrays do not fit the kernel."""

    updates: Sequence[_Update]
    writes: Sequence[str]

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        view, entries = self.updates[0].view, []
        attrs = {**_attrs(view), "carry": self.updates[0].carry}
        for update in self.updates:
            entry = {slot: get(name) for slot, name in update.names.items()}
            if not updates.fits(view.type, entry, attrs):
                launches = [each for one in self.updates for each in one.launches]
                results = one_by_one(launches, device, get)
                return {name: results[name] for name in self.writes}
            entries.append({**entry, "Decay": update.decay})
        updates.update(device, view.type, entries, attrs)
        return {name: get(name) for name in self.writes}


def _update_of(each: Instruction) -> _Update | None:
    """The update of an instruction; None if it is none, has no kernel, or is not in place."""
    view = each.view
    if isinstance(each.action.run, _Updates):
        return each.action.run.updates[0]
    if view is None or view.type not in updates.RULES or view.rows("Grad") is not None:
        return None
    results = updates.RULES[view.type].results
    for slot, out in zip(results, view.definition.output_slots, strict=True):
        if view.name_or_none(slot) != next(iter(view.outputs.get(out.name, ())), None):
            return None
    return _Update(view, {slot: held[0] for slot, held in view.inputs.items() if held}, (each,))


def _updating(some: Sequence[_Update], writes: Sequence[str]) -> Launch:
    names = dict.fromkeys([*(name for each in some for name in each.names.values()), *writes])
    return Launch(f"updates.{some[0].launches[0].action.type}", tuple(names), run=_Updates(some, writes))


def _advances(view: OpView) -> list[Any] | None:
    """The numbers of an operator `scale`; None if its factor is a tensor."""
    return None if view.has("ScaleTensor") else [view.attr("scale"), view.attr("bias")]


def _sum_of_two(each: Instruction) -> Node | None:
    names = each.view.names("X") if each.kind == "sum" and each.view is not None else ()
    return Node(names, each.writes) if len(names) == 2 else None


def _updated(each: Instruction) -> Node | None:
    found = _update_of(each)
    return None if found is None else Node([found.names["Grad"], found.names["Param"]], [])


def _without_advance(each: Instruction) -> Node | None:
    """An update that reads a power of beta, which another operator advances."""
    found = _update_of(each)
    if found is None or "Beta1Pow" in updates.RULES[found.view.type].results or found.carry != 1:
        return None
    return Node([found.names.get("Beta1Pow")], [])


_READERS: dict[str, str | Reader] = {
    "scale": operator("scale", "X -> Out", _advances),
    "sum": _sum_of_two,
    "update": _updated,
    "without_advance": _without_advance,
}
_DECAY = Pattern(
    """
    decay = scale(param | factor 0)
    total = sum(grad, decay)
    _ = update(total, param)
    """,
    _READERS,
)
_ADVANCE = Pattern("_ = without_advance(power) \n power = scale(power | factor 0)", _READERS)


def _with_decay(match: Match) -> list[Replacement]:
    """Let the kernel of an update compute the weight decay."""
    update, grad = _update_of(match.found["_"]), match.names["grad"]
    require(update is not None and match.type in REAL and grad != match.names["decay"])
    assert update is not None
    names, decay = {**update.names, "Grad": grad}, float(match.numbers["factor"])
    made = replace(update, names=names, launches=match.parts, decay=decay)
    return [Replacement(match.parts, _updating([made], match.found["_"].writes))]


def _with_advance(match: Match) -> list[Replacement]:
    """Let the kernel of an update advance its power of beta."""
    each, advance = match.found["_"], match.found["power"]
    update = _update_of(each)
    assert update is not None
    launches = [*update.launches, advance]
    made = replace(update, launches=launches, carry=float(match.numbers["factor"]))
    launch = _updating([made], (*_computed(each), *advance.writes)).with_shapes(each.action.shaped)
    return [Replacement(match.parts, launch, at_first=True)]


def _computed(each: Instruction) -> list[str]:
    """The results of an instruction, without those of which only the shape is read."""
    return [name for name in each.writes if name not in each.action.shaped]


def _joined(parts: list[Instruction], launch: Launch) -> Instruction:
    """The instruction of a launch that does what all parts do, fused ones among them."""
    return joined(parts, launch.with_shapes([name for each in parts for name in each.action.shaped]))


def _update_key(each: Instruction) -> tuple[Any, ...] | None:
    found = _update_of(each)
    return None if found is None else found.key


def _one_update(parts: list[Instruction]) -> list[Instruction]:
    """One launch for updates with the same key."""
    some = [found for found in map(_update_of, parts) if found is not None]
    writes = dict.fromkeys(name for each in parts for name in _computed(each))
    return [_joined(parts, _updating(some, tuple(writes)))]


@dataclass(frozen=True)
class _Many:
    """Applies a launcher to many arrays, for all with the variable `by`. `parts`: source, result, its shape."""

    launcher: Callable[..., Sequence[Any]]
    parts: Sequence[tuple[str, str, Sequence[int]]]
    by: str | None = None

    @property
    def operands(self) -> tuple[str, ...]:
        names = [name for source, target, _ in self.parts for name in (source, target)]
        return tuple(names if self.by is None else (*names, self.by))

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        arrays = [get(source) for source, _, _ in self.parts]
        results = self.launcher(device, arrays, *(() if self.by is None else (get(self.by),)))
        return {to: array.reshape(shape) for (_, to, shape), array in zip(self.parts, results, strict=True)}


def _is_whole(view: OpView) -> tuple[()] | None:
    """No numbers, if a sum is that of all elements."""
    dims, rank = view.attr("dim"), len(view.shape("X"))
    axes = {axis % rank for axis in ([dims] if isinstance(dims, int) else dims)} if rank else ()
    return () if view.attr("reduce_all") or len(axes) == rank else None


_SQUARES = Pattern(
    "squares = square(x) \n total = sum(squares)",
    {"square": operator("square", "X -> Out"), "sum": operator("reduce_sum", "X -> Out", _is_whole)},
)


def _sum_of_squares(match: Match) -> list[Replacement]:
    require(match.type in REAL)
    shape = match.found["total"].view.shape("Out")  # type: ignore[union-attr]
    many = _Many(updates.sums_of_squares, [(match.names["x"], match.names["total"], shape)])
    return [Replacement(match.parts, Launch(f"sums_of_squares.{match.type}", many.operands, run=many))]


def _many_of(each: Instruction) -> _Many | None:
    """The operation on one array that a launch may do on many; None if there is none."""
    view = each.view
    if isinstance(each.action.run, _Many):
        return each.action.run
    if view is None or view.type != "elementwise_mul" or each.action.type not in REAL:
        return None
    source, target, by = view.name("X"), view.name("Out"), view.name("Y")
    shape = tuple(view.shape("Out"))
    if product(tuple(view.shape("Y"))) != 1 or shape != tuple(view.shape("X")) or target in (source, by):
        return None
    return _Many(updates.scaled, [(source, target, shape)], by)


def _many_key(each: Instruction) -> tuple[Any, ...] | None:
    many = _many_of(each)
    return None if many is None else (many.launcher, many.by, each.action.type)


def _all_in_one(parts: list[Instruction]) -> list[Instruction]:
    found = [many for many in map(_many_of, parts) if many is not None]
    many = replace(found[0], parts=[part for each in found for part in each.parts])
    return [_joined(parts, Launch(parts[0].action.kernel, many.operands, run=many))]


def _several(each: Instruction) -> Node | None:
    """A sum of several terms."""
    names = each.view.names("X") if each.kind == "sum" and each.view is not None else ()
    return Node([], each.writes) if len({*names}) == len(names) > 1 else None


_SUM = Pattern("total = sum()", {"sum": _several})


def _lookups(match: Match) -> list[Replacement]:
    """The gradients of lookups in one table and their sum as one launch."""
    uses, total = match.uses, match.found["total"]
    inputs: dict[str, Argument] = {}
    paddings: list[int] = []
    for name in total.reads:
        each = uses.producers.get(uses.root(name))
        view = None if each is None else each.view
        require(
            each is not None and view is not None and each.kind == "lookup_grad" and uses.written[name] == 1
        )
        assert each is not None and view is not None
        require(not view.attr("is_sparse") and each.action.type == total.action.type)
        table = inputs.setdefault("table", (view.name("W"), None))
        require(table[0] == view.name("W"))
        inputs[f"ids{len(paddings)}"] = view.name("Ids"), None
        inputs[f"rows{len(paddings)}"] = view.name(grad_name("Out")), None
        paddings.append(view.attr("padding_idx"))
        match.found[name] = each
    return replaced(match, _add_lookups, inputs, [(match.names["total"], None)], paddings=paddings)


def _add_lookups(device: CudaDevice, table: Any, paddings: Sequence[int], **arrays: Any) -> Any:
    pairs = [(arrays[f"ids{k}"], arrays[f"rows{k}"]) for k in range(len(paddings))]
    if not all(launch.real(table, rows) and launch.is_index(ids) for ids, rows in pairs):
        return NotImplemented
    total = device.xp.zeros(table.shape, table.dtype)
    for (ids, rows), padding in zip(pairs, paddings, strict=True):
        moves.add_rows(device, total, ids, rows, padding)
    return total


GRADIENTS: list[Pass] = [
    fuse_matches(_SQUARES, _sum_of_squares),
    fuse_alike(_many_key, _all_in_one),
    fuse_matches(_SUM, _lookups),
]
UPDATES: list[Pass] = [
    fuse_matches(_DECAY, _with_decay),
    fuse_matches(_ADVANCE, _with_advance),
    fuse_alike(_update_key, _one_update),
]
