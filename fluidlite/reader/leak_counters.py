"""Counters of the resources that readers hold, to detect leaks."""

from __future__ import annotations

from .._ext import collate, queue, shm
from ..backend.cupy_ import pinned, staging
from .threaded import live_threads
from .worker.pool import live_processes


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
        "pinned": pinned.counters()["batches"],
        "device_blocks": staging.counters()["blocks"],
    }
