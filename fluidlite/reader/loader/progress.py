"""Progress bars over loaders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def with_progress(epoch: Iterator[Any], total: int | None, options: dict[str, Any]) -> Iterator[Any]:
    """Wrap `epoch` in a bar that counts batches up to `total`, or shows their number and rate if that is None.

    `options` are those of `tqdm.tqdm`. The epoch ends with the iterator, also when the loop is left early.
    """
    from tqdm import tqdm  # slow to import

    return _counted(epoch, tqdm, {"total": total, "unit": "batch", **options})


def _counted(epoch: Iterator[Any], tqdm: Any, options: dict[str, Any]) -> Iterator[Any]:
    try:
        with tqdm(**options) as bar:
            for batch in epoch:
                yield batch
                bar.update()
    finally:
        close = getattr(epoch, "close", None)
        if close is not None:
            close()
