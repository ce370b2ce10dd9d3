"""Random numbers of samplers, and the random states of processes in which generators run.

Samplers draw from NumPy's global state or a generator's own, with a state that can be kept. A generator that draws
from the global states of `random` and `numpy.random` gives the same data in another process as in this one, and
other data in each epoch: its process begins with the state of this one, and this one goes on with the state that it
left.
"""

from __future__ import annotations

import operator
import random
from typing import Any, TypeAlias

import numpy as np

Seed: TypeAlias = "int | np.random.RandomState | np.random.Generator | None"


def as_generator(generator: Any) -> Any:
    """The random generator: `generator` if it is one of NumPy's, a new one for a seed, NumPy's global one for None.

    Raises TypeError for other things.
    """
    if generator is None:
        return np.random
    if isinstance(generator, (np.random.RandomState, np.random.Generator)):
        return generator
    try:
        return np.random.RandomState(operator.index(generator))
    except TypeError:
        raise TypeError(
            "a generator must be a seed (int), a numpy.random.Generator or RandomState, or None for NumPy's global "
            f"one, got {type(generator).__name__}"
        ) from None


class RandomSource:
    """The random numbers of one sampler.

    By default they are NumPy's global ones, as in Fluid, so that `np.random.seed` fixes them; after `set_state_dict`
    the sampler has a generator of its own, which goes on from the given state whatever else is drawn.
    """

    def __init__(self, generator: Any = None) -> None:
        self._generator = as_generator(generator)

    def permutation(self, count: int) -> list[int]:
        """The numbers below `count` in random order."""
        return self._generator.permutation(count).tolist()

    def integers(self, below: int, count: int) -> list[int]:
        """`count` numbers below `below`, each with the same chance."""
        draw = getattr(self._generator, "integers", None) or self._generator.randint
        return draw(0, below, size=count).tolist()

    def weighted(self, chances: np.ndarray, count: int, replacement: bool) -> list[int]:
        """`count` positions in `chances`, which add up to 1."""
        return self._generator.choice(len(chances), size=count, replace=replacement, p=chances).tolist()

    def state_dict(self) -> dict[str, Any]:
        """The state of the generator, as plain numbers, strings and lists."""
        generator = self._generator
        if generator is np.random:
            return plain_state(np.random.get_state(legacy=False))
        if isinstance(generator, np.random.RandomState):
            return plain_state(generator.get_state(legacy=False))
        return plain_state(generator.bit_generator.state)

    def set_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state`, with a generator of its own. Raises ValueError for an invalid state."""
        try:
            if isinstance(self._generator, np.random.Generator):
                self._generator.bit_generator.state = state
                return
            own = np.random.RandomState(0)
            own.set_state(state)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this is not the state of a sampler's random numbers: {error}") from error
        self._generator = own


def plain_state(value: Any) -> Any:
    """The state of a generator with lists of numbers instead of arrays; its `set_state` takes either."""
    if isinstance(value, dict):
        return {key: plain_state(item) for key, item in value.items()}
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


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
