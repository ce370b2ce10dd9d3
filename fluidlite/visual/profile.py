"""`fluidlite profile SCRIPT`: where the time and the memory of a run went, as one HTML page."""

from __future__ import annotations

import os
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..base.reports import profiling
from ..base.reports.profile_report import filled, write_trace
from ..base.reports.profiling import Kind, Lane, ProfilerState, Recorder, Row, Span
from ..base.storage.files import write_file
from ..paddle import hook, script
from ..reader.loader.stats import to_read_faster

PARTS = (
    "computing",
    "executor",
    "copying",
    "waiting",
    "reading",
    "collating",
    "sending",
    "trainers",
    "script",
)
"""The categories of time. Executor: overhead outside operators; script: time without any record."""

COLUMNS = 300
"""The number of intervals of the whole time in the strips of the page."""
CLOSE = 500
"""Most spans of a thread in the detailed view."""
FEW = 10
"""With fewer steps, time between them is not analysed."""

_NAMED = {
    "DataLoader.next": "waiting", "reading": "reading", "collating": "collating", "sending": "sending",
    profiling.TRAINERS: "trainers",
}  # fmt: skip
_OF_KIND = {Kind.OPERATOR: "computing", Kind.COPY: "copying", Kind.OTHER: "executor"}
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

Segment = tuple[int, int, str]
"""Begin and end in nanoseconds of `time.perf_counter_ns`, and the category."""


def profile(given: Namespace) -> int:
    """Run `fluidlite profile`; returns the exit status of the script."""
    output = Path(given.output or f"{Path(given.script).resolve().stem}.profile.html").resolve()
    wrong = script.problem(given.script)
    if not wrong and not output.parent.is_dir():
        wrong = f"there is no folder {output.parent} for the page"  # checked before a long run, not after it
    if wrong:
        print(f"fluidlite profile: {wrong}", file=sys.stderr)
        return 2
    status, end = 1, ""
    run = Run()
    hook.install()
    try:
        status = script.run(partial(script.from_file, given.script, given.args))
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        end = str(error.code) if isinstance(error.code, str) else ""
    finally:
        run.stop()
    if end:
        print(end, file=sys.stderr)
    words = " ".join([Path(given.script).name, *given.args])
    trace = output.with_suffix(".json")
    try:
        write_file(output, page(run, words, status), folders=False)
        write_trace(run.recorder, trace)
    except OSError as error:
        print(f"fluidlite profile: {error}", file=sys.stderr)
        return status or 2
    for sentence in Report(run).sentences():
        print(sentence, file=sys.stderr)
    print(f"profile: {output}\ntrace for https://ui.perfetto.dev: {trace}", file=sys.stderr)
    return status


class Run:
    """Records of a run from construction to `stop`: spans of time, statistics of loaders, memory."""

    def __init__(self) -> None:
        self.recorder = Recorder(ProfilerState.kAll, detailed=True)
        self.memory: list[tuple[int, int, int]] = []
        """(time, bytes of this process, bytes of its worker processes)."""
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._look, name="memory of the profile", daemon=True)
        self.begin = time.perf_counter_ns()
        self.end = self.begin
        self._watch.start()
        profiling.switch(self.recorder)

    def stop(self) -> None:
        """Stop recording."""
        profiling.switch(None)
        self.end = time.perf_counter_ns()
        self._done.set()
        self._watch.join()

    def _look(self) -> None:
        pause = 0.02
        while True:
            own, others = _resident(os.getpid()), sum(map(_resident, _children()))
            self.memory.append((time.perf_counter_ns(), own, others))
            if len(self.memory) >= 2 * COLUMNS:  # a long run: half as often from now on
                del self.memory[1::2]
                pause *= 2
            if self._done.wait(pause):
                return


def _resident(process: int) -> int:
    """The resident memory of a process in bytes; 0 if unknown."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _children() -> list[int]:
    """The child processes of this process."""
    try:
        found = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    except OSError:
        return []
    return [int(number) for number in found]


def part_of(name: str, kind: Kind) -> str:
    """The category of a span: one of `PARTS`."""
    return _NAMED.get(name) or _OF_KIND[kind]


def segments(spans: Iterable[Span]) -> Iterator[Segment]:
    """The nested spans of a thread as disjoint segments: each instant belongs to the innermost span."""
    open_spans: list[tuple[int, str]] = []
    at = 0
    for span in sorted(spans, key=lambda span: (span.begin, -span.length)):
        while open_spans and open_spans[-1][0] <= span.begin:
            end, part = open_spans.pop()
            if end > at:
                yield at, end, part
                at = end
        if open_spans and span.begin > at:
            yield at, span.begin, open_spans[-1][1]
        at = max(at, span.begin)
        open_spans.append((span.begin + span.length, part_of(span.name, span.kind)))
    while open_spans:
        end, part = open_spans.pop()
        if end > at:
            yield at, end, part
            at = end


def columns(found: Iterable[Segment], begin: int, end: int, count: int = COLUMNS) -> list[dict[str, float]]:
    """The share of each part, from 0 to 1, in each of `count` intervals between `begin` and `end`."""
    width = max(end - begin, 1) / count
    made: list[dict[str, float]] = [{} for _ in range(count)]
    for first, last, part in found:
        first, last = max(first, begin), min(last, end)
        for k in range(int((first - begin) / width), min(int((last - begin) / width), count - 1) + 1):
            low = max(first, begin + k * width)
            high = min(last, begin + (k + 1) * width)
            if high > low:
                made[k][part] = made[k].get(part, 0.0) + (high - low) / width
    return made


def of_workers(heard: Sequence[tuple[int, Sequence[float]]]) -> list[Segment]:
    """Segments of the worker processes of one name, from the clocks (seconds working, sending, idle) in their messages.

    A clock that goes back is that of the next process.
    """
    made: list[Segment] = []
    one: list[tuple[int, Sequence[float]]] = []
    for when, clock in heard:
        if one and sum(clock) < sum(one[-1][1]):
            made += _of_worker(one)
            one = []
        one.append((when, clock))
    return [*made, *_of_worker(one)]


def _of_worker(heard: Sequence[tuple[int, Sequence[float]]]) -> Iterator[Segment]:
    """Segments of one worker. Its clock's origin is the latest for which no message arrives before it was sent."""
    start = min((when - int(1e9 * sum(clock)) for when, clock in heard), default=0)
    worked = sent = 0.0
    for _, clock in heard:
        end = start + int(1e9 * sum(clock))
        middle = end - int(1e9 * (clock[1] - sent))
        yield middle - int(1e9 * (clock[0] - worked)), middle, "reading"
        yield middle, end, "sending"
        worked, sent = clock[0], clock[1]


class Report:
    """The analysis of a run for the page."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.seconds = max(run.end - run.begin, 1) / 1e9
        self.lanes = [lane for lane in run.recorder.lanes if lane.rows]
        self.main = next((lane for lane in self.lanes if lane.name == "MainThread"), Lane("MainThread"))
        self.loaders = [stats for loader in run.recorder.loaders if (stats := loader.stats())["batches"]]

    def parts(self) -> dict[str, float]:
        """Seconds of the main thread by part."""
        found = dict.fromkeys(PARTS, 0.0)
        for row in self.main.rows.values():
            found[part_of(row.name, row.kind)] += row.host / 1e9
        found["script"] = max(self.seconds - sum(found.values()), 0.0)
        return found

    def work(self) -> dict[str, float]:
        """Seconds of the main thread by part; waiting for trainers is replaced by their average activity meanwhile.

        Their unrecorded time counts as executor: they wait for the GIL.
        """
        found = self.parts()
        waited = found.pop("trainers")
        lanes = [lane for lane in self.lanes if lane.name.startswith(profiling.TRAINER)]
        count = len({lane.name for lane in lanes})
        for lane in lanes:
            for row in lane.rows.values():
                took = row.host / 1e9 / count
                found[part_of(row.name, row.kind)] += took
                waited -= took
        found["executor"] += max(waited, 0.0)
        return found

    def operators(self) -> list[Row]:
        """The operators of all threads, that with the most time first."""
        merged: dict[str, Row] = {}
        for lane in self.lanes:
            for row in lane.rows.values():
                if row.kind is Kind.OPERATOR:
                    merged.setdefault(row.name, Row(row.name, row.kind)).merge(row)
        return sorted(merged.values(), key=lambda row: -(row.host + row.device))

    def threads(self) -> dict[str, list[Span]]:
        """The spans of each thread by its name, the main thread first; threads of one name are joined."""
        found: dict[str, list[Span]] = {self.main.name: []}
        for lane in self.lanes:
            found.setdefault(lane.name, []).extend(lane.spans)
        return found

    def named(self, name: str) -> list[Span]:
        """The spans of that name, as they began."""
        found = [span for lane in self.lanes for span in lane.spans if span.name == name]
        return sorted(found, key=lambda span: span.begin)

    def steps(self) -> list[Span]:
        """The runs of programs; without any, the spans from one update of eager parameters to the next."""
        runs = self.named(profiling.STEP)
        if runs:
            return runs
        updates = self.named(profiling.UPDATE)
        ends = [span.begin + span.length for span in updates]
        begin = min((span.begin for lane in self.lanes for span in lane.spans), default=0)
        return [
            Span(profiling.UPDATE, Kind.OTHER, since, end - since)
            for since, end in zip([begin, *ends], ends, strict=False)
        ]

    def sentences(self) -> list[str]:
        """Summary sentences: the work done, the bottleneck with advice, the memory."""
        return [self._done(), self._bottleneck(), self._memory()]

    def _done(self) -> str:
        steps = sorted(span.length for span in self.steps())
        said = f"The script took {_seconds(self.seconds)}"
        if steps:
            middle, longest = steps[(len(steps) - 1) // 2] / 1e9, steps[-1] / 1e9
            what = "ran programs" if self.named(profiling.STEP) else "updated parameters"
            said += f" and {what} {_times(len(steps))}"
            if len(steps) > 1:
                said += f", half of them in at most {_seconds(middle)}, the slowest in {_seconds(longest)}"
        batches, samples = (sum(stats[name] for stats in self.loaders) for name in ("batches", "samples"))
        if batches:
            said += f"; loaders gave it {batches:,} batches" + (f" of {samples:,} samples" if samples else "")
        return said + "."

    def _bottleneck(self) -> str:
        parts = self.work()
        reading = parts["waiting"] + parts["reading"] + parts["collating"]
        shares = {
            "reading": reading,
            "computing": parts["computing"] + parts["copying"],
            "executor": parts["executor"],
            "script": parts["script"],
        }
        of = "of the time"
        seconds, before = self.seconds, self._before_steps()
        if before > seconds / 10:
            shares["script"] = max(shares["script"] - before, 0.0)
            seconds -= before
            of += f" after the {_seconds(before)} before the first step"
        most = max(shares, key=lambda name: shares[name])
        share = f"{shares[most] / seconds:.0%} {of}"
        if most == "reading" and parts["reading"] > parts["waiting"]:
            return (
                f"Reading is the bottleneck: {share} went to it, beside no step. A DataLoader reads while "
                "the program computes; of files, an InMemoryDataset reads once for all epochs."
            )
        if most == "reading":
            said = f"Reading is the bottleneck: the main thread waited for data {share}"
            slow = max(self.loaders, key=lambda stats: stats["consumer_waited"], default=None)
            return f"{said}; {to_read_faster(slow)}." if slow else f"{said}."
        if most == "computing":
            total = sum(row.host + row.device for row in self.operators()) or 1
            named = [
                f"{row.name} ({(row.host + row.device) / total:.0%})"
                for row in self.operators()[:3]
                if row.host
            ]
            return f"Computing is the bottleneck: operators take {share}, most of all {_listed(named)}."
        if most == "executor":
            return (
                f"What goes on around the operators takes most, {share}: making plans for programs and "
                "shapes that are new, feeds and fetches. Fewer fetches, and fewer programs that differ, help."
            )
        said = f"The script's own Python takes most, {share}: "
        if len(self.steps()) < FEW:
            return f"{said}what it does beside so few steps, above all importing. Longer runs say more."
        if self.loaders:
            return f"{said}what it does between steps (converting, printing, making loaders)."
        return (
            f"{said}what it does between steps (reading without a loader, converting, printing). "
            "A DataLoader reads while the program computes."
        )

    def _before_steps(self) -> float:
        """Seconds until the first of many steps, which imports take above all; 0 if there are few steps."""
        steps = self.steps()
        return (steps[0].begin - self.run.begin) / 1e9 if len(steps) >= FEW else 0.0

    def _memory(self) -> str:
        found = self.run.memory
        most = max(found, key=lambda at: at[1] + at[2], default=(0, 0, 0))
        if not most[1]:
            return "This system does not say how much memory the script took."
        when = _seconds(max(most[0] - self.run.begin, 0) / 1e9)
        others = f", {_size(most[2])} of it in worker processes" if most[2] else ""
        last = _size(found[-1][1])
        return (
            f"It had {_size(most[1] + most[2])} of memory at most, after {when}{others}; {last} at its end."
        )


def _seconds(value: float) -> str:
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.1f} s"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def _size(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)


def page(run: Run, title: str, status: int = 0) -> str:
    """The page of a run; see `fluidlite/visual/profile.html`."""
    report = Report(run)
    begin, end = run.begin, run.end
    strips = []
    for name, spans in report.threads().items():
        own = columns(segments(spans), begin, end)
        if name == report.main.name:
            for column in own:
                column["script"] = max(1.0 - sum(column.values()), 0.0)
        strips.append((name, own))
    strips += [(name, columns(of_workers(heard), begin, end)) for name, heard in run.recorder.workers.items()]
    operators = report.operators()
    total = sum(row.host + row.device for row in operators) or 1
    data = {
        "title": title,
        "status": status,
        "sentences": report.sentences(),
        "seconds": report.seconds,
        "parts": [[name, round(value, 6)] for name, value in report.parts().items() if value > 0],
        "names": PARTS,
        "strips": [
            [name, [[round(column.get(part, 0.0), 3) for part in PARTS] for column in made]]
            for name, made in strips
        ],
        "operators": [
            [row.name, row.calls, row.host, row.device, (row.host + row.device) / total, row.longest]
            for row in operators
        ],
        "steps": [
            [(span.begin - begin) / 1e9, span.length / 1e6] for span in _longest_spans(report.steps(), 1000)
        ],
        "memory": [[round((at - begin) / 1e9, 4), own, others] for at, own, others in run.memory],
        "close": _detailed_view(report),
        "loaders": [{key: _plain(value) for key, value in stats.items()} for stats in report.loaders],
        "dropped": sum(lane.dropped for lane in report.lanes),
    }
    return filled(Path(__file__).with_name("profile.html"), data)


def _plain(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def _longest_spans(spans: Sequence[Span], most: int) -> list[Span]:
    """At most `most` of the spans: the longest of each interval."""
    if len(spans) <= most:
        return list(spans)
    width = len(spans) / most
    return [
        max(spans[int(k * width) : int((k + 1) * width)], key=lambda span: span.length) for k in range(most)
    ]


def _detailed_view(report: Report) -> dict[str, Any]:
    """The spans of some steps in the middle of the run, or of a thread's middle where there are no steps."""
    spans = report.steps() or sorted(report.main.spans, key=lambda span: span.begin)
    if not spans:
        return {"begin": 0, "length": 0, "lanes": []}
    first = spans[len(spans) // 2]
    last = spans[min(len(spans) // 2 + 4, len(spans) - 1)]
    begin, end = first.begin, last.begin + last.length
    lanes = []
    for name, every in report.threads().items():
        inside = [span for span in every if span.begin < end and span.begin + span.length > begin]
        inside = sorted(sorted(inside, key=lambda span: -span.length)[:CLOSE], key=lambda span: span.begin)
        bars = [
            [PARTS.index(part_of(span.name, span.kind)), span.name, span.begin - begin, span.length]
            for span in inside
        ]
        if bars:
            lanes.append([name, bars])
    for name, heard in report.run.recorder.workers.items():
        bars = [
            [PARTS.index(part), part, first - begin, last - first]
            for first, last, part in of_workers(heard)
            if first < end and last > begin
        ]
        if bars:
            lanes.append([name, bars[:CLOSE]])
    return {"begin": (begin - report.run.begin) / 1e9, "length": end - begin, "lanes": lanes}
