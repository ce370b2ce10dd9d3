"""The samples that dataset_loader.py reads, and how its loops are timed."""

import time

import numpy as np

BATCH = 512


class Rows:
    """`count` samples: 784 float32 and a label; `heavy` ones take some Python besides."""

    def __init__(self, count, heavy):
        generator = np.random.RandomState(0)
        self.images = generator.rand(count, 784).astype("float32")
        self.labels = generator.randint(0, 10, (count, 1)).astype("int64")
        self.heavy = heavy

    def __getitem__(self, idx):
        if self.heavy:
            total = 0
            for i in range(400):
                total += i & 3
        return self.images[idx], self.labels[idx]

    def __len__(self):
        return len(self.images)


def measured(make_loader, batches, epochs, workers, kinds):
    """The metrics: microseconds a batch of each epoch but the first, which starts the workers.

    `make_loader(rows, workers)` makes a loader of the dataset `rows`.
    """
    metrics = {}
    for kind in kinds:
        rows = Rows(batches * BATCH, kind == "heavy samples")
        for count in workers:
            loader = make_loader(rows, count)
            values = metrics["%s, %d worker(s)" % (kind, count)] = []
            for epoch in range(epochs + 1):
                batch = iter(loader)
                next(batch)
                begin = time.perf_counter()
                left = sum(1 for _ in batch)
                if epoch:
                    values.append((time.perf_counter() - begin) / left * 1e6)
            del loader, batch
    return metrics
