"""Progress bars over loaders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...base.errors import NotSupportedError


def with_progress(epoch: Iterator[Any], total: int | None, options: dict[str, Any]) -> Iterator[Any]:
    """Wrap `epoch` in a bar that counts batches up to `total`; `options` are those of `tqdm.tqdm`.

    The epoch ends with the iterator, also when the loop is left early. Raises NotSupportedError at once if tqdm is not
    installed.
    """
    try:
        from tqdm import tqdm
    except ImportError:
        raise NotSupportedError(
            "progress bars need the package tqdm, which is not installed: pip install tqdm, or iterate without progress"
        ) from None
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
