"""Curves of training (`paddle.utils.plot`)."""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import Any

from ...base import callsite
from ...base.storage.files import atomic_writer

__all__ = ["PlotData", "Ploter"]


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
