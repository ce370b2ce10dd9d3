"""Does anything go wrong, leak or grow when loaders run through thousands of epochs with random faults?

Loaders of every kind (threads and worker processes; static, non-iterable and dygraph; readers in processes; data sets
with two workers) read short epochs until so many batches were taken. In each epoch something random happens: nothing,
the generator raises, the worker is killed from inside or outside, the consumer leaves early, resets, or raises. Every
batch is checked, and so is that the fault is reported as it should. After each epoch nothing may be left: no thread,
process, queue, shared memory or file descriptor. In the end the growth of memory is told.

    python benchmarks/soak.py --batches 10000

The exit status is 1 if anything was wrong or left.
"""

from __future__ import annotations

import collections
import gc
import importlib.util
import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sides

if importlib.util.find_spec("fluidlite") is None:
    sys.path.insert(0, str(sides.ROOT))

import fluidlite as fluid  # noqa: E402
from fluidlite.framework import mode  # noqa: E402
from fluidlite.reader import leaks, multiprocess_reader  # noqa: E402

SHAPE = (64, 300)
FAULTS = ("none", "raises", "dies", "killed", "leaves", "consumer raises")
PLACE = fluid.CPUPlace()


class Fault(Exception):
    """What generators and consumers raise; it cannot be made again from its message."""

    def __init__(self, where: str, number: int) -> None:
        super().__init__(f"{where} at {number}")


def generator(count: int, fault: str, at: int) -> Callable[[], Iterator[Any]]:
    """A generator of `count` batches [array full of its number, number of the process]."""

    def reader() -> Iterator[Any]:
        for i in range(count):
            if i == at and fault == "raises":
                raise Fault("generator", i)
            if i == at and fault == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            yield [np.full(SHAPE, i, "float32"), np.array([[os.getpid()]])]

    return reader


class Batches(fluid.io.Dataset):
    """A data set whose samples are such batches."""

    def __init__(self, count: int, fault: str, at: int) -> None:
        self.count = count
        self.fault = fault
        self.at = at

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        if number == self.at and self.fault == "raises":
            raise Fault("generator", number)
        if number == self.at and self.fault == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        return np.full(SHAPE, number, "float32"), np.array([[os.getpid()]])


def alone(samples: list[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """The batch of one sample that is a batch."""
    return list(samples[0])


class Program:
    """A program that reads from a loader and gives what it read. (It holds the last batch as long as it lives.)"""

    def __init__(self) -> None:
        self.main = fluid.Program()
        with fluid.program_guard(self.main, fluid.Program()):
            self.vars = [fluid.data("x", [None, SHAPE[1]], "float32"), fluid.data("pid", [None, 1], "int64")]
            self.loader = fluid.io.DataLoader.from_generator(
                self.vars, capacity=3, iterable=False, use_multiprocess=True
            )
            self.out = [fluid.layers.scale(var, 1.0) for var in self.vars]
        self.exe = fluid.Executor(PLACE)

    def epoch(self, reader: Callable[[], Iterator[Any]]) -> Iterator[list[np.ndarray]]:
        self.loader.set_batch_generator(reader)
        self.loader.start()
        try:
            while True:
                yield self.exe.run(self.main, fetch_list=self.out)
        except fluid.core.EOFException:
            pass
        finally:
            self.loader.reset()


class Soak:
    """The loaders, and what was found out."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.static: dict[bool, Any] = {}
        self.eager: dict[bool, Any] = {}
        for used in (False, True):
            with fluid.program_guard(fluid.Program(), fluid.Program()):
                x, pid = fluid.data("x", [None, SHAPE[1]], "float32"), fluid.data("pid", [None, 1], "int64")
                self.static[used] = fluid.io.DataLoader.from_generator(
                    [x, pid], capacity=3, return_list=True, use_multiprocess=used
                )
            with mode.guard(True):
                self.eager[used] = fluid.io.DataLoader.from_generator(capacity=3, use_multiprocess=used)
        self.kinds: dict[str, Callable[[int, str, int], Iterator[list[np.ndarray]]]] = {
            "static": lambda *what: self.iterated(self.static[False], *what),
            "static, process": lambda *what: self.iterated(self.static[True], *what),
            "dygraph": lambda *what: self.iterated(self.eager[False], *what),
            "dygraph, process": lambda *what: self.iterated(self.eager[True], *what),
            "program, process": lambda *what: Program().epoch(generator(*what)),
            "multiprocess_reader": lambda *what: multiprocess_reader([generator(*what)])(),
            "data set, two workers": self.data_set,
        }
        self.batches = 0
        self.faults: collections.Counter[str] = collections.Counter()
        self.wrong: list[str] = []

    def iterated(self, loader: Any, count: int, fault: str, at: int) -> Iterator[list[np.ndarray]]:
        loader.set_batch_generator(generator(count, fault, at), places=PLACE)
        for item in loader():
            parts = item[0] if isinstance(item[0], list) else item
            yield [part.array for part in parts]

    def data_set(self, count: int, fault: str, at: int) -> Iterator[list[np.ndarray]]:
        with mode.guard(True):
            loader = fluid.io.DataLoader(
                Batches(count, fault, at), batch_size=1, collate_fn=alone, num_workers=2, places=PLACE
            )
            for item in loader():
                yield [part.array for part in item]

    def epoch(self) -> None:
        """One epoch of some loader with some fault."""
        kind = self.random.choice(list(self.kinds))
        in_process = kind in ("static", "dygraph")
        fault = self.random.choice([f for f in FAULTS if not (in_process and f in ("dies", "killed"))])
        count = self.random.randint(1, 12)
        at = self.random.randrange(count)
        self.faults[f"{kind}: {fault}"] += 1
        name = f"{kind}, {fault} at {at} of {count}"
        taken = 0
        error: BaseException | None = None
        array = pid = None
        epoch = self.kinds[kind](count, fault, at)
        try:
            for array, pid in epoch:
                if array.shape != SHAPE or not (array == taken).all():
                    self.wrong.append(f"{name}: batch {taken} holds {array.ravel()[0]}")
                taken += 1
                if taken == at + 1 and fault == "killed":
                    os.kill(int(pid.item()), signal.SIGKILL)
                if taken == at + 1 and fault == "leaves":
                    break
                if taken == at + 1 and fault == "consumer raises":
                    raise Fault("consumer", taken)
        except (Fault, RuntimeError) as caught:
            error = caught.with_traceback(None)
            error.__context__ = None
        epoch.close()  # type: ignore[attr-defined]
        self.batches += taken
        self.judge(name, fault, count, at, taken, error)
        del array, pid, epoch, error
        self.look_for_leaks(name)

    def judge(
        self, name: str, fault: str, count: int, at: int, taken: int, error: BaseException | None
    ) -> None:
        """Whether the epoch ended as it should."""
        expected = {
            "none": taken == count and error is None,
            "raises": taken == at and isinstance(error, Fault) and str(error) == f"generator at {at}",
            # Other workers' batches may come before or after the death is noticed.
            "dies": taken <= at and isinstance(error, RuntimeError) and "SIGKILL" in str(error),
            # All batches may have been made already.
            "killed": taken == count if error is None else "SIGKILL" in str(error),
            "leaves": taken == at + 1 and error is None,
            "consumer raises": isinstance(error, Fault) and str(error) == f"consumer at {at + 1}",
        }[fault]
        if not expected:
            self.wrong.append(f"{name}: ended after {taken} with {error!r}")

    def look_for_leaks(self, name: str) -> None:
        gc.collect()
        left = {what: number for what, number in leaks().items() if number}
        if left:
            self.wrong.append(f"{name}: left {left}")


def resident() -> float:
    """Megabytes of memory that this process has in use."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> int:
    parser = sides.parser(__doc__, rounds=1)
    parser.add_argument("--batches", type=int, default=10_000, help="how many to take (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of what happens (default: %(default)s)")
    options = parser.parse_args()
    soak = Soak(options.seed)
    times = []
    early = None
    descriptors = None
    while soak.batches < options.batches:
        begin = time.perf_counter()
        soak.epoch()
        times.append((time.perf_counter() - begin) * 1e3)
        if early is None and soak.batches >= options.batches / 10:
            early, descriptors = resident(), len(os.listdir("/proc/self/fd"))
    results = {
        sides.OURS: {
            "batches": [float(soak.batches)],
            "epochs": [float(len(times))],
            "an epoch, median, ms": [statistics.median(times)],
            "an epoch, longest, ms": [max(times)],
        }
    }
    status = sides.report(options, "loaders under random faults", "the units named", results)
    assert early is not None and descriptors is not None
    print(f"\nleft: {leaks()}, descriptors {len(os.listdir('/proc/self/fd')) - descriptors:+d}")
    print(f"memory: {early:.1f} MB after a tenth, {resident():.1f} MB in the end")
    print(f"{len(soak.faults)} kinds of epochs, {min(soak.faults.values())} of the rarest")
    for line in soak.wrong[:20]:
        print("WRONG", line)
    grown = len(os.listdir("/proc/self/fd")) > descriptors
    return 1 if status or soak.wrong or grown or any(leaks().values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
