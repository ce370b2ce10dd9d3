"""The order in which an epoch reads the samples of a dataset: drawn from a sampler, or redrawn to resume."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from .random_source import plain_state
from .samplers import BatchSampler, SequenceSampler
from .worker.random_state import RandomState


def state_of(sampler: Any) -> dict[str, Any]:
    """The state from which the next epoch of a batch sampler is drawn, as plain numbers, strings and lists.

    A sampler of the user's without a `state_dict` is taken to draw from `numpy.random` or `random` at the beginning of
    an epoch: the state is theirs.
    """
    if type(sampler) is SequenceSampler:
        return {"own": {}}
    if _has_state(sampler):
        return {"own": sampler.state_dict()}
    version, words, gauss = random.getstate()
    return {"numpy": plain_state(np.random.get_state(legacy=False)), "random": [version, list(words), gauss]}


def begin(sampler: Any, state: dict[str, Any] | None = None) -> Iterator[Any]:
    """An iterator over an epoch of a batch sampler; over the epoch drawn from `state`, if it is given.

    The order is drawn here, in the caller's thread, so that it does not depend on what other threads draw.
    """
    if state is None:
        return _begin(sampler)
    if "own" in state:
        if state["own"]:
            sampler.set_state_dict(state["own"])
        return _begin(sampler)
    before = RandomState()
    version, words, gauss = state["random"]
    try:
        np.random.set_state(state["numpy"])
        random.setstate((version, tuple(words), gauss))
        return _begin(sampler)
    finally:
        before.restore()


def _begin(sampler: Any) -> Iterator[Any]:
    # A generator function draws when its first item is requested.
    iterator = iter(sampler)
    return itertools.chain(list(itertools.islice(iterator, 1)), iterator)


def _has_state(sampler: Any) -> bool:
    """Whether the sampler's `state_dict` determines its order."""
    if type(sampler) is SequenceSampler:
        return True
    definers = [
        next((base for base in type(sampler).__mro__ if name in vars(base)), None)
        for name in ("state_dict", "set_state_dict", "__iter__")
    ]
    state, restore, order = definers
    if state is None or restore is None or order is None:
        return False
    # An inherited one does not cover an order that a subclass draws itself.
    if not issubclass(state, order):
        return False
    return state is not BatchSampler or _has_state(sampler.sampler)
