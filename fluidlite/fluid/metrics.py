"""Metrics kept in Python over many batches (`fluid.metrics`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import unique_name
from ..base.errors import public
from ..base.reports.texts import ShowsArguments
from ..framework import Program, Variable, program_guard
from . import layers
from .initializer import ConstantInitializer
from .layer_helper import LayerHelper

__all__ = [
    "Accuracy",
    "Auc",
    "ChunkEvaluator",
    "CompositeMetric",
    "DetectionMAP",
    "EditDistance",
    "MetricBase",
    "Precision",
    "Recall",
]


class MetricBase(ShowsArguments):
    """The base class of metrics: `update` with each batch, `eval` for the result, `reset` to start over.

    States are the attributes whose names do not begin with an underscore. Follows `fluid.metrics.MetricBase`.
    """

    def __init__(self, name: str | None) -> None:
        self._name = str(name) if name is not None else type(self).__name__

    def __str__(self) -> str:
        return self._name

    def _states(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def reset(self) -> None:
        """Set all states to zero."""
        for name, value in self._states().items():
            if isinstance(value, (int, float)):
                setattr(self, name, type(value)(0))
            elif isinstance(value, np.ndarray):
                setattr(self, name, np.zeros_like(value))
            else:
                setattr(self, name, None)

    def get_config(self) -> dict[str, Any]:
        """The name and a copy of the states."""
        states = {
            name: value.copy() if hasattr(value, "copy") else value for name, value in self._states().items()
        }
        return {"name": self._name, "states": states}

    def update(self, preds: Any, labels: Any) -> None:
        """Add a batch."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to add a batch; override update()")

    def eval(self) -> Any:
        """The metric of all batches so far."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it measures; override eval()")


def _array(value: Any, name: str) -> np.ndarray:
    if not isinstance(value, np.ndarray):
        raise ValueError(f"The '{name}' must be a numpy ndarray, got {type(value).__name__}.")
    return value


def _paired(preds: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """A prediction for each label, both as arrays; as in Fluid there may be more predictions, which do not count."""
    guesses, truths = _array(preds, "preds"), _array(labels, "labels").reshape(-1)
    if len(guesses) < len(truths):
        raise IndexError(
            f"there are {len(guesses)} predictions in 'preds' for {len(truths)} labels in 'labels'"
        )
    return guesses[: len(truths)], truths


def _number(value: Any, name: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number, np.ndarray)):
        raise ValueError(
            f"The '{name}' must be a number(int, float) or a numpy ndarray, got {type(value).__name__}."
        )
    return value


class CompositeMetric(MetricBase):
    """Several metrics fed with the same batches (`fluid.metrics.CompositeMetric`)."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._metrics: list[MetricBase] = []

    def add_metric(self, metric: MetricBase) -> None:
        """Add a metric; ValueError for anything else."""
        if not isinstance(metric, MetricBase):
            raise ValueError(f"SubMetric should be inherit from MetricBase, got {type(metric).__name__}.")
        self._metrics.append(metric)

    def reset(self) -> None:
        """Reset all metrics."""
        for metric in self._metrics:
            metric.reset()

    def update(self, preds: Any, labels: Any) -> None:
        """Update all metrics with predictions and labels."""
        for metric in self._metrics:
            metric.update(preds, labels)

    def eval(self) -> list[Any]:
        """The results of all metrics, in the order they were added."""
        return [metric.eval() for metric in self._metrics]


class _Counting(MetricBase):
    """Counts predictions of two classes: 1 where the probability is above one half."""

    def __init__(self, name: str | None, wrong: str) -> None:
        super().__init__(name)
        self._wrong = wrong
        self.tp = 0
        setattr(self, wrong, 0)

    def _count(self, preds: Any, labels: Any, wanted: str) -> None:
        probabilities, truths = _paired(preds, labels)
        guesses = np.rint(probabilities).astype("int32").reshape(-1)
        among = guesses == 1 if wanted == "guesses" else truths == 1
        hits = int((among & (guesses == truths)).sum())
        self.tp += hits
        setattr(self, self._wrong, getattr(self, self._wrong) + int(among.sum()) - hits)

    def eval(self) -> float:
        """The share of hits; 0 if there is nothing to divide by."""
        total = self.tp + getattr(self, self._wrong)
        return float(self.tp) / total if total else 0.0


class Precision(_Counting):
    """How many of those predicted positive are (`fluid.metrics.Precision`)."""

    fp: int

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name, "fp")

    def update(self, preds: Any, labels: Any) -> None:
        """Add a batch: probabilities [N, 1] and zeros and ones [N, 1], as arrays."""
        self._count(preds, labels, "guesses")


class Recall(_Counting):
    """How many of the positive are predicted so (`fluid.metrics.Recall`)."""

    fn: int

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name, "fn")

    def update(self, preds: Any, labels: Any) -> None:
        """Add a batch: probabilities [N, 1] and zeros and ones [N, 1], as arrays."""
        self._count(preds, labels, "truths")


class Accuracy(MetricBase):
    """The mean of the batches' accuracies, weighted by their sizes (`fluid.metrics.Accuracy`)."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.value: Any = 0.0
        self.weight: Any = 0.0

    def update(self, value: Any, weight: Any) -> None:  # type: ignore[override]
        """Add a batch: its accuracy (what `layers.accuracy` gives) and its size."""
        _number(value, "value")
        if np.any(_number(weight, "weight") < 0):
            raise ValueError("The 'weight' can not be negative")
        self.value = self.value + value * weight
        self.weight = self.weight + weight

    def eval(self) -> Any:
        """The mean so far; ValueError if there were no batches."""
        if np.all(self.weight == 0):
            raise ValueError(
                "There is no data in Accuracy Metrics. Please check layers.accuracy output has added to "
                "Accuracy."
            )
        return self.value / self.weight


class ChunkEvaluator(MetricBase):
    """Precision, recall and F1 of chunks, from the counts of `layers.chunk_eval`
    (`fluid.metrics.ChunkEvaluator`).
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.num_infer_chunks: Any = 0
        self.num_label_chunks: Any = 0
        self.num_correct_chunks: Any = 0

    def update(  # type: ignore[override]
        self, num_infer_chunks: Any, num_label_chunks: Any, num_correct_chunks: Any
    ) -> None:
        """Add the counts of a batch: numbers, or arrays of one."""
        self.num_infer_chunks = self.num_infer_chunks + _number(num_infer_chunks, "num_infer_chunks")
        self.num_label_chunks = self.num_label_chunks + _number(num_label_chunks, "num_label_chunks")
        self.num_correct_chunks = self.num_correct_chunks + _number(num_correct_chunks, "num_correct_chunks")

    def eval(self) -> tuple[Any, Any, Any]:
        """Precision, recall and F1 so far; zeros where there is nothing to divide by."""
        correct = self.num_correct_chunks
        precision = correct / self.num_infer_chunks if self.num_infer_chunks else 0
        recall = correct / self.num_label_chunks if self.num_label_chunks else 0
        return precision, recall, 2 * precision * recall / (precision + recall) if correct else 0


class EditDistance(MetricBase):
    """The mean edit distance, and the share of sequences with an error (`fluid.metrics.EditDistance`)."""

    def __init__(self, name: str | None) -> None:
        super().__init__(name)
        self.total_distance: Any = 0.0
        self.seq_num: Any = 0
        self.instance_error: Any = 0

    def update(self, distances: Any, seq_num: Any) -> None:  # type: ignore[override]
        """Add a batch: the distances [N, 1] and the number of sequences that `layers.edit_distance` gives."""
        wrong = int((_array(distances, "distances") > 0).sum())
        self.seq_num = self.seq_num + _number(seq_num, "seq_num")
        self.instance_error = self.instance_error + wrong
        self.total_distance = self.total_distance + float(distances.sum())

    def eval(self) -> tuple[Any, Any]:
        """Mean distance and share of wrong sequences so far; ValueError if there were none."""
        if np.all(self.seq_num == 0):
            raise ValueError(
                "There is no data in EditDistance Metric. Please check layers.edit_distance output has "
                "been added to "
                "EditDistance."
            )
        return self.total_distance / self.seq_num, self.instance_error / self.seq_num


@public
class NotProbability(AssertionError, ValueError):
    """A prediction is no probability; Fluid raises AssertionError."""


class Auc(MetricBase):
    """The area under the ROC curve (`fluid.metrics.Auc`).

    `num_thresholds`: the number of bins of probabilities. `curve`: kept, always ROC, as in Fluid.
    """

    def __init__(self, name: str | None, curve: str = "ROC", num_thresholds: int = 4095) -> None:
        super().__init__(name)
        self._curve = curve
        self._num_thresholds = num_thresholds
        self._stat_pos = np.zeros(num_thresholds + 1, "int64")
        self._stat_neg = np.zeros(num_thresholds + 1, "int64")

    def reset(self) -> None:
        """Forget all batches."""
        self._stat_pos[:] = 0
        self._stat_neg[:] = 0

    def update(self, preds: Any, labels: Any) -> None:
        """Add a batch: probabilities [N, 2] (the second is that of a positive) and zeros and ones [N, 1], as
        arrays.
        """
        scores, given = _paired(preds, labels)
        truths = given != 0
        scaled = scores[:, 1] * self._num_thresholds
        if not ((scaled >= 0) & (scaled < self._num_thresholds + 1)).all():
            raise NotProbability(f"'preds' must hold probabilities in [0, 1], got {scores[:, 1]}")
        buckets = scaled.astype("int64")
        np.add.at(self._stat_pos, buckets[truths], 1)
        np.add.at(self._stat_neg, buckets[~truths], 1)

    def eval(self) -> float:
        """The area of all batches so far; 0 until there were both positives and negatives."""
        hits = np.cumsum(self._stat_pos[::-1].astype(float))
        step = self._stat_neg[::-1].astype(float)
        whole = hits[-1] * step.sum()
        return float((step * (hits + np.concatenate([[0.0], hits[:-1]])) / 2).sum() / whole) if whole else 0.0


class DetectionMAP:
    """The mean average precision of found boxes, of a batch and of all batches (`fluid.metrics.DetectionMAP`).

    Kept by the program itself, in persistable variables: fetch what `get_map_var` returns.

    Args:
        input: found boxes, as of `layers.detection.detection_map`, like all arguments that are not said here.
        gt_label: classes [boxes, 1], with a sequence for each image.
        gt_box: corners [boxes, 4].
        gt_difficult: 1 for boxes that are difficult, [boxes, 1]; none by default.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.helper = LayerHelper("map_eval")
        self._build(*args, **kwargs)

    def _build(
        self,
        input: Variable,
        gt_label: Variable,
        gt_box: Variable,
        gt_difficult: Variable | None = None,
        class_num: int | None = None,
        background_label: int = 0,
        overlap_threshold: float = 0.5,
        evaluate_difficult: bool = True,
        ap_version: str = "integral",
    ) -> None:
        parts = [layers.cast(x=gt_label, dtype=gt_box.dtype)]
        if gt_difficult is not None:
            parts.append(layers.cast(x=gt_difficult, dtype=gt_box.dtype))
        label = layers.concat([*parts, gt_box], axis=1)
        options: Any = {
            "class_num": class_num,
            "background_label": background_label,
            "overlap_threshold": overlap_threshold,
            "evaluate_difficult": evaluate_difficult,
            "ap_version": ap_version,
        }
        self.cur_map = layers.detection.detection_map(input, label, **options)
        states = [
            self._create_state(suffix, dtype, None)
            for suffix, dtype in (
                ("accum_pos_count", "int32"),
                ("accum_true_pos", "float32"),
                ("accum_false_pos", "float32"),
            )
        ]
        self.has_state = self._create_has_state()
        self.helper.set_variable_initializer(self.has_state, ConstantInitializer(0))
        self.accum_map = layers.detection.detection_map(
            input, label, **options, has_state=self.has_state, input_states=states, out_states=states
        )
        layers.fill_constant(
            shape=self.has_state.shape, value=1, dtype=self.has_state.dtype, out=self.has_state
        )

    def _create_state(self, suffix: str, dtype: Any, shape: Any) -> Variable:
        name = "_".join([unique_name.generate(self.helper.name), suffix])
        state: Variable = self.helper.create_variable(name=name, persistable=True, dtype=dtype, shape=shape)
        return state

    def _create_has_state(self) -> Variable:
        return self._create_state("has_state", "int32", [1])

    def get_map_var(self) -> tuple[Variable, Variable]:
        """The metric of a batch and that of all batches since `reset`, float32 [1] each."""
        return self.cur_map, self.accum_map

    def reset(self, executor: Any, reset_program: Program | None = None) -> None:
        """Forget all batches, by a program of its own or at the end of `reset_program`, which is run."""
        program = Program() if reset_program is None else reset_program
        with program_guard(main_program=program):
            var = program.current_block()._clone_variable(self.has_state)
            layers.fill_constant(shape=var.shape, value=0, dtype=var.dtype, out=var)
        executor.run(program)
