"""Draw how many times as long the best peer takes: an SVG of the figures that `table.py --json` writes.

A row for each network: bars for the best instruction set of the machine and for AVX2, on one thread, from 1x on a
logarithmic scale; then the ratio and our time with the best set. The picture follows the reader's colour scheme.

    python benchmarks/table.py --json docs/img/speed.json
    python benchmarks/chart.py docs/img/speed.json docs/img/speed.svg
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import textwrap
from collections import Counter
from html import escape
from pathlib import Path
from typing import Any

import sides

SETS = {"best, 1": "best instruction set", "AVX2, 1": "AVX2"}
WIDTH, TOP, ROW, LEFT, BAR = 390, 62, 24, 174, 118
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 14px; }
.note { font-size: 11px; fill: #59636e; }
.page { fill: #ffffff; }
.best { fill: #3949ab; } .avx2 { fill: #9fa8da; }
.tick { stroke: #d1d9e0; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .note { fill: #9198a1; }
  .page { fill: #0d1117; }
  .best { fill: #8c9eff; } .avx2 { fill: #4a56a6; }
  .tick { stroke: #3d444d; }
}
"""


def best_peer(medians: dict[str, float]) -> str:
    """The name of the quickest side that is not ours."""
    return min((name for name in medians if name != sides.OURS), key=lambda name: medians[name])


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    """A line of text; `kind` is a class of STYLE."""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(content)}</text>'


def draw(figures: dict[str, Any]) -> str:
    """The SVG of the rows of `figures["columns"]` in which a peer took part."""
    columns = {name: figures["columns"][name] for name in SETS if name in figures["columns"]}
    first = next(iter(columns.values()))
    rows = [row for row, (medians, _) in first.items() if len(medians) > 1]
    times: dict[str, dict[str, float]] = {row: {} for row in rows}
    peers: dict[str, str] = {}
    for name, column in columns.items():
        for row in rows:
            if row in column:
                medians, _ = column[row]
                peers.setdefault(row, best_peer(medians))
                times[row][name] = medians[best_peer(medians)] / medians[sides.OURS]
    low, *_, high = sorted([1.0, *(value for each in times.values() for value in each.values())])

    def place(value: float) -> float:
        return round(LEFT + BAR * math.log(value / low) / (math.log(high / low) or 1.0), 1)

    usual = Counter(peers.values()).most_common(1)[0][0]
    others = "".join(f"; {row}: {peer}" for row, peer in peers.items() if peer != usual)
    captions = f"Best peer: {usual}{others}", figures.get("machine", "")
    notes = [line for caption in captions for line in textwrap.wrap(caption, 64)]
    bottom = TOP + ROW * len(rows)
    height = bottom + 18 * len(notes) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>How many times as long the best peer takes</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="6"/>',
        text(8, 20, "How many times as long the best peer takes", "title"),
    ]
    for number, name in enumerate(columns):
        x = 8.0 + 150 * number
        parts.append(f'<rect class="{name.split(",")[0].lower()}" x="{x:g}" y="31" width="12" height="10"/>')
        parts.append(text(x + 17, 40, SETS[name]))
    for tick in (tick for tick in (1, 2, 4, 8, 16, 32) if low <= tick <= high):
        x = place(tick)
        parts.append(f'<line class="tick" x1="{x:g}" x2="{x:g}" y1="{TOP - 6}" y2="{bottom}"/>')
        parts.append(text(x, TOP - 10, f"{tick}x", "note", "middle"))
    parts.append(text(WIDTH - 8, TOP - 10, "ours, ms", "note", "end"))
    for number, row in enumerate(rows):
        y = TOP + ROW * number
        parts.append(text(LEFT - 6, y + 14, row, anchor="end"))
        for name, (offset, height) in zip(columns, ((2, 10), (13, 6)), strict=False):
            if value := times[row].get(name):
                begin, end = sorted((place(1), place(value)))
                shape = f'x="{begin:g}" y="{y + offset}" width="{end - begin:.1f}" height="{height}"'
                parts.append(f'<rect class="{name.split(",")[0].lower()}" {shape}/>')
        ratio = next(iter(times[row].values()))
        parts.append(text(LEFT + BAR + 42, y + 14, f"{ratio:.3g}x", anchor="end"))
        parts.append(text(WIDTH - 8, y + 14, sides.figure(first[row][0][sides.OURS]), "note", "end"))
    parts += [text(8, bottom + 18 * (number + 1), line, "note") for number, line in enumerate(notes)]
    return "\n".join([*parts, "</svg>", ""])


def command() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("figures", type=Path, help="what table.py --json wrote")
    parser.add_argument("picture", type=Path, help="the SVG file to write")
    files = parser.parse_args()
    files.picture.write_text(draw(json.loads(files.figures.read_text(encoding="utf8"))), encoding="utf8")
    return 0


if __name__ == "__main__":
    sys.exit(command())
