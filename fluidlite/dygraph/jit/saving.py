"""Traced programs as inference models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...executor import scope_guard
from ...io import save_inference_model
from .traced import Traced


def save(
    traced: Traced,
    dirname: str,
    feed: Sequence[int] | None = None,
    fetch: Sequence[int] | None = None,
    model_filename: str | None = None,
    params_filename: str | None = None,
) -> None:
    """Write the program with the current values of its parameters, for `fluid.io.load_inference_model`.

    `feed`, `fetch`: indices of the inputs and outputs to keep, all by default. Raises IndexError for an index out of
    range, TypeError for anything but an integer.
    """
    feeds = [var.name for var in _selected(traced.inputs, feed, "feed")]
    traced.refresh()
    with scope_guard(traced.scope):
        save_inference_model(
            dirname,
            feeds,
            _selected(traced.outputs, fetch, "fetch"),
            None,
            traced.program,
            model_filename,
            params_filename,
        )


def _selected(items: list[Any], numbers: Sequence[int] | None, what: str) -> list[Any]:
    if numbers is None:
        return list(items)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"{what} holds the numbers of inputs or outputs, got {number!r}")
        if not 0 <= number < len(items):
            raise IndexError(f"{what} asks for number {number}, but the model has {len(items)}")
    return [items[number] for number in numbers]
