"""Bars on the terminal, and only there."""

import io
import sys

import numpy as np

import fluidlite as fluid
from fluidlite.base.reports import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_bars_are_for_terminals(monkeypatch):
    monkeypatch.setattr(progress, "MANY", 3)
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        assert list(progress.over([1, 2, 3], "numbers")) == [1, 2, 3]
        assert ("numbers:" in stream.getvalue()) is shown
    few = [1, 2]
    assert progress.over(few, "numbers") is few
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.bar(3, "numbers") as bar:
        assert bar is None


def test_plans_of_big_programs_show_how_far_they_are(monkeypatch):
    monkeypatch.setattr(progress, "MANY", 5)
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        y = fluid.data("x", [None, 2])
        for _ in range(6):
            y = fluid.layers.softmax(y)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(feed={"x": np.zeros([1, 2], "float32")}, fetch_list=[y])
    assert "shapes of the program:" in stream.getvalue() and "instructions of the plan:" in stream.getvalue()
