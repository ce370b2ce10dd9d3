"""Sizes that a plan finds while it runs: results of operators that have no kernel of the engine for that.

where_index(x) -> y [-1, 2]     seek     the reference kernel, and how large its results are
                                FIND     the engine takes that: numbers and memory of all that comes after
                                keep     the results, where the plan has them
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ...base.sizes import INFINITE
from ...ops.registry import EMPTY, LEVEL, LodArray, OpView

LEVELS = "@LEVELS"
"""Stands behind the name of a variable: how many levels of sequences it has, if only the data know."""


class PendingShapes(NamedTuple):
    """What a reference kernel finds: `scratch` holds it, in the order of `labels`; `wanted`: what it is in the plan."""

    scratch: str
    labels: list[str]
    wanted: list[int]
    kinds: dict[str, tuple[int, np.dtype]]  # variable -> how many dimensions, and elements of which type

    def measured(self, results: Iterable[tuple[str, Any]]) -> list[int]:
        """What results are, by `labels`; -1 for all of what does not fit the plan in any size."""
        found: dict[str, int] = {}
        for name, value in results:
            array = value.array if isinstance(value, LodArray) else value
            if (array.ndim, array.dtype) != self.kinds[name]:
                return [-1] * len(self.labels)
            found.update(sizes_of(name, value))
        return [found.get(label, -1) for label in self.labels]


def sizes_of(name: str, value: Any, lod: Any = ()) -> dict[str, int]:
    """All sizes of a variable, by the names that plans have for what they find."""
    if isinstance(value, LodArray):
        value, lod = value.array, value.lod
    found = {f"{name}#{axis}": size for axis, size in enumerate(np.shape(value))}
    found[name + LEVELS] = len(lod)
    found.update((f"{name}{LEVEL}{k}#0", len(level)) for k, level in enumerate(lod))
    return found


def seek(view: OpView, meta: Any) -> PendingShapes | None:
    """Have sizes of an operator's results be found by its reference kernel; None if that cannot be said in a plan."""
    definition = view.definition
    names = [name for names in view.outputs.values() for name in names if name != EMPTY]
    if not names:
        return None
    labels: list[str] = []
    shapes: dict[str, list[int | None]] = {}
    whose = definition.sequences.takes_lod and not definition.sequences.inferred
    for name in names:
        if name in meta.sparse or name in meta.persistable or name not in meta.shapes:
            return None
        shapes[name] = [None if n < 0 else n for n in meta.shapes[name]]
        if whose and not meta.lod(name):
            count = meta.expected(name + LEVELS) or 0
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
    wanted = meta.find(labels, guesses, least)
    sizes = dict(zip(labels, wanted, strict=True))
    for name, shape in shapes.items():
        dtype = meta.dtypes[name] if name in meta.dtypes else VarType.INT64
        meta.shapes[name] = tuple(sizes[f"{name}#{axis}"] if n is None else n for axis, n in enumerate(shape))
        meta.set(name, meta.shapes[name], dtype)
    scratch = f"{names[0]}@FOUND"
    meta.set(scratch, (len(labels),), VarType.INT64)
    kinds = {name: (len(meta.shapes[name]), to_numpy(meta.dtypes[name])) for name in names}
    return PendingShapes(scratch, labels, wanted, kinds)
