"""Data-dependent sizes of operators without a native kernel: the reference kernel's results have them.

where_index(x) -> y [-1, 2]     measure         run the reference kernel; write the sizes of its results
                                RESOLVE_SIZES   assign them to symbols: shapes and memory of later operators
                                store           copy the results to their memory in the plan
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ...base.sizes import INFINITE
from ...ops.registry import EMPTY, LEVEL, LodArray, OpView

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
            array = value.array if isinstance(value, LodArray) else value
            if (array.ndim, array.dtype) != self.kinds[name]:
                return [-1] * len(self.labels)
            found.update(sizes_of(name, value))
        return [found.get(label, -1) for label in self.labels]


def sizes_of(name: str, value: Any, lod: Any = ()) -> dict[str, int]:
    """All sizes of a variable, by their labels in plans."""
    if isinstance(value, LodArray):
        value, lod = value.array, value.lod
    found = {f"{name}#{axis}": size for axis, size in enumerate(np.shape(value))}
    found[name + LEVELS] = len(lod)
    found.update((f"{name}{LEVEL}{k}#0", len(level)) for k, level in enumerate(lod))
    return found


def pending_shapes(view: OpView, meta: Any) -> PendingShapes | None:
    """Declare the unknown sizes of an operator's results as data-dependent; None if plans cannot have these results."""
    definition = view.definition
    names = [name for names in view.outputs.values() for name in names if name != EMPTY]
    if not names:
        return None
    labels: list[str] = []
    shapes: dict[str, list[int | None]] = {}
    returns_lod = definition.sequences.takes_lod and not definition.sequences.inferred
    for name in names:
        if name in meta.sparse or name in meta.persistable or name not in meta.shapes:
            return None
        shapes[name] = [None if n < 0 else n for n in meta.shapes[name]]
        if returns_lod and not meta.lod(name):
            count = meta.observed_size(name + LEVELS) or 0
            labels.append(name + LEVELS)
            shapes.update((f"{name}{LEVEL}{k}", [None]) for k in range(count))
            meta.carry(name, tuple(f"{name}{LEVEL}{k}" for k in range(count)))
        for level in meta.lod(name):
            if level in meta.shapes and meta.shapes[level][0] < 0:
                shapes[level] = [None]
    labels += [
        f"{name}#{axis}" for name, shape in shapes.items() for axis, n in enumerate(shape) if n is None
    ]
    guesses = [0 if label.endswith(LEVELS) else 2 for label in labels]
    least = [INFINITE if label.endswith(LEVELS) else 3 if LEVEL in label else 2 for label in labels]
    declared = meta.declare_sizes(labels, guesses, least)
    sizes = dict(zip(labels, declared, strict=True))
    for name, shape in shapes.items():
        dtype = meta.dtypes[name] if name in meta.dtypes else VarType.INT64
        meta.shapes[name] = tuple(sizes[f"{name}#{axis}"] if n is None else n for axis, n in enumerate(shape))
        meta.set(name, meta.shapes[name], dtype)
    scratch = f"{names[0]}@FOUND"
    meta.set(scratch, (len(labels),), VarType.INT64)
    kinds = {name: (len(meta.shapes[name]), to_numpy(meta.dtypes[name])) for name in names}
    return PendingShapes(scratch, labels, declared, kinds)
