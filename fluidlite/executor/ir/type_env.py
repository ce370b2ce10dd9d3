"""`TypeEnv`: symbolic shapes, element types, LoD and constant values of the variables of a plan.

Data-dependent sizes of operators without a native kernel come from the reference kernel's results:

    where_index(x) -> y [-1, 2]     measure         run the reference kernel; write the sizes of its results
                                    RESOLVE_SIZES   assign them to symbols: shapes and memory of later operators
                                    store           copy the results to their memory in the plan
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._ext.operands import FixedTypes
from ...base.dtypes import ITEM_BYTES, VarType, to_numpy, to_vartype
from ...base.sizes import INFINITE, ShapeEnv, current
from ...framework import Operator
from ...ops.registry import EMPTY, LEVEL, LodArray, OpView, Shape
from ...ops.tensor.gather import ROWS, VALUES, parts
from ..failures import DataDependentShape, Unsupported
from ..lod_tensor import LoDTensor
from ..scope import Scope
from .ranks import Ranking
from .request import Request


class IterationType(NamedTuple):
    """A variable's shape in one iteration of a loop, with labels for the sizes that vary, and its arrays of offsets."""

    shape: tuple[Any, ...]
    levels: tuple[str, ...]


class TypeEnv(FixedTypes):
    """The `Meta` of plans: exact shapes of a step, and constants.

    Dimensions that the program leaves open are symbols of `sizes`, unless the request has fixed shapes. In the body of
    a scan, sizes have the symbols that `Request.body` names. `make_body` compiles the bodies of scans.
    """

    exact = True

    def __init__(self, request: Request, make_body: Any = None) -> None:
        feeds: dict[str, np.ndarray] = dict(request.feed)
        named, varying = request.body, request.device is None and not request.fixed
        super().__init__(request.declarations, ITEM_BYTES)
        self._observed = request.sizes
        self.allows_data_dependent_sizes = request.sizes is not None
        self.make_body = make_body
        self.ranking = Ranking(feeds)
        self.iteration_types: dict[str, IterationType] = {}  # of the results of loops
        self.element_types: dict[str, tuple[Shape, VarType]] = {}  # of the engine's tensor arrays
        self.body_symbols: dict[str, Any] = {}  # label of a size in the body of a scan -> its symbol
        self.size_labels: list[list[str]] = []  # of the data-dependent sizes, by operator, in order
        # Mask of a split -> the output in the labels of its sizes; the numbers of true and of false rows.
        self.rows_by_mask: dict[str, tuple[str, Sequence[int]]] = {}
        self.pending: dict[str, PendingShapes] = {}  # of results whose sizes the reference kernel determines
        self._late = request.late
        self._scope: Scope | None = request.scope
        self.sizes = ShapeEnv()
        self.lods: dict[str, tuple[str, ...]] = {}  # variable -> its arrays of offsets, outermost level first
        self.constants: dict[str, np.ndarray] = {}
        self.symbolic_values: dict[str, np.ndarray] = {}  # arrays of `SymInt`s and integers
        self.sparse: dict[str, int] = {}  # SelectedRows -> number of rows
        self.part_of: dict[str, str] = {}  # array of SelectedRows -> these
        for name, array in feeds.items():
            if named is not None:
                self.shapes[name] = self._with_symbols(array.shape, named.sizes[name])
            else:
                self.shapes[name] = self._symbolic(name, array.shape) if varying else array.shape
            self.set_type(name, to_vartype(array.dtype))
        if named is not None:
            self.lods.update(named.levels)
        for name in feeds if named is None else ():
            if name.endswith(ROWS):
                self._fed_rows(name.removesuffix(ROWS))
            elif LEVEL in name:
                self._fed_level(name)

    def _with_symbols(self, shape: Shape, names: Sequence[str]) -> Shape:
        """A shape with the symbols of these labels; `name+1` is the size one more than that of `name`."""
        found = []
        for name, size in zip(names, shape, strict=True):
            root = name.removesuffix("+1")
            more = int(root != name)
            if root and root not in self.body_symbols:
                self.body_symbols[root] = self.sizes.input_symbol(size - more, root)
            found.append(self.body_symbols[root] + more if root else size)
        return tuple(found)

    def data_dependent_sizes(
        self, name: str, most: Sequence[int], least: Sequence[float], axes: Sequence[int] = ()
    ) -> list[int] | None:
        """See `OpView.data_dependent_sizes`."""
        if self._observed is None:
            return None
        labels = [f"{name}#{k}" for k in axes or range(len(most))]
        return self.declare_sizes(labels, most, least or (2,) * len(most))

    def declare_sizes(self, labels: list[str], guesses: Sequence[int], least: Sequence[float]) -> list[int]:
        """Symbols for the data-dependent sizes of an operator, with the observed values, or else the guesses."""
        self.size_labels.append(labels)
        found = self._observed or {}
        return [
            self.sizes.input_symbol(current(found.get(label, n)), label, low, len(self.size_labels))  # type: ignore[misc]
            for label, n, low in zip(labels, guesses, least, strict=True)
        ]

    def measure_results(self, op: Operator, view: OpView) -> None:
        """Take sizes from the reference kernel's results; raise Unsupported if a plan cannot have these."""
        reason = f"operator {op.type} makes {', '.join(op.output_arg_names)}, whose shape depends on data"
        if self._observed is None:
            raise DataDependentShape(reason, op)
        pending = self._pending_shapes(view)
        if pending is None:
            raise Unsupported(reason, op)
        self.pending.update(dict.fromkeys(op.output_arg_names, pending))

    def _pending_shapes(self, view: OpView) -> PendingShapes | None:
        """Declare the unknown sizes of an operator's results as data-dependent; None if plans cannot have these."""
        definition = view.definition
        names = [name for names in view.outputs.values() for name in names if name != EMPTY]
        if not names:
            return None
        labels: list[str] = []
        shapes: dict[str, list[int | None]] = {}
        returns_lod = definition.sequences.takes_lod and not definition.sequences.inferred
        for name in names:
            if name in self.sparse or name in self.persistable or name not in self.shapes:
                return None
            shapes[name] = [None if n < 0 else n for n in self.shapes[name]]
            if returns_lod and not self.lod(name):
                count = (self._observed or {}).get(name + LEVELS, 0)
                labels.append(name + LEVELS)
                shapes.update((f"{name}{LEVEL}{k}", [None]) for k in range(count))
                self.carry(name, tuple(f"{name}{LEVEL}{k}" for k in range(count)))
            for level in self.lod(name):
                if level in self.shapes and self.shapes[level][0] < 0:
                    shapes[level] = [None]
        labels += [
            f"{name}#{axis}" for name, shape in shapes.items() for axis, n in enumerate(shape) if n is None
        ]
        guesses = [0 if label.endswith(LEVELS) else 2 for label in labels]
        least = [INFINITE if label.endswith(LEVELS) else 3 if LEVEL in label else 2 for label in labels]
        declared = self.declare_sizes(labels, guesses, least)
        sizes = dict(zip(labels, declared, strict=True))
        for name, shape in shapes.items():
            dtype = self.dtypes[name] if name in self.dtypes else VarType.INT64
            self.shapes[name] = tuple(
                sizes[f"{name}#{axis}"] if n is None else n for axis, n in enumerate(shape)
            )
            self.set(name, self.shapes[name], dtype)
        scratch = f"{names[0]}@FOUND"
        self.set(scratch, (len(labels),), VarType.INT64)
        kinds = {name: (len(self.shapes[name]), to_numpy(self.dtypes[name])) for name in names}
        return PendingShapes(scratch, labels, declared, kinds)

    def _symbolic(self, name: str, shape: Shape) -> Shape:
        """The shape of a feed, with symbols for the dimensions that may change."""
        if LEVEL in name:  # one offset more than there are sequences
            return (self.sizes.input_symbol(shape[0], f"{name}.0", least=3),)  # type: ignore[return-value]
        if name.endswith((ROWS, VALUES)):
            open_axes: set[int] = {0}
        else:
            var = self.variable(name)
            declared = var._shape if var is not None and var._shape is not None else ()
            if len(declared) != len(shape):  # a time step of the declared variable, or an undeclared one
                declared = (-1,)
            open_axes = {axis for axis, n in enumerate(declared) if n < 0}
        sizes: list[Any] = list(shape)
        for axis in open_axes.intersection(range(len(shape))):
            sizes[axis] = self.sizes.input_symbol(shape[axis], f"{name}.{axis}")
        return tuple(sizes)

    def _fed_level(self, name: str) -> None:
        """Record the fed offsets `name` as the next level of the feed that they belong to."""
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

    def has(self, name: str, op: Operator | None = None) -> bool:
        """True if a variable that `op` reads has a value; records persistable ones of the scope."""
        if name in self.shapes:
            return True
        like = self._late.get(name)
        if like is not None and self.has(like):
            self.shapes[name] = self.shapes[like]
            self.set_type(name, self.dtypes[like])
            return True
        found = self._scope.find_var(name) if self._scope is not None else None
        value = found.get() if found is not None else None
        if not isinstance(value, LoDTensor) or value.array is None:
            var = op.block._find_var_recursive(name) if op is not None else None
            return var is not None and var.type == VarType.RAW  # no kernel reads its value
        if value.offsets:
            raise Unsupported(f"variable {name!r} of the scope has sequences", op)
        if isinstance(value.array, np.ndarray):
            value.own()
        self.persistable[name] = value
        self.shapes[name] = value.array.shape
        self.set_type(name, to_vartype(value.array.dtype))
        return True

    def forget_scope(self) -> None:
        """Drop the references to the scope and the feeds, once all shapes are inferred."""
        self._scope = self.make_body = None
        self.ranking.forget_feeds()

    def conflict(self, name: str, shape: Shape, dtype: VarType) -> Exception:
        """The error for a variable that would change."""
        return Unsupported(
            f"variable {name!r} changes its shape or type: {dtype} {shape} after "
            f"{self.dtypes.get(name, dtype)} {self.shapes.get(name, shape)}"
        )

    def value(self, name: str) -> np.ndarray | None:
        found = self.constants.get(name)
        return self.symbolic_values.get(name) if found is None else found

    def rows(self, name: str) -> int | None:
        return self.sparse.get(name)

    def set_rows(self, name: str, count: int) -> None:
        rows, values = parts(name)
        self.sparse[name] = count
        self.part_of[rows] = self.part_of[values] = name
        self.shapes[rows], self.dtypes[rows] = (count,), VarType.INT64
        self.shapes[values], self.dtypes[values] = (count, *self.shapes[name][1:]), self.dtypes[name]


LEVELS = "@LEVELS"
"""The suffix of the label of a data-dependent number of LoD levels."""


class PendingShapes(NamedTuple):
    """The data-dependent sizes of an operator's results.

    Args:
        scratch: the array of the plan to which they are written, in the order of `labels`.
        sizes: the sizes in the plan's shapes, in this order.
        kinds: rank and element type of each result in the plan.
    """

    scratch: str
    labels: list[str]
    sizes: list[int]
    kinds: dict[str, tuple[int, np.dtype]]

    def measure(self, results: Iterable[tuple[str, Any]]) -> list[int]:
        """The sizes of results, in the order of `labels`; -1 for all if a rank or element type is not the plan's."""
        found: dict[str, int] = {}
        for name, value in results:
            array, lod = (value.array, value.lod) if isinstance(value, LodArray) else (value, ())
            if (array.ndim, array.dtype) != self.kinds[name]:
                return [-1] * len(self.labels)
            found.update((f"{name}#{axis}", size) for axis, size in enumerate(array.shape))
            found[name + LEVELS] = len(lod)
            found.update((f"{name}{LEVEL}{k}#0", len(level)) for k, level in enumerate(lod))
        return [found.get(label, -1) for label in self.labels]
