"""Statistics of the stages of a loader, with a readable summary; counters of the resources that readers hold."""

from __future__ import annotations

from typing import Any

from ..._ext import collate, queue, shm
from ...backend.cupy_ import pools, staging
from ...base.reports.texts import Text
from ..threaded import live_threads
from ..worker.pool import live_processes

FIELDS = (
    "batches",  # taken by the consumer
    "samples",  # in them
    "bytes",  # in them
    "reading",  # seconds spent in the user's generator or dataset
    "collating",  # seconds spent on putting samples together
    "producer_waited",  # seconds in which the readers waited for room
    "consumer_waited",  # seconds in which the consumer waited for data
    "computing",  # seconds between one batch and the consumer's asking for the next
    "copied",  # bytes copied to GPUs
    "staging",  # seconds spent on bringing them to page-locked memory
    "copying",  # seconds that the copies to GPUs took, overlapping other stages
)

_LABELS = {
    "reading": "reading samples",
    "collating": "putting batches together",
    "producer_waited": "reader waits for room",
    "consumer_waited": "consumer waits for data",
    "computing": "consumer computes",
    "staging": "to page-locked memory",
    "copying": "copying to the GPU",
}
_FOR_DEVICES = ("staging", "copying")
_HARDLY = 0.05
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


class Meter:
    """The statistics of one epoch; see `FIELDS`."""

    __slots__ = FIELDS

    def __init__(self) -> None:
        self.batches = self.samples = self.bytes = self.copied = 0
        self.reading = self.collating = 0.0
        self.producer_waited = self.consumer_waited = self.computing = 0.0
        self.staging = self.copying = 0.0

    def add(self, other: Meter) -> None:
        """Add the statistics of another epoch."""
        for field in FIELDS:
            setattr(self, field, getattr(self, field) + getattr(other, field))

    def as_dict(self) -> dict[str, Any]:
        """The counts by their names."""
        return {field: getattr(self, field) for field in FIELDS}


def bottleneck(stats: dict[str, Any]) -> str:
    """'reading' or 'computing', whichever was waited for longer; 'copying' if that took longer than both.

    It is 'computing' if the consumer hardly waited.
    """
    moving = _moving(stats)
    if moving > max(stats.get("reading", 0.0) + stats.get("collating", 0.0), stats.get("computing", 0.0)):
        return "copying"
    waited = stats["consumer_waited"] > stats["producer_waited"] and _waiting(stats) >= _HARDLY
    return "reading" if waited else "computing"


def _waiting(stats: dict[str, Any]) -> float:
    """The share of the consumer's time that it waited for data."""
    loop = stats["consumer_waited"] + stats.get("computing", 0.0)
    return stats["consumer_waited"] / loop if loop > 0 else 0.0


def _moving(stats: dict[str, Any]) -> float:
    """Seconds to move batches to GPUs: the longer of two concurrent stages."""
    return max(stats.get("staging", 0.0), stats.get("copying", 0.0))


def summarize(stats: dict[str, Any]) -> str:
    """The statistics of a loader as a table, with the bottleneck and what may help against it."""
    batches = stats["batches"]
    head = f"{count(stats['epochs'], 'epoch')}, {count(batches, 'batch')}"
    if stats.get("samples"):
        head += f", {count(stats['samples'], 'sample')}"
    if stats.get("bytes"):
        head += f", {_size(stats['bytes'])}"
    if not batches:
        return Text(f"{head}: nothing was read yet")
    workers = stats.get("workers", 0)
    lines = [head, f"{'':26}{'seconds':>10}{'ms a batch':>12}{'share':>8}"]
    loop = stats["consumer_waited"] + stats.get("computing", 0.0)
    for field, label in _LABELS.items():
        if field not in stats or (field in _FOR_DEVICES and not stats.get("copied")):
            continue
        seconds = stats[field]
        row = f"{label:26}{seconds:10.3f}{1e3 * seconds / batches:12.3f}"
        if field in ("consumer_waited", "computing") and loop > 0:
            row += f"{seconds / loop:8.0%}"
        lines.append(row)
    if workers:
        lines.append(f"({count(workers, 'worker process')}: reading and collating are added up over them)")
    lines.append(_verdict(stats))
    return Text("\n".join(lines))


def _verdict(stats: dict[str, Any]) -> str:
    share = _waiting(stats)
    gain = (
        f"Waiting is {share:.0%}: a perfect reader would make the loop at most {1 / (1 - share):.1f} times faster"
        if share < 0.99
        else f"Waiting is {share:.0%}"
    )
    which = bottleneck(stats)
    if which == "copying":
        return (
            f"bottleneck: copying to the GPU. {gain}; smaller types help (uint8 images, converted on the GPU)"
        )
    if which == "reading":
        return f"bottleneck: reading. {gain}; {to_read_faster(stats)}"
    if share < _HARDLY:
        return f"bottleneck: computing. The consumer waited for data {share:.0%} of its time"
    return f"bottleneck: computing. {gain}"


def to_read_faster(stats: dict[str, Any]) -> str:
    """Advice for when reading is the bottleneck."""
    workers = stats.get("workers", 0)
    if stats.get("collating", 0.0) > stats.get("reading", 0.0):
        return "samples as arrays of one shape and type, and a cheaper collate_fn, help most"
    if workers:
        return f"more than {count(workers, 'worker')} (num_workers), or less work for each sample, helps"
    return "worker processes (num_workers, use_multiprocess), or less work for each sample, help"


def count(number: int, noun: str) -> str:
    """A number with its noun, in the plural where needed."""
    plural = "es" if noun.endswith(("batch", "process")) else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


def _size(count: float) -> str:
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count:.0f} bytes"


def leaks() -> dict[str, int]:
    """How many `threads` and `processes` of readers run, `queues` exist with how many `items`, how many
    `slots` of batch memory are held by arrays, `segments` of memory shared with workers are mapped, and how many
    blocks of page-locked memory (`pinned`) and of GPUs (`device_blocks`) batches stand on.

    All zero when every loader and reader is done and let go.
    """
    queues = queue.counters()
    return {
        "threads": live_threads(),
        "processes": live_processes(),
        "queues": queues["queues"],
        "items": queues["items"],
        "slots": collate.counters()["live_blocks"],
        "segments": shm.counters()["mappings"],
        "pinned": pools.counters()["batches"],
        "device_blocks": staging.counters()["blocks"],
    }
