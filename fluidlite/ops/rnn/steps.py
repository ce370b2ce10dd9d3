"""The rows of sequences ordered by time, as recurrent operators go through them, and their activations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..registry import OpView
from . import unit as recurrent_unit
from .unit import ACTIVATIONS

NATIVE = {"identity": 0, "relu": 1, "sigmoid": 2, "tanh": 3}
"""The numbers of activations in native kernels."""


def activate(xp: Any, x: Any, name: str) -> Any:
    """An activation in operators on sequences, where Fluid takes sigmoids of nothing below -40 or above 13."""
    return recurrent_unit.activate(xp, xp.clip(x, -40, 13) if name == "sigmoid" else x, name)


class Steps:
    """Packed rows: the first rows of all sequences, the longest first, then their second rows, and so on.

    `order`: the sequences, the longest first. `counts`: how many rows each step has; the sequences that have ended are
    at the end of those of the step before. `source`: for each packed row that of X.
    """

    def __init__(self, offsets: np.ndarray, reverse: bool) -> None:
        lengths = np.diff(offsets)
        self.order = np.argsort(-lengths, kind="stable")
        longest = int(lengths.max(initial=0))
        self.counts = [int(np.count_nonzero(lengths > t)) for t in range(longest)]
        self.first = np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])
        starts, ends = offsets[:-1][self.order], offsets[1:][self.order]
        steps = [ends[:n] - 1 - t if reverse else starts[:n] + t for t, n in enumerate(self.counts)]
        self.source = np.concatenate([np.zeros(0, np.int64), *steps])

    def __len__(self) -> int:
        return len(self.counts)

    def of(self, packed: Any, t: int) -> Any:
        """The rows of step `t`."""
        return packed[self.first[t] : self.first[t + 1]]

    def packed(self, xp: Any, x: Any) -> Any:
        """Rows of X in the order of steps."""
        return x[xp.asarray(self.source)]

    def unpacked(self, xp: Any, steps: Sequence[Any], width: int, dtype: Any) -> Any:
        """The rows that steps have made, in X's order."""
        return self.joined(xp, steps, width, dtype)[xp.asarray(np.argsort(self.source))]

    def joined(self, xp: Any, steps: Sequence[Any], width: int, dtype: Any) -> Any:
        """The rows that steps have made, packed."""
        return xp.concatenate([xp.zeros((0, width), dtype), *steps])

    def before(self, xp: Any, packed: Any, initial: Any) -> Any:
        """For each packed row that of the previous step; for the first step the row of `initial` (None: zeros)."""
        first = self.start(xp, initial, packed.shape[1], packed.dtype)
        earlier = [self.of(packed, t - 1)[: self.counts[t]] for t in range(1, len(self))]
        return xp.concatenate([first[: self.counts[0] if self.counts else 0], *earlier])

    def start(self, xp: Any, initial: Any, width: int, dtype: Any) -> Any:
        """Initial states in the order of steps; zeros without any."""
        if initial is None:
            return xp.zeros((len(self.order), width), dtype)
        return initial[xp.asarray(self.order)]

    def initial_grad(self, xp: Any, first: Any) -> Any:
        """The gradients of initial states from those of the first step; zeros for empty sequences."""
        ended = xp.zeros((len(self.order) - len(first), first.shape[1]), first.dtype)
        return xp.concatenate([first, ended])[xp.asarray(np.argsort(self.order, kind="stable"))]


def check_activations(op: OpView, *names: str) -> None:
    """Raise the operator's error unless the attributes `names` are activations that recurrent operators have."""
    for name in names:
        if op.attr(name) not in ACTIVATIONS:
            raise op.fail(f"{name} must be one of {', '.join(ACTIVATIONS)}, got {op.attr(name)!r}")


def check_width(op: OpView, slot: str, width: int) -> None:
    """Raise the operator's error unless an input, if there is one, is a matrix of this width."""
    if not op.has(slot):
        return
    shape = op.shape(slot)
    if len(shape) != 2 or (shape[1] != width and min(shape[1], width) >= 0):
        raise op.fail(f"{slot} must be of shape [-1, {width}], got {list(shape)}")


def check_initial(op: OpView, slot: str) -> None:
    """Raise the operator's error unless there are as many initial states as sequences; no check without LoD."""
    if not op.has(slot) or not op.lod("Input"):
        return
    count, rows = op.sequences("Input"), op.shape(slot)[0]
    if rows != count:
        raise op.fail(f"{slot} must have a row for each of the {count} sequences of Input, got {rows}")
