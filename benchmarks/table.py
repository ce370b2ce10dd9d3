"""How fast are the tutorial, networks and larger models, with which instruction set and how many threads?

One table of networks.py, models.py, eager.py (rows "eager") and tutorial.py, each run with the best instruction set of
the machine and with AVX2, on one thread and on several. A cell has our time in milliseconds, how often that is the
floor (what a step takes at least, see floors.py), how many times that the best peer takes, and which that is; and how
the goal comes out where it is not met. The last column is how much faster more threads are, with either instruction
set. torch.compile and Paddle 3 take part on one thread; the first has to compile all networks in the first run. Paddle
1.8.5, whose steps of larger models take twice to four times as long as PyTorch's, takes part in the tutorial and in
networks.py.

    FLUIDLITE_DATA=DIR python benchmarks/table.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import eager
import models
import networks
import sides

SETS = {"best": [], "AVX2": ["--isa", "avx2"]}
TUTORIAL = {"tutorial, whole process": sides.Goal(times=15)}
ROWS: dict[str, sides.Goal] = {
    **TUTORIAL,
    **networks.GOALS,
    **models.GOALS,
    **{
        f"eager: {name}": sides.Goal(times=1, peer=sides.TORCH) for name in eager.SCRIPTS if "8x8" not in name
    },
}
THREADED = ("lenet", "resnet-20", "resnet-50", "encoder")
FASTER = 1.7
"""What a second thread is to gain, for these."""
PER_MILLISECOND = {unit: count / 1e3 for unit, count in sides.UNITS.items()}


@dataclass
class Cell:
    """A row with one instruction set and number of threads: medians by side, and the floor, in milliseconds."""

    medians: dict[str, float]
    floor: float | None

    def text(self, goal: sides.Goal) -> str:
        """The figures, in words where they miss the goal."""
        ours = self.medians[sides.OURS]
        parts = [sides.figure(ours)]
        if self.floor:
            parts.append(f"{ours / self.floor:.2f} floors")
        peers = {name: value for name, value in self.medians.items() if name != sides.OURS}
        if peers:
            best = min(peers, key=lambda name: peers[name])
            parts.append(f"{sides.ratio(peers[best], ours)} {best}")
        verdict = goal.verdict(self.medians, self.floor).rpartition(": ")[2]
        return ", ".join([*parts, *([verdict.lower()] if peers and verdict != "met" else [])])


def run(script: str, *args: str) -> dict[str, Cell]:
    """The cells that a benchmark gives with these arguments."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "values.json")
        command = [sys.executable, str(sides.HERE / script), "--json", str(file), *args]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        notes = [line for line in done.stdout.splitlines() if "note:" in line or "floors:" in line]
        print(" ".join([script, *args]), *notes, sep="\n", file=sys.stderr)
        if not file.exists():
            raise SystemExit(f"{script} has failed:\n{done.stdout}")
        found = json.loads(file.read_text(encoding="utf8"))
    each = PER_MILLISECOND.get(found["unit"], PER_MILLISECOND["seconds"])
    return {
        row: Cell(
            {side: value / each for side, value in values.items()},
            found["floors"].get(row, 0.0) / each or None,
        )
        for row, values in found["medians"].items()
        if sides.OURS in values
    }


def measured(options: argparse.Namespace, isa: str, threads: int) -> dict[str, Cell]:
    """One column of the table."""
    common = [*SETS[isa], "--threads", str(threads), "--rounds", str(options.rounds)]
    for name in ("paddle", "paddle3", "torch") if threads == 1 else ("paddle", "torch"):
        if getattr(options, name):
            common += [f"--{name}", getattr(options, name)]
    if options.no_peers:
        common.append("--no-peers")
    timed = [*common, "--seconds", str(options.seconds), "--clock", options.clock]
    chosen = [row for row in options.only or ROWS if row not in TUTORIAL]
    cells = {}
    if options.tutorial and threads == 1:
        found = run("tutorial.py", *common, "--mode", "iterable")
        cells["tutorial, whole process"] = found["iterable: wall, s"]
    small = [] if threads == 1 else ["--without-paddle"]
    compiled = ["--compile"] if options.compile and threads == 1 else []
    for script, goals, more in (
        ("networks.py", networks.GOALS, [*small, *compiled]),
        ("models.py", models.GOALS, ["--without-paddle", *compiled]),
    ):
        names = [row for row in chosen if row in goals]
        if names:
            cells.update(run(script, *timed, *more, *(part for name in names for part in ("--only", name))))
    names = [row.removeprefix("eager: ") for row in chosen if row.startswith("eager: ")]
    if names and threads == 1:
        only = [part for name in names for part in ("--only", name)]
        found = run("eager.py", *timed, "--without-paddle", *only)
        cells.update({f"eager: {name}": found[name] for name in names})
    return cells


def gain(one: Cell | None, several: Cell | None, side: str) -> str | None:
    """How much less time a side takes with several threads."""
    if one is None or several is None or side not in one.medians or side not in several.medians:
        return None
    return sides.ratio(one.medians[side], several.medians[side])


def main() -> int:
    parser = sides.parser(__doc__, rounds=1)
    sides.add_clock(parser)
    parser.set_defaults(threads=2)
    parser.add_argument(
        "--seconds",
        type=float,
        default=0.2,
        help="time of measuring per network and turn (default: %(default)s)",
    )
    parser.add_argument("--only", choices=[*ROWS], action="append", help="this row (can be repeated)")
    parser.add_argument("--compile", action="store_true", help="torch.compile too, which takes minutes once")
    options = parser.parse_args()
    options.tutorial = not options.only or any(row in TUTORIAL for row in options.only)
    begin = time.perf_counter()
    counts = list(dict.fromkeys((1, options.threads)))
    columns = {(isa, threads): measured(options, isa, threads) for threads in counts for isa in SETS}
    rows = []
    for row, goal in ROWS.items():
        if not any(row in cells for cells in columns.values()):
            continue
        line = [row, goal.text()]
        line += [cells[row].text(goal) if row in cells else "" for cells in columns.values()]
        gains = []
        for isa in SETS:
            one, several = (columns[isa, threads].get(row) for threads in (1, counts[-1]))
            ours, theirs = (gain(one, several, side) for side in (sides.OURS, sides.TORCH))
            if ours and len(counts) > 1:
                gains.append(f"{ours} (PyTorch {theirs})" if theirs else ours)
        if row in THREADED and gains:
            gains.append(f"goal {FASTER}x")
        rows.append([*line, ", ".join(gains)])
    head = [
        "fluidlite, ms",
        "goal",
        *(f"{isa}, {threads} thread(s)" for isa, threads in columns),
        "more threads",
    ]
    print(f"\nmilliseconds of a step; {sides.machine(options)}; in {time.perf_counter() - begin:.0f} s\n")
    for text in sides.table(head, rows):
        print(text)
    if options.json:
        content = {
            "machine": sides.machine(options),
            "medians": {row: columns["best", 1][row].medians for row in ROWS if row in columns["best", 1]},
            "columns": {
                f"{isa}, {threads}": {row: [cell.medians, cell.floor] for row, cell in cells.items()}
                for (isa, threads), cells in columns.items()
            },
        }
        Path(options.json).write_text(json.dumps(content, indent=1) + "\n", encoding="utf8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
