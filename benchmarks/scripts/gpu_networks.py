"""Sizes of the networks that are measured on GPUs, the same for all sides."""


class Sizes:
    """A batch: `batch` samples of `shape`, with labels of `classes` (0: 8 numbers to come close to)."""

    def __init__(self, batch, shape, classes):
        self.batch, self.shape, self.classes = batch, shape, classes


SIZES = {
    "five 8x8": Sizes(4, (8,), 0),
    "mlp": Sizes(128, (784,), 10),
    "lenet": Sizes(64, (1, 28, 28), 10),
    "resnet-20": Sizes(128, (3, 32, 32), 10),
    "resnet-50": Sizes(64, (3, 224, 224), 1000),
}
STEPS = 20
"""How many steps follow each other where the loss is not fetched each time."""


def batch_of(np, sizes):
    """Inputs and labels as arrays of NumPy, which is `np`."""
    random = np.random.RandomState(0)
    x = random.rand(sizes.batch, *sizes.shape).astype("float32")
    if sizes.classes:
        return x, random.randint(0, sizes.classes, (sizes.batch, 1)).astype("int64")
    return x, random.rand(sizes.batch, 8).astype("float32")
