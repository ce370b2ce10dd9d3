"""Generators as data sets of torch, for the scripts that read from its DataLoader."""

import torch


class Stream(torch.utils.data.IterableDataset):
    """A dataset that reads from a reader function."""

    def __init__(self, reader):
        super().__init__()
        self.reader = reader

    def __iter__(self):
        return self.reader()


def tensors(reader):
    """A reader of the arrays of `reader` as tensors, made once: passing them on is what is measured."""
    made = [[torch.from_numpy(array) for array in batch] for batch in reader()]
    return lambda: iter(made)
