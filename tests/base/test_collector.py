"""The garbage collector is paused while programs and plans are made, and goes on afterwards."""

import gc
import os

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import collector

pytestmark = pytest.mark.usefixtures("alone")


def test_a_pause_ends_with_its_block():
    with pytest.raises(KeyError), collector.paused():
        assert not gc.isenabled()
        with collector.paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        with collector.paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_children_collect_though_they_are_forked_in_a_pause():
    with collector.paused():
        child = os.fork()
        if not child:
            os._exit(int(not gc.isenabled()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_programs_that_are_refused_leave_it_on():
    x = fluid.data("x", [None, 2], "float32")
    loss = fluid.layers.mean(fluid.layers.fc(x, 2))
    fluid.optimizer.SGD(0.1).minimize(loss)
    assert gc.isenabled()
    with pytest.raises(fluid.core.EnforceNotMet):  # the startup program has not run
        fluid.Executor().run(feed={"x": np.zeros((2, 2), "float32")}, fetch_list=[loss])
    assert gc.isenabled()
