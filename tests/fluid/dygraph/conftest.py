"""Fixtures for tests of dygraph mode."""

import pytest

from fluidlite import dygraph


@pytest.fixture
def eager():
    """Dygraph mode, with names that count from 0."""
    with dygraph.guard():
        yield
