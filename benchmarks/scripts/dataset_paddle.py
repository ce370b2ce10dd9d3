"""Batches through paddle.io.DataLoader. usage: dataset_paddle.py BATCHES EPOCHS WORKERS,... KIND..."""

import sys

import paddle
from dataset_sources import BATCH, Rows, measured
from timing import result


class Dataset(Rows, paddle.io.Dataset):
    pass


def make_loader(rows, workers):
    rows.__class__ = Dataset
    return paddle.io.DataLoader(rows, batch_size=BATCH, num_workers=workers, persistent_workers=workers > 0)


batches, epochs = int(sys.argv[1]), int(sys.argv[2])
result(measured(make_loader, batches, epochs, [int(n) for n in sys.argv[3].split(",")], sys.argv[4:]))
