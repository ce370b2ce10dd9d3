"""Reads the scalars of event files."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from ..base import callsite
from ..base.errors import NotSupportedError

Curve = list[tuple[int, float, float]]
"""(step, value, seconds since 1970), by step."""


def runs(folder: str | Path) -> dict[str, dict[str, Curve]]:
    """The curves below `folder`: {run: {tag: curve}}; a run is a folder with event files, named as seen from there.

    A file that ends in the middle of a record, as during training, is read up to there. A damaged one is read up to the
    damage, with a warning. Raises FileNotFoundError if there is no event file.
    """
    top = Path(folder)
    files = sorted(top.rglob("*tfevents*")) if top.is_dir() else []
    if not top.exists():
        raise FileNotFoundError(f"there is no folder {folder}")
    if not files:
        raise FileNotFoundError(
            f"{folder}: no event file (*tfevents*) in it; LogWriter({str(folder)!r}) writes some"
        )
    found: dict[str, dict[str, Curve]] = {}
    for file in files:
        run = found.setdefault(file.parent.relative_to(top).as_posix(), {})
        for tag, point in _scalars(file):
            run.setdefault(tag, []).append(point)
    for run in found.values():
        for curve in run.values():
            curve.sort(key=lambda point: point[0])
    return found


def _scalars(file: Path) -> Iterator[tuple[str, tuple[int, float, float]]]:
    """(tag, (step, value, time)) of each scalar."""
    try:
        from tensorboardX.proto.event_pb2 import Event
    except ImportError:
        raise NotSupportedError(
            "event files are read with tensorboardX, which is not installed: pip install 'fluidlite[visual]'"
        ) from None
    for record in _records(file):
        event = Event.FromString(record)
        for value in event.summary.value:
            if value.WhichOneof("value") == "simple_value":
                yield value.tag, (event.step, value.simple_value, event.wall_time)


def _records(file: Path) -> Iterator[bytes]:
    """The records of a file: the length in 8 bytes, a check of it in 4, the record, its check in 4."""
    left = file.stat().st_size
    with file.open("rb") as stream:
        while left >= 16:
            head = stream.read(12)
            length, check = struct.unpack("<QI", head)
            whole = _check(head[:8]) == check
            left -= 16 + length
            if whole and left < 0:
                return
            record = stream.read(length) if whole else b""
            if not whole or _check(record) != struct.unpack("<I", stream.read(4))[0]:
                callsite.warn(f"{file}: damaged; only the records before the damage are read")
                return
            yield record


def _check(data: bytes) -> int:
    """The masked CRC-32C of TFRecord files."""
    from tensorboardX.crc32c import crc32c

    code = crc32c(data)
    return ((code >> 15 | code << 17) + 0xA282EAD8) & 0xFFFFFFFF
