"""What the loaders are fed with: rows of one array as samples, and two arrays in turn as ready-made batches."""

import numpy as np

BATCH = 512
SHAPES = {"1.6 MB batches": (BATCH, 784), "77 MB batches": (128, 3, 224, 224)}


def samples(batches):
    """A reader of `batches` times 512 samples of 784 float32 with an int label."""
    rows = list(np.random.RandomState(0).rand(BATCH, 784).astype("float32"))
    labels = [row % 10 for row in range(BATCH)]

    def reader():
        for _ in range(batches):
            for row, label in zip(rows, labels):
                yield row, label

    return reader


def ready(source, batches):
    """A reader of `batches` batches and label arrays, two of them in turn.

    (One alone would look like a generator that fills its buffer anew for each batch, which has to be copied.)
    """
    shape = SHAPES[source]
    made = [(np.full(shape, k, "float32"), np.full((shape[0], 1), k, "int64")) for k in range(2)]

    def reader():
        for batch in range(batches):
            yield made[batch % 2]

    return reader
