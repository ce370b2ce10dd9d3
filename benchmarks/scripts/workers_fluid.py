"""Batches from a generator in a worker process. usage: workers_fluid.py BATCHES EPOCHS SOURCE..."""

import inspect
import sys
import time

import paddle.fluid as fluid
from loader_sources import BATCH, ready, samples
from timing import epoch_metrics, result

batches, epochs = int(sys.argv[1]), int(sys.argv[2])
metrics = {}
keeps = "persistent_workers" in inspect.signature(fluid.io.DataLoader.from_generator).parameters
with fluid.dygraph.guard(fluid.CPUPlace()):
    for source in sys.argv[3:]:
        for where in ("in process", "one worker", "one worker kept"):
            options = {"use_multiprocess": where != "in process"}
            if where == "one worker kept":
                if not keeps:
                    continue
                options["persistent_workers"] = True
            loader = fluid.io.DataLoader.from_generator(capacity=8, **options)
            if source == "samples":
                loader.set_sample_generator(samples(batches), batch_size=BATCH, places=fluid.CPUPlace())
            else:
                loader.set_batch_generator(ready(source, batches), places=fluid.CPUPlace())
            for _ in range(epochs):
                begin = time.perf_counter()
                epoch_metrics(metrics, source + ", " + where, iter(loader()), batches, begin)
result(metrics)
