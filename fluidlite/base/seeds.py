"""Seeds for everything random that has none of its own."""

from __future__ import annotations

import random
from collections.abc import Callable

SEEDS = 2147483646
"""The number of different seeds of the random streams."""

_unpredictable = random.SystemRandom()
_reseeded: random.Random | None = None
_key: int | None = None
_listeners: list[Callable[[], None]] = []


def fresh_seed() -> int:
    """A seed independent of NumPy's, `random`'s and earlier ones.

    After `reseed`, the next one of the sequence that its number determines.
    """
    return (_reseeded or _unpredictable).randrange(SEEDS) + 1


def reseed(seed: int | None) -> None:
    """Make fresh seeds, and so all random operations without a seed of their own, follow from `seed` (None:
    unpredictable)."""
    global _reseeded, _key
    _reseeded = None if seed is None else random.Random(seed)
    _key = None if seed is None else random.Random(f"device {seed}").getrandbits(64)
    for listener in _listeners:
        listener()


def is_reseeded() -> bool:
    """Whether fresh seeds follow from a number."""
    return _reseeded is not None


def device_key(number: int) -> int:
    """64 bits for a generator on GPU `number` to start from. Asking takes nothing from the sequence of fresh seeds."""
    return _unpredictable.getrandbits(64) if _key is None else (_key + number) % 2**64


def on_reseed(listener: Callable[[], None]) -> Callable[[], None]:
    """Register `listener`, which is called after each `reseed`; usable as a decorator."""
    _listeners.append(listener)
    return listener


def stream_of(seed: int) -> int:
    """The number that a stream of random numbers begins at: that of a `seed` attribute, which is taken for an unsigned
    one of 32 bits; a fresh one for 0.
    """
    return seed if seed > 0 else seed & 0xFFFFFFFF or fresh_seed()
