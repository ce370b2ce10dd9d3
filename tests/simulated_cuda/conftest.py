"""What the tests of the simulated CuPy start from."""

import pytest

from . import simulated


@pytest.fixture
def sim():
    """A simulated machine whose streams work as late as they may."""
    with simulated(seed=None) as found:
        yield found


@pytest.fixture
def cp(sim):
    """The simulated CuPy of `sim`, or of a fixture of that name in the file."""
    return sim.cupy
