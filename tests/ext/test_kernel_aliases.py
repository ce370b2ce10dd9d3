"""Results that may be the memory of an operand are the same there: every pair that a kernel's declaration allows."""

import re
from math import prod

import numpy as np
import pytest

from fluidlite._ext import kernels
from fluidlite.ops.kernels.kernel_def import DECLARED

N = 8
"""All sizes; flags and numbers of choices are 1."""

TYPES = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64", "u8": "uint8", "": "uint8"}
OTHER_TYPES = {"L": "int64", "I": "int32", "B": "uint8"}

BY_HAND = {"scatter_nd"}
"""Kernels whose tables do not say the sizes of operands; so of `*_dims`."""

PAIRS = [
    (f"{kernel.name}.{kind}" if kind else kernel.name, kernel, out, source)
    for kernel in DECLARED.values()
    if kernel.name not in BY_HAND and "_dims" not in kernel.name
    for kind in (kernel.types.split() or [""])
    if "." not in kind and kernels.available(f"{kernel.name}.{kind}" if kind else kernel.name)
    for out, source in kernel.aliases
]


def numbers(marks):
    """Values of the integers of a call."""
    return [N if mark in "zdm" else 1 for mark in re.sub(r"\[\w+\]", "", marks)]


def array(size, ints, kind, rng):
    """An operand of the size that a table says: offsets, row numbers, or elements."""
    letters = re.match(r"[a-z]*", size).group()
    count = prod(ints[ord(letter) - ord("a")] for letter in letters)
    dtype = OTHER_TYPES.get(size[-1:], TYPES[kind])
    if "+" in size:
        return np.linspace(0, N, count + 1).astype(dtype)
    if size[-1:] in ("L", "I"):
        return np.zeros(count, dtype)
    if kind == "u8" or dtype == "uint8":
        return rng.integers(0, 2, count).astype(dtype)
    return (
        rng.uniform(0.1, 0.9, count).astype(dtype)
        if kind[0] == "f"
        else rng.integers(1, 9, count).astype(dtype)
    )


@pytest.mark.parametrize(
    ("full", "kernel", "out", "source"),
    PAIRS,
    ids=[f"{name} {out}={source}" for name, _, out, source in PAIRS],
)
def test_results_in_place(full, kernel, out, source):
    takes = kernels._takes[full]
    _, marks, floats, sizes = (takes if isinstance(takes, str) else takes.text).split("|")
    ints, reals = numbers(marks), [0.5, 0.25, 0.75][: len(floats)]
    sizes = sizes.replace("(a)", "a,a,").split(",")
    rng = np.random.default_rng(len(full))
    given = [array(size, ints, full.partition(".")[2], rng) for size in sizes]
    made = {kernel.places[name] % len(given) for name in kernel.made}
    at, place = kernel.places[out] % len(given), kernel.places[source] % len(given)
    for target in kernels.targets():
        apart = [each.copy() for each in given]
        kernels.call(full, apart, ints, reals, target)
        shared = [each.copy() for each in given]
        shared[at] = shared[place]
        kernels.call(full, shared, ints, reals, target)
        for k in made:
            np.testing.assert_array_equal(shared[k], apart[k], f"{full} on {target}, operand {k}")
