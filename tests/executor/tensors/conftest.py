"""Fixtures of the tests of tensors."""

import pytest

from fluidlite.base import flags


@pytest.fixture(params=["plan", "interpret"])
def engine(request):
    """Both ways of running a program."""
    before = flags.engine()
    flags.set_engine(request.param)
    yield request.param
    flags.set_engine(before)
