"""Curves of training (`paddle.utils.plot`)."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import IO, Any

from ...base import callsite
from ...base.storage.files import atomic_writer

__all__ = [
    "PlotData",
    "Ploter",
    "main",
    "plot_paddle_curve",
]


class PlotData:
    """A curve: `step` and `value` are lists (`paddle.utils.plot.PlotData`)."""

    def __init__(self) -> None:
        self.step: list[Any] = []
        self.value: list[Any] = []

    def append(self, step: Any, value: Any) -> None:
        self.step.append(step)
        self.value.append(value)

    def reset(self) -> None:
        """Begin again, with nothing."""
        self.step, self.value = [], []


class Ploter:
    """Collects curves and draws them with matplotlib, in a notebook or to a file (`paddle.utils.Ploter`).

    The environment variable `DISABLE_PLOT=True` leaves the drawing out, as does a machine without matplotlib, with a
    warning.

    Args:
        args: the titles of the curves.
    """

    def __init__(self, *args: str) -> None:
        self.__args__ = args
        self.__plot_data__ = {title: PlotData() for title in args}
        self.__disable_plot__ = os.environ.get("DISABLE_PLOT")
        if not self.__plot_is_disabled__() and importlib.util.find_spec("matplotlib") is None:
            callsite.warn("Ploter draws nothing: matplotlib is not installed")
            self.__disable_plot__ = "True"

    def __plot_is_disabled__(self) -> bool:
        return self.__disable_plot__ == "True"

    def append(self, title: str, step: Any, value: Any) -> None:
        """A new point of the curve `title`; AssertionError if there is none."""
        if title not in self.__plot_data__:
            raise AssertionError(f"there is no curve {title!r}, only {', '.join(self.__args__)}")
        self.__plot_data__[title].append(step, value)

    def plot(self, path: str | None = None) -> None:
        """Draw the curves: to the file `path`, or else where the notebook shows results."""
        if self.__plot_is_disabled__():
            return
        from matplotlib import pyplot

        drawn = {title: data for title, data in self.__plot_data__.items() if data.step}
        for data in drawn.values():
            pyplot.plot(data.step, data.value)
        pyplot.legend(list(drawn), loc="upper left")
        if path is None:
            display = importlib.import_module("IPython.display")
            display.clear_output(wait=True)
            display.display(pyplot.gcf())
        else:
            name = path if os.path.splitext(path)[1] else f"{path}.{pyplot.rcParams['savefig.format']}"
            with atomic_writer(name, folders=False) as file:
                pyplot.savefig(file, format=os.path.splitext(name)[1][1:])
        pyplot.gcf().clear()

    def reset(self) -> None:
        """Begin all curves again."""
        for data in self.__plot_data__.values():
            data.reset()


_NUMBER = r"=([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)"


def _rows(lines: Iterable[str], keys: Sequence[str]) -> tuple[list[list[float]], list[list[float]]]:
    """Of each pass, its number and the values of `keys`; the same values of each test. Other lines are passed over."""
    values = "".join(rf".*?\b{re.escape(key)}{_NUMBER}" for key in keys)
    passes, tests = re.compile(rf"Pass{_NUMBER}{values}"), re.compile(rf"Test samples{_NUMBER}{values}")
    trained, tested = [], []
    for line in lines:
        if found := passes.search(line):
            trained.append([float(value) for value in found.groups()])
        elif found := tests.search(line):
            tested.append([float(value) for value in found.groups()[1:]])
    return trained, tested


def plot_paddle_curve(
    keys: Sequence[str],
    inputfile: Iterable[str],
    outputfile: IO[bytes],
    format: str = "png",
    show_fig: bool = False,
) -> None:
    """Draw the values of a log, pass by pass, by matplotlib (`paddle.utils.plotcurve.plot_paddle_curve`).

    Lines with `Pass=0 ... AvgCost=0.62 ... error=0.26` are points; what tests gave, in lines with
    `Test samples=100 ... AvgCost=0.7`, is drawn beside it, dashed, if there was one test a pass. Without any value
    there is a line on standard output and no file.

    Args:
        keys: what to draw, in the order that they have in the lines; none: AvgCost.
        inputfile: the log's lines.
        outputfile: a binary file that the picture is written to.
        format: png, pdf, ps, eps or svg.
        show_fig: whether to show a window as well.
    """
    keys = list(keys) or ["AvgCost"]
    trained, tested = _rows(inputfile, keys)
    if not trained:
        print("No data to plot. Exiting!")
        return
    from matplotlib import pyplot

    passes = [row[0] for row in trained]
    colors = pyplot.get_cmap("jet")([k / len(keys) for k in range(len(keys))])
    for k, (key, color) in enumerate(zip(keys, colors, strict=True)):
        pyplot.plot(passes, [row[k + 1] for row in trained], color=color, label=key)
        if len(tested) == len(trained):
            rest = [row[k] for row in tested]
            pyplot.plot(passes, rest, "--", color=color, label=f"Test {key}")
    pyplot.xlabel("number of epoch")
    pyplot.legend(loc="best")
    if show_fig:
        pyplot.show()
    pyplot.savefig(outputfile, bbox_inches="tight", format=format)
    pyplot.clf()


def main(argv: Sequence[str]) -> None:
    """`plot_paddle_curve` as a command, with what follows its name (`paddle.utils.plotcurve.main`)."""
    parser = argparse.ArgumentParser(description="Draws the values of a log of `paddle train`.")
    parser.add_argument("-i", "--input", help="the log; standard input if not given")
    parser.add_argument("-o", "--output", help="the picture; standard output if not given")
    parser.add_argument("--format", default="png", help="png, pdf, ps, eps or svg")
    parser.add_argument("key", nargs="*", help="what to draw, in the log's order; AvgCost if not given")
    given = parser.parse_args(argv)
    if given.input:
        with open(given.input, encoding="utf-8") as file:
            lines = file.readlines()
    else:
        lines = sys.stdin.readlines()
    if not given.output:
        plot_paddle_curve(given.key, lines, sys.stdout.buffer, given.format)
        return
    with atomic_writer(given.output, folders=False) as picture:
        plot_paddle_curve(given.key, lines, picture, given.format)
