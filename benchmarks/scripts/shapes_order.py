"""What benchmarks/shapes.py does with a side: which batch sizes in which order, and what of it is measured."""

import time
from pathlib import Path

import numpy as np

EVEN, FIRST, LAST = 170, 20, 319
LARGEST, SMALL_STEPS = 10000, 500


def measured(stepper, six, five, sizes, passes):
    """The metrics of a side.

    `stepper(network, width, largest)`: a function that trains one step at a batch size. `six`, `five`: two networks,
    64 and 8 wide. `sizes`: how many batch sizes come in a row; `passes`: how often the first comparison is made.
    """
    random = np.random.RandomState(0)
    metrics = {}

    def add(name, value):
        metrics.setdefault(name, []).append(value)

    step, even_step = stepper(six, 64, LARGEST), stepper(six, 64, EVEN)
    clock(even_step, [EVEN] * 5)
    clock(step, [EVEN] * 5)
    for _ in range(passes):
        order = (FIRST + random.permutation(LAST + 1 - FIRST))[:sizes]
        varied, even = clock(step, order), clock(even_step, [EVEN] * len(order))
        add("six layers: sizes 20 to 319", varied)
        add("six layers: size 170", even)
        add("six layers: varied / even", varied / even)
    clock(step, [FIRST] * SMALL_STEPS)
    before = resident()
    clock(step, [LARGEST, LARGEST // 2] * 3)
    add("six layers: MB more after sizes to 10,000", resident() - before)
    clock(step, [FIRST] * SMALL_STEPS)
    add("six layers: MB more, 500 small steps later", resident() - before)

    for title, largest in (("1,000 sizes", 1000), ("sizes 1 to 10,000", LARGEST)):
        step = stepper(five, 8, largest)
        clock(step, [4] * 5)
        for size in (1 + random.permutation(largest))[:sizes]:
            new, last = clock(step, [size]), clock(step, [size])
            add(title + ": new", new)
            add(title + ": as last", last)
            add(title + ": new - as last", new - last)
    return metrics


def clock(step, sizes):
    """Microseconds a step of these sizes takes on the average."""
    begin = time.perf_counter()
    for size in sizes:
        step(size)
    return (time.perf_counter() - begin) / len(sizes) * 1e6


def resident():
    """The memory of this process in MB; 0 where the system does not say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * 4096 / 1e6 if statm.exists() else 0.0
