"""`fluidlite plot LOGDIR`: the curves of a folder of runs as one HTML page."""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from ..base.errors import NotSupportedError
from ..base.reports.pages import filled
from ..base.storage.files import write_file
from .events import Curve, runs

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
