"""What the benchmarks share: the sides that are compared, alternating runs of them, and the table of medians.

A side is one framework: an interpreter with the arguments that make it run a script. A measured script prints one line
`RESULT {"metric": [value, ...], ...}`; sides run in turn, round after round, so that a slow minute of the
machine hits all of them, and the medians over all values are compared. Nothing heavy is imported here: the peak
memory of a child counts from what its parent had.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from floors import Floors

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SCRIPTS = HERE / "scripts"
OURS = "fluidlite"
PADDLE = "Paddle 1.8.5"
PADDLE3 = "Paddle 3"
TORCH = "PyTorch"
COMPILED = "torch.compile"
BEST = "the best peer"
MARK = "RESULT "
WORK = "WORK "
UNITS = {"seconds": 1.0, "milliseconds": 1e3, "microseconds": 1e6}
INSTRUCTION_SETS = {
    "avx512": {},
    "avx2": {
        "FLUIDLITE_ISA": "avx2",
        "OPENBLAS_CORETYPE": "Haswell",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
    },
    "baseline": {
        "FLUIDLITE_ISA": "baseline",
        "OPENBLAS_CORETYPE": "Nehalem",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "ATEN_CPU_CAPABILITY": "default",
    },
}
"""What keeps kernels, BLAS and oneDNN of all sides to one instruction set: variables of the environment."""

Values = dict[str, list[float]]


class SideFailed(Exception):
    """A measured script ended with an error; the message holds the end of what it printed."""


@dataclass
class Side:
    """One framework in a comparison: `run(name)` runs benchmarks/scripts/`name` with it."""

    name: str
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)
    floors: Floors = field(default_factory=Floors)

    @property
    def torch(self) -> bool:
        """Whether it is PyTorch, eager or compiled."""
        return self.name in (TORCH, COMPILED)

    def environment(self) -> dict[str, str]:
        """The environment variables its processes get."""
        return {**os.environ, **self.env}

    def start(
        self, script: str | Path, *args: str, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start a script (a path, or a name in benchmarks/scripts) with its output in a pipe."""
        command = [*self.command, str(SCRIPTS / script), *args]
        full = {**self.environment(), **(env or {})}
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=full, cwd=HERE
        )

    def values(self, script: str, *args: str) -> Values:
        """Run a measured script to its end and return the metrics it printed; what it says of floors is kept.

        Raises SideFailed with the last lines of its output if it fails or prints no result.
        """
        process = self.start(script, *args)
        output, _ = process.communicate()
        for line in output.splitlines():
            if line.startswith(WORK):
                self.floors.add(json.loads(line[len(WORK) :]))
        lines = [line for line in output.splitlines() if line.startswith(MARK)]
        if process.returncode or not lines:
            raise SideFailed(f"{self.name}: {script} ended with status {process.returncode}\n{tail(output)}")
        return json.loads(lines[-1][len(MARK) :])


def tail(output: str, lines: int = 12) -> str:
    """The last lines of a child's output, indented."""
    return "\n".join("    " + line for line in output.splitlines()[-lines:])


def parser(description: str | None, rounds: int) -> argparse.ArgumentParser:
    """The arguments every benchmark takes; `description` is the docstring of the benchmark."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = made.add_argument
    add(
        "--paddle",
        metavar="PYTHON",
        default=os.environ.get("FLUIDLITE_PADDLE"),
        help="interpreter of an environment with real Paddle 1.8.5 (default: $FLUIDLITE_PADDLE; skipped if neither)",
    )
    add(
        "--torch",
        metavar="PYTHON",
        default=os.environ.get("FLUIDLITE_TORCH"),
        help="interpreter with PyTorch (default: $FLUIDLITE_TORCH, else this one if torch is installed in it)",
    )
    add(
        "--paddle3",
        metavar="PYTHON",
        default=os.environ.get("FLUIDLITE_PADDLE3"),
        help="interpreter with Paddle 3, for networks and the 2.0 API (default: $FLUIDLITE_PADDLE3; else skipped)",
    )
    add("--without-paddle", action="store_true", help="leave Paddle 1.8.5 out")
    add("--no-peers", action="store_true", help="measure fluidlite alone")
    add("--rounds", type=int, default=rounds, help="turns each side gets (default: %(default)s)")
    add(
        "--threads",
        type=int,
        default=1,
        help="threads of OpenMP and BLAS on every side (default: %(default)s)",
    )
    add(
        "--isa",
        choices=tuple(INSTRUCTION_SETS),
        help="instruction set that every side keeps to (default: the best of the machine)",
    )
    add("--json", metavar="FILE", help="write all values, medians and ratios to this file as well")
    return made


def steps_parser(description: str | None) -> argparse.ArgumentParser:
    """The arguments of benchmarks whose scripts time steps by `timing.blocks` or `timing.each`."""
    made = parser(description, rounds=3)
    add_clock(made)
    return made


def timed_parser(description: str | None, names: Sequence[str], seconds: float) -> argparse.ArgumentParser:
    """The arguments of benchmarks that measure some of `names` for some seconds each."""
    made = steps_parser(description)
    made.add_argument(
        "--seconds",
        type=float,
        default=seconds,
        help="time of measuring per network and turn (default: %(default)s)",
    )
    made.add_argument("--only", choices=names, action="append", help="measure this network (can be repeated)")
    return made


def add_clock(parser: argparse.ArgumentParser) -> None:
    """The argument of benchmarks whose scripts look at `timing.clock`."""
    parser.add_argument(
        "--clock",
        choices=("wall", "processor"),
        default="wall",
        help="which time: that of the processor is disturbed less by other programs (default: %(default)s)",
    )


def loader_parser(
    description: str | None, batches: int, epochs: int, sources: Sequence[str]
) -> argparse.ArgumentParser:
    """The arguments of benchmarks that read epochs of batches from `sources`."""
    made = parser(description, rounds=3)
    made.add_argument(
        "--batches", type=int, default=batches, help="batches of an epoch (default: %(default)s)"
    )
    made.add_argument(
        "--epochs", type=int, default=epochs, help="epochs measured per turn (default: %(default)s)"
    )
    made.add_argument(
        "--only", choices=sources, action="append", help="measure this source (can be repeated)"
    )
    return made


def find(
    options: argparse.Namespace, torch: bool = True, paddle3: bool = False, paddle: bool = True
) -> list[Side]:
    """The sides that can be measured here, ours first; says which ones are skipped.

    `torch`, `paddle3`, `paddle`: whether there is something to measure for them.
    """
    threads = str(options.threads)
    quiet = {
        "CPU_NUM": "1",
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
    }
    quiet.update(INSTRUCTION_SETS.get(options.isa, {}))
    quiet["BENCHMARK_CLOCK"] = getattr(options, "clock", "wall")
    if "FLUIDLITE_DATA" in os.environ:
        quiet["FLUIDLITE_DATA"] = os.path.abspath(os.environ["FLUIDLITE_DATA"])
    ours = dict(quiet)
    if (
        options.threads == 1 or quiet["BENCHMARK_CLOCK"] == "wall"
    ):  # a processor's time has no rates of several threads
        ours["BENCHMARK_FLOOR"] = "1"
    if not _importable("fluidlite"):
        ours["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    sides = [Side(OURS, [sys.executable, "-m", "fluidlite"], ours)]
    if options.no_peers:
        return sides
    paddle = paddle and not options.without_paddle
    if paddle and options.paddle:
        sides.append(Side(PADDLE, [options.paddle], {**quiet, "GLOG_minloglevel": "2"}))
    elif paddle:
        print("note: Paddle 1.8.5 is skipped; name its interpreter with --paddle or FLUIDLITE_PADDLE")
    if torch:
        python = options.torch or (sys.executable if _importable("torch") else None)
        if python:
            sides.append(Side(TORCH, [python], dict(quiet)))
            if getattr(options, "compile", False):
                sides.append(Side(COMPILED, [python], {**quiet, "BENCHMARK_COMPILE": "1"}))
        else:
            print(
                "note: PyTorch is skipped; install torch or name an interpreter with --torch or FLUIDLITE_TORCH"
            )
    if paddle3 and options.paddle3:
        sides.append(Side(PADDLE3, [options.paddle3], {**quiet, "GLOG_minloglevel": "2"}))
    elif paddle3:
        print("note: Paddle 3 is skipped; name its interpreter with --paddle3 or FLUIDLITE_PADDLE3")
    return sides


def _importable(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def alternate(
    sides: Sequence[Side], rounds: int, measure: Callable[[Side], Values]
) -> tuple[dict[str, Values], list[str]]:
    """Run `measure` on every side in turn, `rounds` times.

    Returns side name -> metric -> all values, and the names of the sides that failed (each is told about once and then
    left out).
    """
    found: dict[str, Values] = {side.name: {} for side in sides}
    failed: list[str] = []
    for number in range(rounds):
        for side in sides:
            if side.name in failed:
                continue
            print(f"round {number + 1} of {rounds}: {side.name}", file=sys.stderr)
            try:
                measured = measure(side)
            except SideFailed as error:
                print(f"note: {error}")
                failed.append(side.name)
                continue
            for metric, values in measured.items():
                found[side.name].setdefault(metric, []).extend(values)
    return {name: values for name, values in found.items() if values}, failed


@dataclass(frozen=True)
class Goal:
    """What fluidlite aims at: at most `limit` (in the metric's unit), or at least `times` less than `peer`."""

    limit: float | None = None
    times: float | None = None
    peer: str = PADDLE

    def text(self) -> str:
        """The goal in words."""
        return f"<= {self.limit:g}" if self.limit is not None else f">= {self.times:g}x {self.peer}"

    def verdict(self, medians: Mapping[str, float], floor: float | None = None) -> str:
        """The goal in words with how it came out; `medians` by side, and `floor`, are those of one metric.

        A missed goal below the floor is one that nobody can meet here.
        """
        text = self.text()
        if self.limit is not None:
            needed = self.limit
        else:
            assert self.times is not None
            peers = dict(medians) if self.peer == BEST else {self.peer: medians.get(self.peer)}
            found = [value for name, value in peers.items() if name != OURS and value is not None]
            if not found:
                return f"{text} (not measured)"
            needed = min(found) / self.times
        if medians[OURS] <= needed:
            return f"{text}: met"
        return f"{text}: {'BELOW THE FLOOR' if floor is not None and floor > needed else 'MISSED'}"


def report(
    options: argparse.Namespace,
    title: str,
    unit: str,
    results: Mapping[str, Values],
    failed: Sequence[str] = (),
    goals: Mapping[str, Goal] | None = None,
    extra: Mapping[str, object] | None = None,
    floors: Floors | None = None,
) -> int:
    """Print the table of medians and ratios, with floors where they are known; write the JSON file if asked.

    Returns the exit status: 1 when our own side failed, 0 otherwise: a missed goal is a figure, not a failure.
    """
    goals = goals or {}
    names = list(results)
    peers = [name for name in names if name != OURS]
    metrics = list(dict.fromkeys(metric for values in results.values() for metric in values))
    medians = {
        metric: {
            name: statistics.median(results[name][metric]) for name in names if results[name].get(metric)
        }
        for metric in metrics
    }
    low = {}
    for metric in metrics if floors is not None else ():
        seconds = floors.seconds(metric)
        if seconds is not None:
            low[metric] = seconds * UNITS[unit]
    head = ["", *names, *(f"{peer} / ours" for peer in peers)]
    head += ["floor", "ours / floor", *(["best peer / floor"] if peers else [])] if low else []
    rows = []
    for metric in metrics:
        row, floor = medians[metric], low.get(metric)
        cells = [metric, *(figure(row.get(name)) for name in names)]
        cells += [ratio(row.get(peer), row.get(OURS)) for peer in peers]
        if low:
            cells += [figure(floor), ratio(row.get(OURS), floor)]
            best = min((row[peer] for peer in peers if peer in row), default=None)
            cells += [ratio(best, floor)] if peers else []
        rows.append([*cells, goals[metric].verdict(row, floor) if metric in goals and OURS in row else ""])
    print(
        f"\n{title}: medians in {unit}\n{machine(options)}\n{floors.rates() if low else ''}\n".rstrip(), "\n"
    )
    for line in table([*head, "goal"], rows):
        print(line)
    if options.json:
        content = {
            "title": title,
            "unit": unit,
            "machine": machine(options),
            "medians": medians,
            "floors": low,
            "values": results,
            **(extra or {}),
        }
        Path(options.json).write_text(json.dumps(content, indent=1) + "\n", encoding="utf8")
    return 1 if OURS in failed else 0


def figure(value: float | None) -> str:
    """A number with three or four digits that mean something; '-' for none."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def ratio(theirs: float | None, ours: float | None) -> str:
    """Theirs over ours, '-' where either is missing."""
    if not theirs or not ours:
        return "-"
    times = theirs / ours
    return f"{times:,.0f}x" if times >= 100 else f"{times:.3g}x"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table with aligned columns, figures to the right."""
    lines = [head, *rows]
    widths = [max(3, *(len(line[k]) for line in lines)) for k in range(len(head))]

    def shown(line: Sequence[str]) -> str:
        cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
        cells[0] = line[0].ljust(widths[0])
        cells[-1] = line[-1].ljust(widths[-1])
        return "| " + " | ".join(cells) + " |"

    rule = [
        ":" + "-" * (widths[0] - 1),
        *("-" * (w - 1) + ":" for w in widths[1:-1]),
        ":" + "-" * (widths[-1] - 1),
    ]
    return [shown(head), "| " + " | ".join(rule) + " |", *(shown(row) for row in rows)]


def machine(options: argparse.Namespace) -> str:
    """The processor, its number of cores as this process sees them, the threads used and the Python that runs us."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = [
            line for line in cpuinfo.read_text(encoding="utf8").splitlines() if line.startswith("model name")
        ]
        model = found[0].split(":", 1)[1].strip() if found else model
    return (
        f"{os.cpu_count()} cores {model}, {options.threads} thread(s), {options.isa or 'best'} instructions, "
        f"{getattr(options, 'clock', 'wall')} time, Python {platform.python_version()}"
    )
