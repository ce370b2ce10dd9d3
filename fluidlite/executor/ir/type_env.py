"""`TypeEnv`: exact shapes, element types and sequences of the variables of a plan, and values known before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.dtypes import VarType, to_numpy, to_vartype
from ...base.sizes import ShapeEnv, current
from ...framework import Operator
from ...ops.registry import LEVEL, OpView, Shape
from ...ops.tensor.selected_rows import ROWS, VALUES, parts
from ..tensors.lod_tensor import LoDTensor
from ..tensors.scope import Scope
from .data_dependent import PendingShapes, seek
from .errors import DataDependentShape, Unsupported
from .ranks import Ranking
from .request import Request


class IterationType(NamedTuple):
    """What the turns of a loop have made of a variable: its shape in a turn, with names for sizes, and its offsets."""

    shape: tuple[Any, ...]
    levels: tuple[str, ...]


class TypeEnv:
    """Answers the questions of operators (`OpView`) with the exact shapes of a step, and constants.

    The dimensions that the program leaves open are symbols of `sizes`, unless the request is for fixed shapes. In the
    body of a scan, sizes have the symbols that `Request.body` names. `make_body` compiles the bodies of scans.
    """

    exact = True

    def __init__(self, request: Request, make_body: Any = None) -> None:
        feeds: dict[str, np.ndarray] = dict(request.feed)
        named, varying = request.body, request.device is None and not request.fixed
        self.block = request.declarations
        self._finds = request.sizes
        self.finds = request.sizes is not None
        self.make_body = make_body
        self.ranking = Ranking(feeds)
        self.iteration_types: dict[str, IterationType] = {}  # what loops have made -> what it is in a turn
        self.kinds: dict[
            str, tuple[Shape, VarType]
        ] = {}  # array in memory of the engine's -> an element of it
        self.roots: dict[str, Any] = {}  # what sizes of turns are called -> these
        self.finding: list[list[str]] = []  # what the sizes are called that are found, in order
        # Mask of a split -> the output that its sizes are called by, and the rows that are true and that are not.
        self.rows_by_mask: dict[str, tuple[str, Sequence[int]]] = {}
        self.pending: dict[
            str, PendingShapes
        ] = {}  # result of an operator whose reference kernel finds sizes
        self.rooms: dict[str, Shape] = {}  # of what has sizes that are found: how large it may be
        self._late = request.late
        self._scope: Scope | None = request.scope
        self.sizes = ShapeEnv()
        self.shapes: dict[str, Shape] = {}
        self.lods: dict[str, tuple[str, ...]] = {}  # variable -> its arrays of offsets, outermost level first
        self.dtypes: dict[str, VarType] = {}
        self.known: dict[str, np.ndarray] = {}
        self.sized: dict[str, np.ndarray] = {}  # values that are sizes: arrays of `SymInt`s and integers
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

    def _called(self, shape: Shape, names: Sequence[str]) -> Shape:
        """A shape with the sizes of these names."""
        found = []
        for name, size in zip(names, shape, strict=True):
            root = name.removesuffix("+1")
            more = int(root != name)
            if root and root not in self.roots:
                self.roots[root] = self.sizes.input_symbol(size - more, root)
            found.append(self.roots[root] + more if root else size)
        return tuple(found)

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
            self.sizes.input_symbol(current(found.get(label, n)), label, low, len(self.finding))  # type: ignore[misc]
            for label, n, low in zip(labels, guesses, least, strict=True)
        ]

    def expected(self, label: str) -> int | None:
        """What a size has been found to be, by what it is called; None if it never was."""
        return (self._finds or {}).get(label)

    def seek(self, op: Operator, view: OpView) -> None:
        """Have the reference kernel of an operator find sizes; Unsupported if no plan can have the operator."""
        reason = f"operator {op.type} makes {', '.join(op.output_arg_names)}, whose shape depends on data"
        if self._finds is None:
            raise DataDependentShape(reason, op)
        pending = seek(view, self)
        if pending is None:
            raise Unsupported(reason, op)
        self.pending.update(dict.fromkeys(op.output_arg_names, pending))

    def _varying(self, name: str, shape: Shape) -> Shape:
        """The shape of a feed, with sizes for the dimensions that may change."""
        if LEVEL in name:  # one offset more than there are sequences
            return (self.sizes.input_symbol(shape[0], f"{name}.0", least=3),)  # type: ignore[return-value]
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
            sizes[axis] = self.sizes.input_symbol(shape[axis], f"{name}.{axis}")
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
        like = self._late.get(name)
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
            raise Unsupported(f"variable {name!r} of the scope has sequences", op)
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
        self.ranking.forget_feeds()

    def shape(self, name: str) -> Shape:
        return self.shapes[name]

    def dtype(self, name: str) -> VarType:
        return self.dtypes[name]

    def set(self, name: str, shape: Shape, dtype: VarType) -> None:
        if self.shapes.get(name, shape) != shape or self.dtypes.get(name, dtype) != dtype:
            raise Unsupported(
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
