"""`TraceCache`: the traces of a function for arguments that differ only in the shapes of their tensors."""

from __future__ import annotations

from collections.abc import Callable

from .dynamic_shapes import DynamicShapes, Shapes
from .traced import Traced

SHAPES_KEPT = 256
"""The size of the cache from shapes to the dynamic-shape trace that is valid for them."""


class TraceCache:
    """Finds and makes traces: the first is specialised on its shapes, later ones have dynamic dimensions.

    Dimensions that differ between the calls so far are dynamic. Where the code needs the number of such a dimension, it
    is traced for each number; where it compares, for each outcome.
    """

    def __init__(self) -> None:
        self._exact: dict[Shapes, Traced] = {}
        self._dynamic: list[Traced] = []
        self._remembered: dict[Shapes, Traced] = {}
        self._first: Shapes | None = None
        self._axes: set[tuple[int, int]] = set()
        self._closed = False

    def find(self, shapes: Shapes) -> Traced | None:
        """The trace that is valid for tensors of these shapes, or None."""
        cached = self._exact.get(shapes) or self._remembered.get(shapes)
        if cached is not None:
            return cached
        for traced in reversed(self._dynamic):
            if traced.dynamic_shapes is not None and traced.dynamic_shapes.fit(shapes):
                if len(self._remembered) >= SHAPES_KEPT:
                    self._remembered.clear()
                self._remembered[shapes] = traced
                return traced
        return None

    def make(self, shapes: Shapes, trace: Callable[[DynamicShapes | None], Traced]) -> Traced:
        """Trace for these shapes, by `trace`, whose argument holds the dynamic dimensions, None without any."""
        if self._first is None:
            self._first = shapes
        for k, (one, other) in enumerate(zip(self._first, shapes, strict=True)):
            self._axes.update((k, axis) for axis, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
        if self._axes and not self._closed:
            try:
                traced = trace(DynamicShapes(shapes, self._axes))
            except Exception:
                # The code needs integers as shapes, or fails in any case; then the trace below raises as well.
                self._closed = True
            else:
                assert traced.dynamic_shapes is not None
                self._closed = not traced.dynamic_shapes.varies
                self._dynamic.append(traced)
                return traced
        traced = self._exact[shapes] = trace(None)
        return traced

    def forget(self, traced: Traced) -> None:
        """Remove `traced` from the cache."""
        self._dynamic = [one for one in self._dynamic if one is not traced]
        for cache in (self._exact, self._remembered):
            for shapes in [shapes for shapes, one in cache.items() if one is traced]:
                del cache[shapes]
