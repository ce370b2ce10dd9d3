"""Progress of training on the terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from .callback import Callback

__all__ = ["ProgBarLogger"]


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
