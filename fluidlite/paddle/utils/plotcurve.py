"""Curves of the logs that `paddle train` wrote before Fluid (`paddle.utils.plotcurve`)."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from typing import IO

from ...base.storage.files import atomic_writer

__all__ = ["main", "plot_paddle_curve"]

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
