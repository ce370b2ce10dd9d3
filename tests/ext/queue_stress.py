"""Hammers an extension module with the queue, built for ThreadSanitizer; see docs/concurrency.md.

usage: queue_stress.py PATH_OF_EXTENSION ROUNDS
"""

from __future__ import annotations

import gc
import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("fluidlite._ext.queue", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hammer(module: Any, number: int) -> None:
    """Three producers and two consumers on one queue, which is killed, failed or closed."""
    queue = module.Queue(1 + number % 4)
    got: list[tuple[int]] = []

    def produce() -> None:
        for i in range(300):
            if not queue.put((i,)):
                return

    def consume() -> None:
        try:
            while True:
                got.append(queue.get(timeout=None if number % 2 else 5))
        except (module.QueueClosed, OSError):
            return

    producers = [threading.Thread(target=produce) for _ in range(3)]
    consumers = [threading.Thread(target=consume) for _ in range(2)]
    for thread in producers + consumers:
        thread.start()
    if number % 3 == 0:
        queue.kill()
    elif number % 3 == 1:
        queue.fail(OSError("on purpose"))
    else:
        for thread in producers:
            thread.join()
        queue.close()
    for thread in producers + consumers:
        thread.join()
    if number % 3 == 2 and len(got) != 900:
        raise SystemExit(f"{len(got)} of 900 items arrived")


def main(path: str, rounds: int) -> None:
    module = load(path)
    for number in range(rounds):
        hammer(module, number)
    gc.collect()  # an error that was raised holds frames that hold the queue that holds the error
    print("ok", module.counters())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
