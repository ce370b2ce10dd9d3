"""Batches for the larger models, the same for all sides."""

import numpy as np

WIDTH, HEADS, LENGTH, TEXTS, LAYERS = 256, 4, 64, 16, 4
ROWS, VECTOR, AROUND, PAIRS = 1000000, 64, 5, 512
FIELDS, FACTORS, CLICKS = 26, 10, 512
STATES, STEPS, SENTENCES, WORDS = 200, 20, 20, 10000
IMAGES = {
    "resnet-20": (32, 3, 32, 32),
    "resnet-50": (8, 3, 64, 64),
    "mobilenet": (16, 3, 64, 64),
    "vgg block": (16, 64, 32, 32),
}


def batch_of(name):
    """Inputs by name: arrays of float32, ids and labels of int64."""
    random = np.random.RandomState(0)

    def ids(bound, *shape):
        return random.randint(0, bound, shape).astype("int64")

    if name in IMAGES:
        shape = IMAGES[name]
        return {"x": random.rand(*shape).astype("float32"), "y": ids(10, shape[0], 1)}
    if name.startswith("encoder"):
        return {"x": random.rand(TEXTS, LENGTH, WIDTH).astype("float32"), "y": ids(10, TEXTS, 1)}
    if name == "ptb lstm":
        return {"x": ids(WORDS, SENTENCES, STEPS), "y": ids(WORDS, SENTENCES, STEPS)}
    if name == "word2vec":
        return {"x": ids(ROWS, PAIRS, 1), "y": ids(ROWS, PAIRS, 1 + AROUND)}
    return {"x": ids(ROWS, CLICKS, FIELDS), "y": ids(2, CLICKS, 1)}
