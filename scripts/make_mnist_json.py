"""Makes `mnist.json.gz` as Paddle's tutorials read it: images and labels to train, to validate and to test.

Images are lists of 784 numbers from 0 to 1, labels whole numbers. The digits are those that `fluidlite.dataset.mnist`
finds: all of MNIST, or the part that comes with the package. The last sixth of the training digits is to validate.

usage: make_mnist_json.py FILE [TRAINING_DIGITS]
"""

from __future__ import annotations

import gzip
import itertools
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from fluidlite.dataset import mnist

PIXELS = [f"{level / 255:.4g}" for level in range(256)]


def part(samples: Iterable[tuple[np.ndarray, int]]) -> str:
    """`[images, labels]` as JSON; `samples`: float32 [784] from -1 to 1, with the digit."""
    images, labels = [], []
    for image, label in samples:
        levels = np.rint((image + 1) * 127.5).astype(int).tolist()
        images.append("[" + ",".join([PIXELS[level] for level in levels]) + "]")
        labels.append(str(label))
    return "[[" + ",".join(images) + "],[" + ",".join(labels) + "]]"


def main(target: str, count: str | None = None) -> None:
    """Write the file with `count` training digits, all by default; the same bytes each time."""
    reader: Callable[[], Iterable[tuple[np.ndarray, int]]] = mnist.train()
    train = list(itertools.islice(reader(), None if count is None else int(count)))
    kept = len(train) - len(train) // 6
    test = itertools.islice(mnist.test()(), len(train) - kept)
    text = "[" + ",".join([part(train[:kept]), part(train[kept:]), part(test)]) + "]"
    Path(target).write_bytes(gzip.compress(text.encode(), 6, mtime=0))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
