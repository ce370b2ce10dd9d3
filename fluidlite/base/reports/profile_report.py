"""The table and the trace of a profiler's records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

from ..storage.files import write_file
from .profiling import Kind, Lane, ProfilerState, Recorder, Row


class EventSortingKey(IntEnum):
    """The column that the table is sorted by (`fluid.core.EventSortingKey`)."""

    kDefault = 0
    kCalls = 1
    kTotal = 2
    kMin = 3
    kMax = 4
    kAve = 5


_PLACES = {ProfilerState.kCPU: "CPU", ProfilerState.kCUDA: "CUDA", ProfilerState.kAll: "All"}
_WIDTH = 12


def table(recorder: Recorder, key: EventSortingKey) -> str:
    """The profile as Fluid 1.8 prints it: all threads together, and each of several by itself.

    Times are milliseconds; the ratio is that to the time of all rows.
    """
    lanes = [lane for lane in recorder.lanes if lane.rows]
    merged: dict[str, Row] = {}
    for lane in lanes:
        for name, row in lane.rows.items():
            merged.setdefault(name, Row(name, row.kind)).merge(row)
    rows = list(merged.values())
    if len(lanes) < 2:
        named = [(f"thread0::{row.name}", row) for row in rows]
        return "\n".join([*_head(recorder, rows, key, False), *_events(recorder.state, named, rows, key)])
    parts = [
        *_head(recorder, rows, key, True),
        *_events(recorder.state, [(r.name, r) for r in rows], rows, key),
    ]
    named = [(f"thread{k}::{row.name}", row) for k, lane in enumerate(lanes) for row in lane.rows.values()]
    return "\n".join(
        [*parts, "", *_title(recorder, key, False), "", *_events(recorder.state, named, rows, key)]
    )


def _title(recorder: Recorder, key: EventSortingKey, merged: bool) -> list[str]:
    note = ["Note! This Report merge all thread info into one."] if merged else []
    rule = "-" * 25
    return [
        "",
        f"{rule}>     Profiling Report     <{rule}",
        "",
        *note,
        f"Place: {_PLACES[recorder.state]}",
        "Time unit: ms",
        f"Sorted by {_SORTED[key][0]} in descending order in the same thread",
        "",
    ]


def _head(recorder: Recorder, rows: Sequence[Row], key: EventSortingKey, merged: bool) -> list[str]:
    total = sum(_total(recorder.state, row) for row in rows)
    computing = sum(_total(recorder.state, row) for row in rows if row.kind is Kind.OPERATOR)
    copies = [row for row in rows if row.kind is Kind.COPY]
    copied = sum(_total(recorder.state, row) for row in copies)
    rule = "-" * 25

    def part(label: str, time: int) -> str:
        share = 100 * _ratio(time, total)
        return f"  {label:<23}Total: {_ms(time):<{_WIDTH}}Ratio: {share:.6g}%"

    return [
        *_title(recorder, key, merged),
        f"Total time: {_ms(total)}",
        part("Computation time", computing),
        part("Framework overhead", total - computing),
        "",
        f"{rule}     GpuMemCpy Summary     {rule}",
        "",
        f"{'GpuMemcpy':<25}Calls: {sum(row.calls for row in copies):<{_WIDTH}}Total: {_ms(copied):<{_WIDTH}}"
        f"Ratio: {100 * _ratio(copied, total):.6g}%",
        "",
    ]


def _events(
    state: ProfilerState, named: list[tuple[str, Row]], rows: Iterable[Row], key: EventSortingKey
) -> list[str]:
    total = sum(_total(state, row) for row in rows)
    by = _SORTED[key][1]
    ordered = (
        sorted(named, key=lambda item: -by(item[1], _total(state, item[1]))) if by is not None else named
    )
    width = max((len(name) for name, _ in named), default=0) + 8
    both = ["CPU Time (Ratio)", "GPU Time (Ratio)"] if state is ProfilerState.kAll else []
    head = f"{'Event':<{width}}{'Calls':<{_WIDTH}}{'Total':<{_WIDTH}}" + "".join(f"{b:<24}" for b in both)
    rule = "-" * 25
    lines = [f"{rule}       Event Summary       {rule}", ""]
    lines.append(head + "".join(f"{word:<{_WIDTH}}" for word in ("Min.", "Max.", "Ave.", "Ratio.")))
    for name, row in ordered:
        time = _total(state, row)
        cells = [f"{name:<{width}}", f"{row.calls:<{_WIDTH}}", f"{_ms(time):<{_WIDTH}}"]
        if both:
            cells += [f"{f'{t / 1e6:.6f} ({_ratio(t, time):.6f})':<24}" for t in (row.host, row.device)]
        figures = [_ms(row.shortest), _ms(row.longest), _ms(time / row.calls), f"{_ratio(time, total):.6g}"]
        lines.append("".join([*cells, *(f"{figure:<{_WIDTH}}" for figure in figures)]))
    return lines


def _total(state: ProfilerState, row: Row) -> int:
    return {ProfilerState.kCPU: row.host, ProfilerState.kCUDA: row.device}.get(state, row.host + row.device)


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.6g}"


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


_By = Callable[[Row, int], float]
_SORTED: dict[EventSortingKey, tuple[str, _By | None]] = {
    EventSortingKey.kDefault: ("event first end time", None),
    EventSortingKey.kCalls: ("number of calls", lambda row, total: row.calls),
    EventSortingKey.kTotal: ("total time", lambda row, total: total),
    EventSortingKey.kMin: ("minimum time", lambda row, total: row.shortest),
    EventSortingKey.kMax: ("maximum time", lambda row, total: row.longest),
    EventSortingKey.kAve: ("average time", lambda row, total: total / row.calls),
}


def write_trace(recorder: Recorder, path: str | Path) -> None:
    """Write all spans to `path` as JSON that chrome://tracing and Perfetto show: one row a thread, and those of GPUs.

    Raises OSError if the file cannot be written.
    """
    lanes = [lane for lane in recorder.lanes if lane.spans]
    start = min((span.begin for lane in lanes for span in lane.spans), default=0)
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
        for pid, name in enumerate(("host", "GPU"))
    ]
    for number, lane in enumerate(lanes):
        events += _of_lane(lane, number, start)
    content = {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "state": _PLACES[recorder.state],
            "spans left out": sum(lane.dropped for lane in lanes),
        },
    }
    import json  # not needed for anything else

    write_file(path, json.dumps(content), folders=False)


def _of_lane(lane: Lane, number: int, start: int) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = [
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": number, "args": {"name": lane.name}}
    ]

    def event(name: str, kind: Kind, pid: int, begin: int, length: int) -> None:
        result.append(
            {
                "ph": "X",
                "name": name,
                "cat": kind.name.lower(),
                "pid": pid,
                "tid": number,
                "ts": (begin - start) / 1e3,
                "dur": length / 1e3,
            }
        )

    for span in lane.spans:
        event(span.name, span.kind, 0, span.begin, span.length)
        if span.device is not None:
            event(span.name, span.kind, 1, *span.device)
    return result


_HEAD = Path(__file__).with_name("page.html")


def filled(template: Path, data: Any) -> str:
    """The page of `template`, after the common head, with `data` as JSON in its script."""
    # No text in the data can end the script element.
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    body = template.read_text(encoding="utf-8").replace("/*DATA*/null", text)
    return _HEAD.read_text(encoding="utf-8") + body
