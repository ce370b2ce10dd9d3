"""Graphs and passes in `fluid.core`."""

from __future__ import annotations

from collections.abc import Collection

from ..framework.serialization.ir_graph import Graph, IrNode, IrOpNode, nodes_of
from ..framework.serialization.passes import Pass, PassBuilder, get_pass

__all__ = [
    "Pass",
    "PassBuilder",
    "build_adjacency_list",
    "get_pass",
    "graph_num",
    "graph_safe_remove_nodes",
    "has_circle",
    "topology_sort",
]


def has_circle(graph: Graph) -> bool:
    """Whether operators depend on each other in a circle (`fluid.core.has_circle`)."""
    return nodes_of(graph).has_circle()


def topology_sort(graph: Graph) -> list[IrOpNode]:
    """The operators in topological order (`fluid.core.topology_sort`)."""
    return nodes_of(graph).topology_sort()


def build_adjacency_list(graph: Graph) -> dict[IrOpNode, set[IrOpNode]]:
    """The dependencies of each operator (`fluid.core.build_adjacency_list`)."""
    return nodes_of(graph).build_adjacency_list()


def graph_num(graph: Graph) -> int:
    """The number of connected components (`fluid.core.graph_num`)."""
    return nodes_of(graph).graph_num()


def graph_safe_remove_nodes(graph: Graph, nodes: Collection[IrNode]) -> None:
    """Take nodes and their arrows out of a graph (`fluid.core.graph_safe_remove_nodes`)."""
    nodes_of(graph).safe_remove_nodes(nodes)
