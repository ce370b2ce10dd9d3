"""Batches through torch's DataLoader. usage: dataset_torch.py BATCHES EPOCHS WORKERS,... KIND..."""

import sys

import torch
from dataset_sources import BATCH, measured
from timing import result


def make_loader(rows, workers):
    return torch.utils.data.DataLoader(
        rows, batch_size=BATCH, num_workers=workers, persistent_workers=workers > 0
    )


batches, epochs = int(sys.argv[1]), int(sys.argv[2])
result(measured(make_loader, batches, epochs, [int(n) for n in sys.argv[3].split(",")], sys.argv[4:]))
