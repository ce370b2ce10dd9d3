"""Selection of the entries of parameters to prune (`fluid.contrib.slim.prune.pruner`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....base import missing

__all__ = ["Pruner", "StructurePruner"]


class Pruner:
    """Base of pruners (`fluid.contrib.slim.prune.Pruner`)."""

    def prune(self, param: Any) -> Any:
        """Prune a parameter; subclasses define it."""


class StructurePruner(Pruner):
    """Prunes the entries of an axis with the smallest norms (`fluid.contrib.slim.prune.StructurePruner`).

    Args:
        pruning_axis: name of a parameter -> axis; '*' stands for all others.
        criterions: name of a parameter -> criterion, 'l1_norm'; '*' as above.
    """

    def __init__(self, pruning_axis: Mapping[str, int], criterions: Mapping[str, str]) -> None:
        self.pruning_axis = pruning_axis
        self.criterions = criterions

    def cal_pruned_idx(
        self, name: str, param: np.ndarray, ratio: float, axis: int | None = None
    ) -> np.ndarray:
        """The indices of the entries of `param` with the smallest norms, the fraction `ratio` of those along `axis`.

        `axis`: that of `name` in `pruning_axis` if None.

        Raises KeyError for a parameter without an axis or criterion, ValueError for an unknown criterion.
        """
        criterion = self.criterions[name if name in self.criterions else "*"]
        if criterion != "l1_norm":
            raise ValueError(f"entries of {name} can be compared by 'l1_norm', got {criterion!r}")
        if axis is None:
            axis = self.pruning_axis[name if name in self.pruning_axis else "*"]
        count = int(round(param.shape[axis] * ratio))
        sums = np.abs(param).sum(axis=tuple(other for other in range(param.ndim) if other != axis))
        return sums.argsort()[:count]

    def prune_tensor(
        self, tensor: np.ndarray, pruned_idx: Sequence[int], pruned_axis: int, lazy: bool = False
    ) -> np.ndarray:
        """A copy of `tensor` without the entries `pruned_idx` of an axis; with `lazy`, `tensor` with zeros there."""
        if not lazy:
            return np.delete(tensor, pruned_idx, pruned_axis)
        np.moveaxis(tensor, pruned_axis, 0)[list(pruned_idx)] = 0
        return tensor


__getattr__ = missing.reporter(__name__)
