"""What the loaders are fed with: rows of one array as samples, and one array again and again as ready-made batches."""
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
    """A reader of `batches` times the same batch and label array."""
    images = np.ones(SHAPES[source], "float32")
    labels = np.zeros((len(images), 1), "int64")

    def reader():
        for _ in range(batches):
            yield images, labels

    return reader
