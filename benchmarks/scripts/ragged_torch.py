"""Ragged batches as padded tensors with lengths. usage: ragged_torch.py SECONDS WORK..."""

import sys

import torch
from ragged_data import BATCH, measured
from timing import result
from torch.nn.utils.rnn import pad_sequence


def padded(work):
    dtype = torch.float32 if work in ("vectors", "numbers in lists") else torch.int64

    def collate(samples):
        parts = [value for value, _ in samples]
        labels = torch.tensor([label for _, label in samples]).reshape(-1, 1)
        counts = None
        if work == "sentences":
            counts = torch.tensor([len(part) for part in parts])
            parts = [sentence for part in parts for sentence in part]
        tensors = [torch.as_tensor(part, dtype=dtype) for part in parts]
        return (
            pad_sequence(tensors, batch_first=True),
            torch.tensor([len(part) for part in parts]),
            counts,
            labels,
        )

    return collate


def epoch(work, batches):
    samples = [sample for batch in batches for sample in batch]
    loader = torch.utils.data.DataLoader(samples, BATCH, collate_fn=padded(work))
    return lambda: iter(loader)


result(measured(sys.argv[2:], float(sys.argv[1]), padded, epoch))
