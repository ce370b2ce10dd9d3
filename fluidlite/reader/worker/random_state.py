"""The global random states of `random` and `numpy.random`, for generators that run in another process.

A generator that draws from them gives the same data there as in this process, and other data in each epoch: its
process begins with the state of this one, and this one goes on with the state that the generator left.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np


class RandomState:
    """A snapshot."""

    def __init__(self) -> None:
        self.python = random.getstate()
        self.numpy: Any = np.random.get_state()

    def restore(self) -> None:
        """Make it the state of this process."""
        random.setstate(self.python)
        np.random.set_state(self.numpy)

    def python_is(self, other: RandomState) -> bool:
        return self.python == other.python

    def numpy_is(self, other: RandomState) -> bool:
        return all(np.array_equal(mine, theirs) for mine, theirs in zip(self.numpy, other.numpy, strict=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RandomState) and self.python_is(other) and self.numpy_is(other)

    __hash__ = None  # type: ignore[assignment]


def go_on(before: RandomState, after: RandomState | None) -> None:
    """Have this process go on with `after`, the state that a generator left which was started with `before`.

    None for a generator that drew numbers, but whose end is not known: the state goes to another place that depends
    on nothing but `before`. A state that this process has changed meanwhile stays.
    """
    now = RandomState()
    if now.python_is(before):
        if after is not None:
            random.setstate(after.python)
        else:
            random.seed(random.getrandbits(64))
    if now.numpy_is(before):
        if after is not None:
            np.random.set_state(after.numpy)
        else:
            np.random.seed(np.random.randint(0, 2**32, dtype=np.uint64))
