"""Batches through DataLoader.from_generator. usage: loader_fluid.py BATCHES EPOCHS CAPACITY SOURCE..."""

import sys

import numpy as np
import paddle.fluid as fluid
from loader_sources import BATCH, SHAPES, ready, samples
from timing import clock, result


def epoch_us(take, count):
    """Microseconds a batch, not counting the first one, which waits for the start of the epoch."""
    take()
    begin = clock()
    for _ in range(count - 1):
        take()
    return (clock() - begin) / (count - 1) * 1e6


def loader_of(source, batches, iterable):
    shape = SHAPES.get(source, (BATCH, 784))
    image = fluid.data("image", [None] + list(shape[1:]), "float32")
    label = fluid.data("label", [None, 1], "int64")
    loader = fluid.io.DataLoader.from_generator([image, label], capacity=capacity, iterable=iterable)
    places = fluid.cpu_places(1) if iterable else None
    if source == "samples":
        loader.set_sample_generator(samples(batches), batch_size=BATCH, places=places)
    elif source == "sample lists":
        loader.set_sample_list_generator(fluid.io.batch(samples(batches), BATCH), places=places)
    else:
        loader.set_batch_generator(ready(source, batches), places=places)
    return loader


def floor_us(source, batches):
    """Microseconds a batch for the least that has to be done: the bare generator, and one copy of the floats."""
    reader = samples(batches) if source in ("samples", "sample lists") else ready(source, batches)
    made = np.ones(SHAPES.get(source, (BATCH, 784)), "float32")
    copy = np.empty_like(made)
    np.copyto(copy, made)
    begin = clock()
    for _ in reader():
        pass
    for _ in range(batches):
        np.copyto(copy, made)
    return (clock() - begin) / batches * 1e6


batches, epochs, capacity = map(int, sys.argv[1:4])
metrics = {}
for source in sys.argv[4:]:
    metrics[source + ", floor"] = [floor_us(source, batches) for _ in range(epochs)]
    for iterable in (True, False):
        values = metrics[source + (", iterable" if iterable else ", non-iterable")] = []
        main = fluid.Program()
        with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
            loader = loader_of(source, batches, iterable)
        exe = fluid.Executor(fluid.CPUPlace())
        for _ in range(epochs):
            if iterable:
                batch = iter(loader())
                values.append(epoch_us(lambda: next(batch), batches))
                assert next(batch, None) is None
            else:
                loader.start()
                values.append(epoch_us(lambda: exe.run(main), batches))
                loader.reset()
result(metrics)
