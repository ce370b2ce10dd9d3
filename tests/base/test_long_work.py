"""The garbage collector is paused while programs and plans are made, and goes on afterwards; bars are for terminals."""

import gc
import io
import os
import sys

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import long_work

pytestmark = pytest.mark.usefixtures("alone")


def test_a_pause_ends_with_its_block():
    with pytest.raises(KeyError), long_work.collector_paused():
        assert not gc.isenabled()
        with long_work.collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        with long_work.collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_children_collect_though_they_are_forked_in_a_pause():
    with long_work.collector_paused():
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


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_bars_are_for_terminals(monkeypatch):
    monkeypatch.setattr(long_work, "MANY", 3)
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        assert list(long_work.over([1, 2, 3], "numbers")) == [1, 2, 3]
        assert ("numbers:" in stream.getvalue()) is shown
    few = [1, 2]
    assert long_work.over(few, "numbers") is few
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with long_work.bar(3, "numbers") as bar:
        assert bar is None


def test_plans_of_big_programs_show_how_far_they_are(monkeypatch):
    monkeypatch.setattr(long_work, "MANY", 5)
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        y = fluid.data("x", [None, 2])
        for _ in range(6):
            y = fluid.layers.softmax(y)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(feed={"x": np.zeros([1, 2], "float32")}, fetch_list=[y])
    assert "shapes of the program:" in stream.getvalue() and "instructions of the plan:" in stream.getvalue()
