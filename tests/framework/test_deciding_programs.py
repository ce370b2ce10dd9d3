"""Gradients of random programs with branches, loops and arrays; see `deciding_programs`."""

import pytest

from tests.framework.deciding_programs import FEEDS, check


@pytest.mark.parametrize("seed", range(24))
def test_gradients_are_finite_differences(seed):
    told, compared = check(seed, FEEDS[seed % 2 :: 2])
    assert told == ""
    assert compared == 2
