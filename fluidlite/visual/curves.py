"""`fluidlite plot LOGDIR`: the scalars of event files as one HTML page of curves."""

from __future__ import annotations

import math
import struct
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..base import callsite
from ..base.errors import NotSupportedError
from ..base.reports.profile_report import filled
from ..base.storage.files import write_file

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


MOST_POINTS = 1000
"""Most points of a drawn curve; longer ones are reduced to the minimum and maximum of each interval."""


def plot(given: Namespace) -> int:
    """Run `fluidlite plot`; returns the exit status."""
    output = Path(given.output or Path(given.logdir, "curves.html"))
    try:
        found = runs(given.logdir)
        write_file(output, page(found, str(given.logdir)), folders=False)
    except (NotSupportedError, OSError) as error:
        print(f"fluidlite plot: {error}", file=sys.stderr)
        return 2
    curves = sum(map(len, found.values()))
    print(f"{curves} curve{'s' * (curves != 1)} of {len(found)} run{'s' * (len(found) != 1)}: {output}")
    return 0


def page(found: dict[str, dict[str, Curve]], title: str) -> str:
    """The page of `found` (see `events.runs`): a chart for each tag, a line for each run."""
    tags = sorted({tag for run in found.values() for tag in run})
    data = {
        "title": title,
        "runs": sorted(found),
        "charts": [
            {"tag": tag, "lines": [_line(found[run].get(tag, [])) for run in sorted(found)]} for tag in tags
        ],
    }
    return filled(Path(__file__).with_name("curves.html"), data)


def _line(curve: Curve) -> list[list[Any]]:
    """[step, value or null, seconds since the first] of the points to draw."""
    start = curve[0][2] if curve else 0.0
    return [
        [step, value if math.isfinite(value) else None, round(time - start, 3)]
        for step, value, time in _decimated(curve)
    ]


def _decimated(curve: Curve) -> Curve:
    """At most MOST_POINTS points: the first and the last, the minimum and maximum of each interval.

    Of a stretch without any number its first point.
    """
    if len(curve) <= MOST_POINTS:
        return curve
    kept = {0, len(curve) - 1}
    width = 2 * len(curve) / (MOST_POINTS - 2)
    for stretch in range((MOST_POINTS - 2) // 2):
        places = range(int(stretch * width), min(int((stretch + 1) * width), len(curve)))
        numbers = [place for place in places if math.isfinite(curve[place][1])]
        if numbers:
            kept.add(min(numbers, key=lambda place: curve[place][1]))
            kept.add(max(numbers, key=lambda place: curve[place][1]))
        elif places:
            kept.add(places[0])
    return [curve[place] for place in sorted(kept)]
