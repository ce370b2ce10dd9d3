"""Callbacks of a model during training, evaluation and prediction, and its progress on the terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...fluid.layers.checks import check_choice
from ..optimizer.lr import LRScheduler as Schedule

__all__ = [
    "Callback",
    "EarlyStopping",
    "LRScheduler",
    "ModelCheckpoint",
    "ProgBarLogger",
    "ReduceLROnPlateau",
    "all_of",
]


class Callback:
    """Base of callbacks: override what you need (`paddle.callbacks.Callback`).

    There is a `on_MODE_begin(logs)`, `on_MODE_end(logs)`, `on_MODE_batch_begin(step, logs)` and
    `on_MODE_batch_end(step, logs)` for the modes `train`, `eval` and `predict`, and `on_epoch_begin(epoch, logs)` and
    `on_epoch_end(epoch, logs)`. `logs` is a dict of losses and metrics, and of steps and batch sizes. `self.model` is
    the model, `self.params` the arguments of `fit`: 'epochs', 'steps', 'verbose', 'metrics', 'save_dir', ...
    """

    model: Any = None
    params: dict[str, Any] = {}

    def set_params(self, params: dict[str, Any]) -> None:
        """Called first, with the arguments of `fit`."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Called first, with the model."""
        self.model = model

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None: ...
    def on_train_end(self, logs: dict[str, Any] | None = None) -> None: ...
    def on_eval_begin(self, logs: dict[str, Any] | None = None) -> None: ...
    def on_eval_end(self, logs: dict[str, Any] | None = None) -> None: ...
    def on_predict_begin(self, logs: dict[str, Any] | None = None) -> None: ...
    def on_predict_end(self, logs: dict[str, Any] | None = None) -> None: ...
    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None: ...
    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None: ...
    def on_train_batch_begin(self, step: int, logs: dict[str, Any] | None = None) -> None: ...
    def on_train_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None: ...
    def on_eval_batch_begin(self, step: int, logs: dict[str, Any] | None = None) -> None: ...
    def on_eval_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None: ...
    def on_predict_batch_begin(self, step: int, logs: dict[str, Any] | None = None) -> None: ...
    def on_predict_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None: ...

    def close(self) -> None:
        """Called when all is over, also after an error."""


def _text(value: Any) -> str:
    numbers = np.asarray(value, dtype=float).reshape(-1)
    return " ".join(
        f"{number:.4f}" if abs(number) > 1e-3 or number == 0 else f"{number:.4e}" for number in numbers
    )


class ProgBarLogger(Callback):
    """Prints losses and metrics (`paddle.callbacks.ProgBarLogger`).

    Args:
        log_freq: after how many batches.
        verbose: 0: not at all; 1: a progress bar for each epoch on a terminal, otherwise as 2;
            2: a line each `log_freq` batches and at the end.
    """

    def __init__(self, log_freq: int = 1, verbose: int = 2) -> None:
        if log_freq < 1:
            raise ValueError(f"log_freq must be at least 1, got {log_freq}")
        self.log_freq, self.verbose = log_freq, verbose
        self._bar: Any = None
        self._began = 0.0
        self._total: int | None = None
        self._done = self._samples = 0
        self._last_line = 0

    def _start(self, total: int | None, title: str) -> None:
        self._began, self._total = time.perf_counter(), total
        self._done, self._samples, self._last_line = 0, 0, 0
        if not self.verbose:
            return
        self._bar = _bar(total, title) if self.verbose == 1 else None
        if self._bar is None:
            print(title)

    def _advance(self, step: int, logs: dict[str, Any] | None) -> None:
        self._done = step + 1
        self._samples += (logs or {}).get("batch_size", 0)
        if self._bar is not None:
            self._bar.set_postfix_str(self._values(logs), refresh=False)
            self._bar.update()
        elif self.verbose and self._done % self.log_freq == 0:
            self._line(logs)

    def _finish(self, logs: dict[str, Any] | None) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(self._values(logs))
            self._bar.close()
            self._bar = None
        elif self.verbose and self._last_line != self._done:
            self._line(logs)

    def _values(self, logs: dict[str, Any] | None) -> str:
        names = self.params.get("metrics", ())
        return " - ".join(f"{name}: {_text(logs[name])}" for name in names if logs and name in logs)

    def _line(self, logs: dict[str, Any] | None) -> None:
        self._last_line = self._done
        each = (time.perf_counter() - self._began) / max(self._done, 1)
        total = f"/{self._total}" if self._total is not None else ""
        parts = [f"step {self._done:>{len(str(self._total or 0))}}{total}", self._values(logs)]
        parts.append(f"{each * 1e3:.0f}ms/step" if each >= 1e-3 else f"{each * 1e6:.0f}us/step")
        print(" - ".join(part for part in parts if part), flush=True)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._start(self.params.get("steps"), f"Epoch {epoch + 1}/{self.params.get('epochs')}")

    def on_train_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None:
        self._advance(step, logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._finish(logs)

    def on_eval_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._start((logs or {}).get("steps"), "Eval begin...")

    def on_eval_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None:
        self._advance(step, logs)

    def on_eval_end(self, logs: dict[str, Any] | None = None) -> None:
        self._finish(logs)
        if self.verbose:
            print(f"Eval samples: {self._samples}", flush=True)

    def on_predict_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._start((logs or {}).get("steps"), "Predict begin...")

    def on_predict_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None:
        self._advance(step, logs)

    def on_predict_end(self, logs: dict[str, Any] | None = None) -> None:
        self._finish(logs)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _bar(total: int | None, title: str) -> Any:
    """A bar on the terminal or in a notebook; None for files and pipes."""
    if not (sys.stdout.isatty() or "ipykernel" in sys.modules):
        return None
    from tqdm import tqdm  # slow to import

    return tqdm(total=total, desc=title, unit="step", file=sys.stdout, leave=True)


class _All:
    """Several callbacks as one, called in their order."""

    def __init__(self, callbacks: Sequence[Any]) -> None:
        self.callbacks = list(callbacks)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith(("on_", "set_", "close")):
            raise AttributeError(name)

        def call(*args: Any) -> None:
            for callback in self.callbacks:
                getattr(callback, name)(*args)

        return call


def all_of(model: Any, callbacks: Any, params: dict[str, Any], training: bool) -> Any:
    """The user's callbacks, one or several, with those that are there in any case: the log, and when `training` the
    saving of checkpoints and the steps of the learning rate."""
    if callbacks is None:
        given = []
    else:
        given = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]

    def has(kind: type) -> bool:
        return any(isinstance(callback, kind) for callback in given)

    if params["verbose"] and not has(ProgBarLogger):
        given.insert(0, ProgBarLogger(params["log_freq"], params["verbose"]))
    if training:
        if not has(LRScheduler):
            given.append(LRScheduler())
        if not has(ModelCheckpoint):
            given.append(ModelCheckpoint(params["save_freq"], params["save_dir"]))
    found = _All(given)
    found.set_model(model)
    found.set_params(params)
    return found


class ModelCheckpoint(Callback):
    """Saves the model (`paddle.callbacks.ModelCheckpoint`).

    Args:
        save_freq: after how many epochs, as `save_dir/EPOCH`; at the end as `save_dir/final`.
        save_dir: the folder; None: nothing is saved.
    """

    def __init__(self, save_freq: int = 1, save_dir: str | None = None) -> None:
        self.save_freq, self.save_dir = save_freq, save_dir

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self.save_dir is not None and epoch % self.save_freq == 0:
            self.model.save(os.path.join(self.save_dir, str(epoch)))

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        if self.save_dir is not None:
            self.model.save(os.path.join(self.save_dir, "final"))


class LRScheduler(Callback):
    """Steps the optimizer's schedule (`paddle.callbacks.LRScheduler`): after each batch, or after each epoch.

    Raises ValueError if both are wanted.
    """

    def __init__(self, by_step: bool = True, by_epoch: bool = False) -> None:
        if by_step and by_epoch:
            raise ValueError("the schedule steps by_step or by_epoch, not both")
        self.by_step, self.by_epoch = by_step, by_epoch

    def _step(self) -> None:
        schedule = getattr(self.model._optimizer, "_learning_rate", None)
        if isinstance(schedule, Schedule):
            schedule.step()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self.by_epoch:
            self._step()

    def on_train_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None:
        if self.by_step:
            self._step()


class _Watching(Callback):
    """Base of callbacks that watch whether a metric improves from evaluation to evaluation."""

    def __init__(self, monitor: str, mode: str, patience: int, verbose: int, min_delta: float) -> None:
        check_choice(mode, "mode", ("auto", "min", "max"), type(self).__name__)
        self.monitor, self.patience, self.verbose = monitor, patience, verbose
        self.rising = mode == "max" or (mode == "auto" and "acc" in monitor)
        self.min_delta = abs(min_delta)
        self.wait = 0
        self.best = float("-inf") if self.rising else float("inf")

    def _value(self, logs: dict[str, Any] | None) -> float | None:
        """The number watched; None, with a warning, if it is not among the logs."""
        if logs is None or self.monitor not in logs:
            print(f"{type(self).__name__} watches {self.monitor!r}, but there are only {sorted(logs or ())}")
            return None
        return float(np.asarray(logs[self.monitor]).reshape(-1)[0])

    def _better(self, value: float) -> bool:
        gain = value - self.best if self.rising else self.best - value
        return gain > self.min_delta


class EarlyStopping(_Watching):
    """Ends training when evaluations get no better (`paddle.callbacks.EarlyStopping`).

    Args:
        monitor: 'loss' or the name of a metric.
        mode: 'min', 'max', or 'auto': 'max' for accuracies.
        patience: how many evaluations without progress are borne.
        verbose: whether it says that it stops.
        min_delta: how much better is better.
        baseline: what the first one must beat.
        save_best_model: whether the best model is saved as `best_model` in the `save_dir` of `fit`.
    """

    def __init__(
        self,
        monitor: str = "loss",
        mode: str = "auto",
        patience: int = 0,
        verbose: int = 1,
        min_delta: float = 0,
        baseline: float | None = None,
        save_best_model: bool = True,
    ) -> None:
        super().__init__(monitor, mode, patience, verbose, min_delta)
        self.baseline, self.save_best_model = baseline, save_best_model
        self.stopped_epoch = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.wait = 0
        worst = float("-inf") if self.rising else float("inf")
        self.best = worst if self.baseline is None else self.baseline
        self.epoch = 0

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.epoch = epoch

    def on_eval_end(self, logs: dict[str, Any] | None = None) -> None:
        value = self._value(logs)
        if value is None:
            return
        if self._better(value):
            self.best, self.wait = value, 0
            folder = self.params.get("save_dir")
            if self.save_best_model and folder is not None:
                self.model.save(os.path.join(folder, "best_model"))
            return
        self.wait += 1
        if self.wait >= self.patience:
            self.model.stop_training = True
            self.stopped_epoch = self.epoch
            if self.verbose:
                print(f"Epoch {self.epoch + 1}: Early stopping, {self.monitor} was best at {self.best:.5g}.")


class ReduceLROnPlateau(_Watching):
    """Lowers the learning rate when evaluations get no better (`paddle.callbacks.ReduceLROnPlateau`).

    Args:
        monitor, mode, patience, verbose, min_delta: as for `EarlyStopping`.
        factor: what the rate is multiplied by.
        cooldown: how many evaluations after that do not count.
        min_lr: the rate does not get lower.
    """

    def __init__(
        self,
        monitor: str = "loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 1,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
    ) -> None:
        super().__init__(monitor, mode, patience, verbose, min_delta)
        if factor >= 1.0:
            raise ValueError(f"factor of ReduceLROnPlateau must be less than 1, got {factor}")
        self.factor, self.cooldown, self.min_lr = factor, cooldown, min_lr
        self.resting = 0

    def on_eval_end(self, logs: dict[str, Any] | None = None) -> None:
        value = self._value(logs)
        if value is None:
            return
        if self._better(value):
            self.best, self.wait = value, 0
        elif self.resting:
            self.resting -= 1
        else:
            self.wait += 1
            if self.wait >= self.patience:
                self._lower()

    def _lower(self) -> None:
        optimizer = self.model._optimizer
        rate = max(optimizer.get_lr() * self.factor, self.min_lr)
        optimizer.set_lr(rate)
        self.wait, self.resting = 0, self.cooldown
        if self.verbose:
            print(f"{self.monitor} got no better: the learning rate is {rate:.5g} now.")
