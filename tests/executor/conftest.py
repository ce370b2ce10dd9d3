"""Every executor test builds its own programs and runs in a scope of its own."""

import pytest


@pytest.fixture(autouse=True)
def fresh(alone):
    """Every test is on its own."""
