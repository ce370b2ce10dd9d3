"""Which parts of parameters to take out (`fluid.contrib.slim.prune.pruner`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....base import missing

__all__ = ["Pruner", "StructurePruner"]


class Pruner:
    """Base of pruners (`fluid.contrib.slim.prune.Pruner`)."""

    def prune(self, param: Any) -> Any:
        """What becomes of a parameter; nothing here."""


class StructurePruner(Pruner):
    """Takes the entries of one axis out that matter least (`fluid.contrib.slim.prune.StructurePruner`).

    Args:
        pruning_axis: name of a parameter -> axis; '*' stands for all that are not named.
        criterions: name of a parameter -> by what entries are compared, 'l1_norm'; '*' as above.
    """

    def __init__(self, pruning_axis: Mapping[str, int], criterions: Mapping[str, str]) -> None:
        self.pruning_axis = pruning_axis
        self.criterions = criterions

    def cal_pruned_idx(
        self, name: str, param: np.ndarray, ratio: float, axis: int | None = None
    ) -> np.ndarray:
        """The indices to take out of `param`, a part `ratio` of those of `axis` (the axis of `name` if None).

        Those with the smallest sums of magnitudes. Raises KeyError for a parameter that is not named, ValueError for
        another criterion.
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
        """A copy of `tensor` without the entries `pruned_idx` of an axis; with `lazy` itself, where they are 0 now."""
        if not lazy:
            return np.delete(tensor, pruned_idx, pruned_axis)
        np.moveaxis(tensor, pruned_axis, 0)[list(pruned_idx)] = 0
        return tensor


__getattr__ = missing.reporter(__name__)
