"""`BodyPlan`: the operators of one iteration of a scan, on memory that moves from iteration to iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...base.dtypes import VarType, to_numpy
from ...base.sizes import SymInt, always_equal, current, free_symbols, substituted
from ...framework import Operator
from ...ops.math.matmul import Matrix
from ...ops.registry import Call, Shape
from ..control_flow.array_ops import STASH_POP, STASH_PUSH
from ..control_flow.scan import BOUNDS, SIZE, Carry, ScanSpec
from ..failures import Unsupported
from ..ir.instructions import Instruction
from ..ir.request import FIRST, Feeds
from ..passes.prepacking import Packing
from .code import Code
from .lowering import native
from .plan import Plan

SUM = "@SUM"
MADE = "@MADE"


class BodyPlan:
    """A plan for the iterations of a scan; `plan` is set when it has been compiled.

    All variables from outside are fed, those that move with the sizes that `Feeds.moving` has. Results are written to
    memory that the scan provides.

    `packed`: the weights that the scan prepacks; `outside`: a result -> the name of the memory that it is written to.
    """

    plan: Plan

    def __init__(self, spec: ScanSpec, feeds: Feeds, code: Code, ops: list[Operator]) -> None:
        self.spec, self.feeds, self.code, self.meta = spec, feeds, code, code.meta
        self.moving = [*spec.of("Ragged", "Stacked", "ShapeOnly", "Prefix"), *spec.shortened]
        self.moving += [each.name for each in spec.carried] + [level + FIRST for level in spec.others]
        self.wanted = spec.of("RaggedOut", "StackedOut", "Final")
        self.added = spec.names["Sums"]
        self.outside: dict[str, str] = {}
        self.packed: dict[str, Matrix] = {}
        self._changes = {name for op in ops for name in op.output_arg_names}
        if any(not self.meta.shapes[name] for name in code.fetches):
            raise Unsupported("a result of its body has no dimensions")

    def pack(self, instructions: list[Instruction]) -> list[Instruction]:
        """The pass `packing` for bodies: a weight that no iteration changes is packed by the scan."""
        packing = Packing(self.meta, self.code.root, self._is_invariant)
        instructions = [packing.of(each) for each in instructions]
        self.packed = packing.made
        self.code.external.update(packing.made)
        return instructions

    def _is_invariant(self, name: str) -> bool:
        """True for a matrix that is the same in all iterations and comes from outside."""
        if name in self.moving or name in self._changes or name in self.meta.constants:
            return False
        return not self.code.is_temporary(name)

    def check(self) -> None:
        """Raise Unsupported for what a body may not do."""
        plan = self.plan
        for op, is_native in zip(plan.ops, plan.is_native, strict=True):
            if not is_native and op.definition.effects.host:
                raise Unsupported(f"operator {op.type} in its body has side effects")
        likes = {op.inputs["Like"][0] for op in self.spec.ops if op.definition is STASH_POP}
        if not likes.isdisjoint(self.code.root(name) for each in plan.instructions for name in each.accessed):
            raise Unsupported("its iterations read elements of another loop's stash")
        if self.meta.sparse:
            raise Unsupported("its body computes SelectedRows")
        if self.meta.persistable:
            raise Unsupported("its iterations use persistable variables by other names")

    def describe(self) -> str:
        first, *lines = self.plan.describe().splitlines()
        return "\n".join([f"body of {first}", *lines])

    def fits(self, moving: Mapping[str, int]) -> bool:
        """True if the guards admit these sizes of an iteration."""
        sizes = self.plan.assembly.registers.values
        for label, value in moving.items():
            root = self.meta.body_symbols.get(label)
            if isinstance(root, SymInt):
                sizes.set(self.plan.assembly.registers.integer(root), value)
            elif root is not None and root != value:
                return False
        return sizes.evaluate() and sizes.holds()

    def _symbols(self, size: int) -> list[str]:
        """The labels of the body's symbols that a size always equals."""
        return [k for k, root in self.meta.body_symbols.items() if always_equal(root, size)]

    def _rows(self, size: int) -> list[str]:
        """The labels of varying sizes that this one may be, and "" if it may be fixed."""
        found = self._symbols(size)
        if self.feeds.rows is not None and size == self.feeds.rows:
            return ["n", ""]
        rows = [k for k in self.feeds.moving if k in found]
        moves = isinstance(size, SymInt) and len(found) == len(rows) and self._outside_size(size) is None
        return rows if moves else [*rows, ""]

    def _outside_size(self, size: Any) -> Any:
        """A size of the body in terms of the plan around; None if it varies between iterations."""
        roots = {}
        for label, root in self.meta.body_symbols.items():
            if label in self.feeds.outer:
                roots.update(dict.fromkeys(free_symbols(root), self.feeds.outer[label]))
        return substituted(size, roots) if free_symbols(size) <= roots.keys() else None

    def result(self, name: str, empty: bool) -> tuple[list[str], Shape, VarType, tuple[str, ...]]:
        """The row counts that a result may have (see `_rows`), its shape, with labels for sizes from outside after the
        first axis, its type, and its offsets. `empty`: sizes of a result without elements may vary."""
        inner = self.outside.get(name) or self.outside[name + SUM]
        shape: list[Any] = []
        sizes = self.meta.shapes[inner]
        for axis, size in enumerate(sizes):
            labels = [k for k in self._symbols(size) if k not in self.feeds.moving]
            if empty and sizes[0] == 0:
                labels += self._rows(size)
            outside = None if labels else self._outside_size(size)
            if axis and isinstance(size, SymInt) and not labels and outside is None:
                raise Unsupported(f"variable {name!r} has a size that is computed from varying ones")
            shape.append(
                labels[0] if labels and isinstance(size, SymInt) else size if outside is None else outside
            )
        plain = self.code.fetches[[*self.wanted, *self.added].index(name)]
        return self._rows(sizes[0]), tuple(shape), self.meta.dtypes[inner], self.meta.lod(plain)

    def stashes(self) -> dict[str, tuple[list[list[Any]], VarType]]:
        """The stashes of inner loops: name -> the labels and outer size of an element along each axis, and its type."""
        found: dict[str, tuple[list[list[Any]], VarType]] = {}
        for op in self.plan.ops:
            if op.definition is STASH_PUSH:
                (name,) = op.inputs["X"]
                if self.meta.lod(name):
                    raise Unsupported(f"an inner loop stashes the sequences of {name!r}")
                shape = [self._labels(size) for size in self.meta.shapes[name]]
                found[op.attrs["array"]] = shape, self.meta.dtypes[name]
        return found

    def _labels(self, size: int) -> list[Any]:
        """The labels that a size may have, and its value outside if it is fixed."""
        found, outside = self._symbols(size), self._outside_size(size)
        return found if outside is None else [*found, outside]

    def check_carried(self, carry: Carry, leaves: str, dtype: VarType) -> None:
        """Raise Unsupported unless a variable has the rows, `leaves`, shape and type that the next iteration reads."""
        name, inner = carry.name, self.outside.get(carry.after, carry.after)
        left, found = self.meta.shapes[inner], self.meta.shapes[name]
        if not left or leaves not in self._rows(left[0]):
            raise Unsupported(f"variable {name!r} has another row count after an iteration")
        start = 1 if leaves else 0
        if (
            len(left) != len(found)
            or self.meta.dtypes[inner] != dtype
            or not all(map(always_equal, left[start:], found[start:]))
        ):
            raise Unsupported(f"variable {name!r} has another shape or type after an iteration")

    def connections(self, moving: Mapping[str, int]) -> tuple[Any, ...]:
        """The arguments of `Engine.add_loop` for a body. `moving`: the indices of variables whose memory moves."""
        spec, slot = self.spec, self.plan.assembly.slot
        follows = [(slot(name), moving[name]) for name in self.moving]
        follows += [(slot(self.outside[name]), moving[name]) for name in self.wanted]
        stays = [
            (slot(name), spec.operands[name])
            for name in (*spec.names["Invariant"], *spec.levels, *self.packed)
        ]
        stays += [(slot(name + SUM), spec.operands[name]) for name in self.added]
        roots, spans = [], []
        for label, root in self.meta.body_symbols.items():
            register = self.plan.assembly.registers.integer(root) if isinstance(root, SymInt) else -1
            if label in spec.others:
                spans.append((register, spec.operands[label + BOUNDS], current(root)))
            else:
                source = "nm".index(label) if label in ("n", "m") else 2 + spec.ints[SIZE + label]
                roots.append((register, source, current(root)))
        return self.plan.engine, follows, stays, roots, spans


def write_outside(body: BodyPlan) -> None:
    """Have results written to memory of the scan, directly or by a copy; sums are accumulated there."""
    code, like = body.code, body.spec.ops[-1]
    meta = code.meta
    results = dict(zip([*body.wanted, *body.added], code.fetches, strict=False))
    for name in body.wanted:
        result = results[name]
        if code.is_temporary(result):
            body.outside[name] = result
            code.external.add(result)
        else:
            body.outside[name] = twin = _twin(code, result, name + MADE)
            call = Call("copy", [result, twin], [meta.bytes(result)])
            code.instructions.append(native(meta, like, call))
    for name in body.added:
        result = results[name]
        if meta.dtypes[result] not in (VarType.FP32, VarType.FP64):
            raise Unsupported(f"the sum of {name!r} over the iterations is not of floats")
        suffix = "f32" if meta.dtypes[result] == VarType.FP32 else "f64"
        body.outside[name + SUM] = total = _twin(code, result, name + SUM)
        added = _without_zeros(code, result)
        count = meta.bytes(added) // to_numpy(meta.dtypes[added]).itemsize
        call = Call(f"elementwise_add.{suffix}", [total, added, total], [count])
        code.instructions.append(native(meta, like, call))


def _without_zeros(code: Code, name: str) -> str:
    """The variable to add in the place of `name`: its first rows, if the rest are zeros appended for the sum alone."""
    made = [each for each in code.instructions if name in each.writes]
    if (
        len(made) != 1
        or made[0].op.definition.planning.pattern != "shorten_grad"
        or not isinstance(made[0].action, Call)
    ):
        return name
    if any(code.root(read) == name for each in code.instructions for read in each.reads):
        return name
    (found,) = made[0].reads
    code.instructions.remove(made[0])
    return found


def _twin(code: Code, name: str, twin: str) -> str:
    """A name for memory of the scan, of the shape and type of a variable."""
    code.meta.shapes[twin], code.meta.dtypes[twin] = code.meta.shapes[name], code.meta.dtypes[name]
    code.external.add(twin)
    return twin
