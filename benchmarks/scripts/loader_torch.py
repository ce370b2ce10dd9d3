"""Batches through torch's DataLoader. usage: loader_torch.py BATCHES EPOCHS CAPACITY SOURCE..."""

import sys

import torch
from loader_sources import BATCH, SHAPES, ready, samples
from timing import clock, result
from torch_streams import Stream, tensors

batches, epochs = int(sys.argv[1]), int(sys.argv[2])
metrics = {}
for source in sys.argv[4:]:
    if source in SHAPES:
        loader = torch.utils.data.DataLoader(Stream(tensors(ready(source, batches))), batch_size=None)
    else:
        loader = torch.utils.data.DataLoader(Stream(samples(batches)), batch_size=BATCH)
    values = metrics[source + ", iterable"] = []
    for _ in range(epochs):
        batch = iter(loader)
        next(batch)
        begin = clock()
        for _ in range(batches - 1):
            next(batch)
        values.append((clock() - begin) / (batches - 1) * 1e6)
result(metrics)
