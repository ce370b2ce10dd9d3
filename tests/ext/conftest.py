"""Fixtures for the tests of several extensions."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from fluidlite._ext import shm


@pytest.fixture
def file() -> Iterator[int]:
    """The descriptor of a file for shared memory, in which nothing may be left."""
    descriptor = shm.create_file()
    before = shm.counters()
    yield descriptor
    os.close(descriptor)
    assert shm.counters() == before, "leases or mappings are left"
