"""Batches from a generator in a worker process of torch. usage: workers_torch.py BATCHES EPOCHS SOURCE..."""

import sys
import time

import torch
from loader_sources import BATCH, ready, samples
from timing import epoch_metrics, result
from torch_streams import Stream, tensors

batches, epochs = int(sys.argv[1]), int(sys.argv[2])
metrics = {}
for source in sys.argv[3:]:
    for where in ("in process", "one worker"):
        options = {"num_workers": 1, "prefetch_factor": 8} if where == "one worker" else {}
        if source == "samples":
            loader = torch.utils.data.DataLoader(Stream(samples(batches)), batch_size=BATCH, **options)
        else:
            loader = torch.utils.data.DataLoader(
                Stream(tensors(ready(source, batches))), batch_size=None, **options
            )
        for _ in range(epochs):
            begin = time.perf_counter()
            epoch_metrics(metrics, source + ", " + where, iter(loader), batches, begin)
result(metrics)
