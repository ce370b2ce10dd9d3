"""Programs and parameters for inference in two files (`paddle.static`)."""

from __future__ import annotations

import os
from typing import Any

from ...fluid import io

__all__ = ["load_inference_model", "save_inference_model"]

_PROGRAM, _PARAMETERS = ".pdmodel", ".pdiparams"


def save_inference_model(
    path_prefix: str, feed_vars: Any, fetch_vars: Any, executor: Any, program: Any = None, **kwargs: Any
) -> None:
    """Save what computes `fetch_vars` from `feed_vars` (`paddle.static.save_inference_model`).

    Args:
        path_prefix: the files are `path_prefix.pdmodel`, the program, and `path_prefix.pdiparams`, its parameters.
        feed_vars: the variable that is fed, or several.
        fetch_vars: the variable that is computed, or several.
        executor: accepted.
        program: what they are taken from, by default the main program.
        kwargs: accepted.

    Errors are those of `fluid.io.save_inference_model`.
    """
    folder, name = _parts(path_prefix)
    feeds = feed_vars if isinstance(feed_vars, (list, tuple)) else [feed_vars]
    fetches = list(fetch_vars) if isinstance(fetch_vars, (list, tuple)) else [fetch_vars]
    names = [var.name for var in feeds]
    io.save_inference_model(folder, names, fetches, executor, program, name + _PROGRAM, name + _PARAMETERS)


def load_inference_model(path_prefix: str, executor: Any, **kwargs: Any) -> list[Any]:
    """`[program, names to feed, variables to fetch]` of what `save_inference_model` saved
    (`paddle.static.load_inference_model`). Errors are those of `fluid.io.load_inference_model`."""
    folder, name = _parts(path_prefix)
    return io.load_inference_model(folder, executor, name + _PROGRAM, name + _PARAMETERS)


def _parts(path_prefix: str) -> tuple[str, str]:
    folder, name = os.path.split(path_prefix)
    if not name:
        raise ValueError(f"path_prefix must end with a name, got {path_prefix!r}")
    return folder or os.curdir, name
