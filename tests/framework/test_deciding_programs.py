"""Gradients of random programs with branches, loops and arrays; see `deciding_programs`."""

import pytest

from tests.framework.deciding_programs import FEEDS, check

FOUND = [1344]
"""Programs that were wrong once: two passes of gradients through steps with a loop that counts."""


@pytest.mark.parametrize("seed", [*range(24), *FOUND])
def test_gradients_are_finite_differences(seed):
    message, compared = check(seed, FEEDS[seed % 2 :: 2])
    assert message == ""
    assert compared == 2
