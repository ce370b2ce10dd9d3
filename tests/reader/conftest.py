"""Every test here must leave no thread, process, queue or batch memory behind."""

import gc
import os

import pytest

from fluidlite.data import data
from fluidlite.reader import leaks
from tests.simulated_cuda.install import simulated

from .device_steps import WIDTH


@pytest.fixture(autouse=True)
def no_leaks():
    yield
    gc.collect()
    left = {what: count for what, count in leaks().items() if count}
    assert not left, f"the test left behind {left}"


@pytest.fixture
def no_descriptor_left():
    gc.collect()
    before = os.listdir("/proc/self/fd")
    yield
    gc.collect()
    assert os.listdir("/proc/self/fd") == before


@pytest.fixture(params=[None, 1, 2, 3], ids=lambda seed: f"seed{seed}")
def any_order(request):
    """Two GPUs whose streams are as late as possible, or work when chance wants it."""
    with simulated(seed=request.param, devices=2) as simulation:
        yield simulation
        gc.collect()


@pytest.fixture
def late():
    """Two GPUs whose streams are as late as possible."""
    with simulated(devices=2) as simulation:
        yield simulation
        gc.collect()


@pytest.fixture
def feed_list(programs):
    """The variables of the batches in `device_steps`."""
    return [data("image", [None, WIDTH], "float32"), data("label", [None, 1], "int64")]
