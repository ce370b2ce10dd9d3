"""Metrics over batches (`paddle.metric`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..eager import Tensor
from ..fluid import layers, metrics
from .modes import by_arguments, run
from .tensor.manipulation import unsqueeze
from .tensor.search import argmax

__all__ = ["Accuracy", "Auc", "Metric", "Precision", "Recall", "accuracy"]


def _array(value: Any) -> np.ndarray:
    return value._on_host if isinstance(value, Tensor) else np.asarray(value)


class Metric(ABC):
    """Base of metrics (`paddle.metric.Metric`): `reset`, then for each batch `update(*compute(pred, label))`, and
    `accumulate` for the result."""

    @abstractmethod
    def reset(self) -> None:
        """Forget all batches."""

    @abstractmethod
    def update(self, *args: Any) -> Any:
        """Add a batch: the results of `compute`, as arrays."""

    @abstractmethod
    def accumulate(self) -> Any:
        """The metric of all batches so far."""

    @abstractmethod
    def name(self) -> Any:
        """The name of the result, or a list of names."""

    def compute(self, *args: Any) -> Any:
        """Compute from a batch what `update` takes; by default the arguments themselves."""
        return args


class Accuracy(Metric):
    """The share of samples whose label is among the `topk` likeliest classes (`paddle.metric.Accuracy`).

    Args:
        topk: a number, or several for as many results.
        name: the name of the result; 'acc' by default ('acc_top1', ... for several).
    """

    def __init__(
        self, topk: int | Sequence[int] = (1,), name: str | None = None, *args: Any, **kwargs: Any
    ) -> None:
        self.topk = (topk,) if isinstance(topk, int) else tuple(topk)
        self.maxk = max(self.topk)
        stem = name or "acc"
        self._names = [stem] if len(self.topk) == 1 else [f"{stem}_top{k}" for k in self.topk]
        self.reset()

    def compute(self, pred: Any, label: Any, *args: Any) -> Any:
        """1 where one of the likeliest classes is the label, else 0: float32 [N, topk].

        `pred` is [N, classes], `label` class numbers [N] or [N, 1], or one-hot rows [N, classes].
        """
        likeliest = run(
            "top_k", {"X": pred}, ("Out", "Indices"), {"k": self.maxk}, stop_gradient=("Indices",)
        )[1]
        if len(label.shape) == 1:
            label = unsqueeze(label, -1)
        elif label.shape[-1] != 1:
            label = argmax(label, -1, keepdim=True)
        right = likeliest == label.astype("int64")
        return right.astype("float32")

    def update(self, correct: Any, *args: Any) -> Any:
        """Add a batch; returns its accuracy, a number or a list of one for each k."""
        right = _array(correct)
        count = int(np.prod(right.shape[:-1]))
        found = []
        for place, k in enumerate(self.topk):
            hits = float(right[..., :k].sum())
            self.total[place] += hits
            self.count[place] += count
            found.append(hits / count)
        return found[0] if len(self.topk) == 1 else found

    def reset(self) -> None:
        self.total = [0.0] * len(self.topk)
        self.count = [0] * len(self.topk)

    def accumulate(self) -> Any:
        """The accuracy so far, a number or a list of one for each k; 0 before the first batch."""
        found = [hits / count if count else 0.0 for hits, count in zip(self.total, self.count, strict=True)]
        return found[0] if len(self.topk) == 1 else found

    def name(self) -> list[str]:
        return self._names


class _Binary(Metric):
    """Counts of two classes."""

    _default: str

    def __init__(self, name: str | None = None, *args: Any, **kwargs: Any) -> None:
        self._name = name or self._default
        self.reset()

    def update(self, preds: Any, labels: Any) -> None:
        """Add a batch: probabilities and zeros and ones, of the same size."""
        chosen = _array(preds).reshape(-1) >= 0.5
        truths = _array(labels).reshape(-1) != 0
        if len(chosen) != len(truths):
            raise ValueError(f"{type(self).__name__} got {len(chosen)} predictions and {len(truths)} labels")
        self.tp += int((chosen & truths).sum())
        self.fp += int((chosen & ~truths).sum())
        self.fn += int((~chosen & truths).sum())

    def reset(self) -> None:
        self.tp = self.fp = self.fn = 0

    def name(self) -> str:
        return self._name


class Precision(_Binary):
    """The share of those found positive that are (`paddle.metric.Precision`); 0 while none was."""

    _default = "precision"

    def accumulate(self) -> float:
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else 0.0


class Recall(_Binary):
    """The share of positives that were found (`paddle.metric.Recall`); 0 while there were none."""

    _default = "recall"

    def accumulate(self) -> float:
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else 0.0


class Auc(Metric):
    """The area under the ROC curve (`paddle.metric.Auc`). `num_thresholds`: the number of bins of probabilities."""

    def __init__(
        self, curve: str = "ROC", num_thresholds: int = 4095, name: str = "auc", *args: Any, **kwargs: Any
    ) -> None:
        self._auc, self._name = metrics.Auc(name, curve, num_thresholds), name

    def update(self, preds: Any, labels: Any) -> None:
        """Add a batch: probabilities [N, 2] (the second is that of a positive) and zeros and ones [N, 1]."""
        self._auc.update(_array(preds), _array(labels))

    def accumulate(self) -> float:
        return self._auc.eval()

    def reset(self) -> None:
        self._auc.reset()

    def name(self) -> str:
        return self._name


def accuracy(
    input: Any, label: Any, k: int = 1, correct: Any = None, total: Any = None, name: str | None = None
) -> Any:
    """The share of rows of `input` whose `label` [N, 1] is among the `k` likeliest classes
    (`paddle.metric.accuracy`)."""
    if len(label.shape) == 1:
        label = unsqueeze(label, -1)
    return by_arguments(layers.accuracy)(input, label, k, correct, total)
