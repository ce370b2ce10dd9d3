"""What the models of guide 2 read: images augmented by NumPy, a text of word numbers, and samples that cost as much
as one wants. Nothing here depends on a framework.
"""

import numpy as np

BATCH_SIZES = {"MNIST": 64, "ResNet": 32, "SE-ResNeXt": 64, "PTB": 20, "MobileNet V1": 256}
CLASSES = 10
WORDS, STEPS = 1000, 20  # the vocabulary, and words of a sentence
MARGIN = 8  # stored images are so much larger than what is cut out of them


def shape_of(model):
    """Channels and height (= width) of the images that a model takes."""
    return (1, 28) if model == "MNIST" else (3, 32)


def resized(image, size):
    """A uint8 image [H, W, C] as float32 [size, size, C], by bilinear interpolation."""
    at = np.linspace(0, image.shape[0] - 1.001, size)
    low = at.astype(int)
    part = (at - low).astype("float32")
    rows = image[low] * (1 - part)[:, None, None] + image[low + 1] * part[:, None, None]
    return rows[:, low] * (1 - part)[:, None] + rows[:, low + 1] * part[:, None]


def augmented(image, size, random):
    """A piece [C, size, size] of the image at a random scale and place, perhaps mirrored, from -1 to 1."""
    image = resized(image, random.randint(size, image.shape[0] + MARGIN))
    top, left = random.randint(0, image.shape[0] - size + 1, 2)
    piece = image[top : top + size, left : left + size]
    if random.randint(2):
        piece = piece[:, ::-1]
    return np.ascontiguousarray((piece.transpose(2, 0, 1) - 127.5) / 127.5, "float32")


def images(model, count):
    """A reader of `count` samples: an augmented image [C, S, S], float32, and its label [1], int64."""
    channels, size = shape_of(model)
    random = np.random.RandomState(0)
    stored = random.randint(0, 256, (64, size + MARGIN, size + MARGIN, channels)).astype("uint8")
    labels = random.randint(0, CLASSES, (64, 1))

    def reader():
        random = np.random.RandomState(1)
        for k in range(count):
            yield augmented(stored[k % 64], size, random), labels[k % 64]

    return reader


def sentences(count):
    """A reader of `count` batches: words [20, 20] and the words that follow them [20, 20], int64."""
    size = BATCH_SIZES["PTB"]
    text = np.random.RandomState(0).randint(0, WORDS, (size, count * STEPS + 1))

    def reader():
        for k in range(0, count * STEPS, STEPS):
            yield text[:, k : k + STEPS].copy(), text[:, k + 1 : k + STEPS + 1].copy()

    return reader


def batched(reader, size):
    """A reader of lists of `size` samples."""

    def lists():
        batch = []
        for sample in reader():
            batch.append(sample)
            if len(batch) == size:
                yield batch
                batch = []

    return lists


def turn(rounds):
    """Python that takes time in proportion to `rounds` and never lets another thread of Python run beside it."""
    total = 0
    for k in range(rounds):
        total += k * k % 7
    return total


def heavy(reader, rounds):
    """The reader's samples, with `rounds` rounds of Python for each of them."""

    def samples():
        for sample in reader():
            turn(rounds)
            yield sample

    return samples
