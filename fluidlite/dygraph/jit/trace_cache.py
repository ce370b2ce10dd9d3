"""`Traces`: the traces of a function for arguments that differ in the shapes of their tensors only."""

from __future__ import annotations

from collections.abc import Callable

from .open_shapes import OpenShapes, Shapes
from .traced import Traced

SHAPES_KEPT = 256
"""For how many shapes it is remembered which of the traces with open dimensions fits."""


class Traces:
    """Finds and makes traces: the first for the very shapes it is asked for, from the second on one for all sizes.

    What differs between the shapes seen so far is left open. Where the code asks for the number that such a dimension
    is, it is traced for each number, and for each outcome where it compares.
    """

    def __init__(self) -> None:
        self._exact: dict[Shapes, Traced] = {}
        self._open: list[Traced] = []
        self._remembered: dict[Shapes, Traced] = {}
        self._first: Shapes | None = None
        self._axes: set[tuple[int, int]] = set()
        self._closed = False

    def find(self, shapes: Shapes) -> Traced | None:
        """A trace for tensors of these shapes, if there is one."""
        found = self._exact.get(shapes) or self._remembered.get(shapes)
        if found is not None:
            return found
        for traced in reversed(self._open):
            if traced.open_shapes is not None and traced.open_shapes.fit(shapes):
                if len(self._remembered) >= SHAPES_KEPT:
                    self._remembered.clear()
                self._remembered[shapes] = traced
                return traced
        return None

    def make(self, shapes: Shapes, trace: Callable[[OpenShapes | None], Traced]) -> Traced:
        """A new trace for these shapes, by `trace`, which is given those that are to be left open, if any."""
        if self._first is None:
            self._first = shapes
        for k, (one, other) in enumerate(zip(self._first, shapes, strict=True)):
            self._axes.update((k, axis) for axis, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
        if self._axes and not self._closed:
            try:
                traced = trace(OpenShapes(shapes, self._axes))
            except Exception:
                # The code takes nothing but integers for a shape, or it fails: if so, it will again.
                self._closed = True
            else:
                assert traced.open_shapes is not None
                self._closed = not traced.open_shapes.varies
                self._open.append(traced)
                return traced
        traced = self._exact[shapes] = trace(None)
        return traced

    def forget(self, traced: Traced) -> None:
        """Keep `traced` no longer."""
        self._open = [one for one in self._open if one is not traced]
        for found in (self._exact, self._remembered):
            for shapes in [shapes for shapes, one in found.items() if one is traced]:
                del found[shapes]
