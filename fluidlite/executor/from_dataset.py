"""`Executor.train_from_dataset` and `infer_from_dataset`: a program over the batches of a data set."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Step = Callable[[dict[str, Any], list[Any]], list[Any]]
"""One step: feeds and fetches in, arrays out."""


class FetchHandler:
    """Looks at variables from time to time while `train_from_dataset` runs (`fluid.executor.FetchHandler`).

    Derive from it and override `handler`. `var_dict`: Variables by the names under which `handler` gets their arrays;
    `period_secs`: how many seconds are at least between two calls, which come between batches.
    """

    def __init__(self, var_dict: dict[str, Any] | None = None, period_secs: float = 60) -> None:
        assert var_dict is not None, "FetchHandler needs var_dict: a dict of Variables"
        self.var_dict = var_dict
        self.period_secs = period_secs

    def handler(self, res_dict: dict[str, np.ndarray]) -> None:
        """Called with the arrays; prints their first elements unless it is overridden."""
        for name, value in res_dict.items():
            print(f"{name}[0]: {np.asarray(value).reshape(-1)[:1]} ")


def run_over(
    dataset: Any,
    step: Step,
    fetch_list: Sequence[Any],
    fetch_info: Sequence[str],
    print_period: int,
    handler: FetchHandler | None,
) -> None:
    """Run `step` on each batch of `dataset`.

    Every `print_period` batches, from the first on, the values of `fetch_list` are printed behind `fetch_info`.
    """
    last = time.monotonic()
    for number, feed in enumerate(dataset._feeds()):
        shown = list(fetch_list) if fetch_list and number % print_period == 0 else []
        due = handler is not None and time.monotonic() - last >= handler.period_secs
        watched = dict(handler.var_dict) if handler is not None and due else {}
        values = step(feed, [*shown, *watched.values()])
        for info, value in zip(fetch_info, values, strict=False):
            if shown:
                print(f"{info}: {value}", flush=True)
        if handler is not None and due:
            handler.handler(dict(zip(watched, values[len(shown) :], strict=True)))
            last = time.monotonic()
