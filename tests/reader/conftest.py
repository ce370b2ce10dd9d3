"""Every test here must leave no thread, process, queue or batch memory behind."""

import gc

import pytest

from fluidlite.reader import leaks


@pytest.fixture(autouse=True)
def nothing_left_behind():
    yield
    gc.collect()
    left = {what: count for what, count in leaks().items() if count}
    assert not left, f"the test left behind {left}"
