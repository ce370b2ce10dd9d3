"""Makes the bundled part of MNIST from the four original files: every sixth digit to train, every fifth to
test.

usage: make_mnist_subset.py IDX_DIRECTORY OUTPUT_DIRECTORY
"""

from __future__ import annotations

import gzip
import struct
import sys
from pathlib import Path

import zopfli.gzip  # smaller than level 9

STEPS = {"train": 6, "t10k": 5}


def pick(data: bytes, dimensions: int, step: int) -> bytes:
    """Every `step`-th item of an IDX file of bytes with this many dimensions, as an IDX file."""
    magic, count, *shape = struct.unpack_from(f">{1 + dimensions}i", data)
    header = 4 * (1 + dimensions)
    size = (len(data) - header) // count
    items = [data[header + i * size : header + (i + 1) * size] for i in range(0, count, step)]
    return struct.pack(f">{1 + dimensions}i", magic, len(items), *shape) + b"".join(items)


def main(source: str, target: str) -> None:
    """Write the four files, the same bytes each time."""
    Path(target).mkdir(parents=True, exist_ok=True)
    for split, step in STEPS.items():
        for kind, dimensions in (("images-idx3", 3), ("labels-idx1", 1)):
            name = f"{split}-{kind}-ubyte.gz"
            picked = pick(gzip.decompress(Path(source, name).read_bytes()), dimensions, step)
            Path(target, name).write_bytes(zopfli.gzip.compress(picked))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
