"""`SlimGraphExecutor`: runs graphs on lists of samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....base import missing
from ....base.place import Place
from ....executor import Executor, Scope, scope_guard
from ....reader.feeder import DataFeeder
from .graph_wrapper import GraphWrapper

__all__ = ["SlimGraphExecutor"]


class SlimGraphExecutor:
    """Runs a `GraphWrapper` at `place` (`fluid.contrib.slim.graph.SlimGraphExecutor`)."""

    def __init__(self, place: Place) -> None:
        self.exe = Executor(place)
        self.place = place

    def run(self, graph: GraphWrapper, scope: Scope, data: Any = None) -> tuple[list[Any], list[str]]:
        """The values of the graph's `out_nodes`, and their names there.

        `data`: samples in the order of `in_nodes`, or a feed dictionary in a list; None if the program reads by itself.
        """
        feed = None
        if data is not None:
            if len(data) == 1 and isinstance(data[0], dict):
                feed = data[0]
            else:
                feeder = DataFeeder(list(graph.in_nodes.values()), self.place, program=graph.program)
                feed = feeder.feed(data)
        fetches = list(graph.out_nodes.values())
        program = graph.compiled_graph or graph.program
        with scope_guard(scope):
            results = self.exe.run(program, feed=feed, fetch_list=fetches, scope=scope)
        return [float(np.mean(value)) for value in results], list(graph.out_nodes)


__getattr__ = missing.reporter(__name__)
