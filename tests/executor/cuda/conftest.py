"""Fixtures of the tests of plans on GPUs."""

import pytest

import fluidlite as fluid


@pytest.fixture
def gpu(cuda):
    return fluid.CUDAPlace(0)
