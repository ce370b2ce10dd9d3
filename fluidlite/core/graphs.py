"""What `fluid.core` does with graphs, and the passes that it has names for."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from ..base.errors import EnforceNotMet
from ..framework.serialization.descs import ProgramDesc
from ..framework.serialization.ir_graph import Graph, IrGraph, IrNode, IrOpNode
from ..inference.passes import KNOWN_PASSES

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


def _nodes(graph: Graph) -> IrGraph:
    return graph._nodes or IrGraph(graph)


def has_circle(graph: Graph) -> bool:
    """Whether operators depend on each other in a circle (`fluid.core.has_circle`)."""
    return _nodes(graph).has_circle()


def topology_sort(graph: Graph) -> list[IrOpNode]:
    """The operators, each behind those that it depends on (`fluid.core.topology_sort`)."""
    return _nodes(graph).topology_sort()


def build_adjacency_list(graph: Graph) -> dict[IrOpNode, set[IrOpNode]]:
    """Of each operator those that it depends on (`fluid.core.build_adjacency_list`)."""
    return _nodes(graph).build_adjacency_list()


def graph_num(graph: Graph) -> int:
    """How many parts without arrows between them there are (`fluid.core.graph_num`)."""
    return _nodes(graph).graph_num()


def graph_safe_remove_nodes(graph: Graph, nodes: Collection[IrNode]) -> None:
    """Take nodes and their arrows out of a graph (`fluid.core.graph_safe_remove_nodes`)."""
    _nodes(graph).safe_remove_nodes(nodes)


class Pass:
    """A step of Fluid's optimizer of graphs, by its name (`fluid.core.Pass`).

    Plans decide what is fused, so that applying most of them changes nothing; `graph_viz_pass` writes the graph to the
    file of its attribute `graph_viz_path`, and `is_test_pass` lets operators compute as in inference.
    """

    def __init__(self, type: str = "") -> None:
        self._type = type
        self._attrs: dict[str, Any] = {}

    def type(self) -> str:
        return self._type

    def has(self, name: str) -> bool:
        """Whether an attribute was set."""
        return name in self._attrs

    def set(self, name: str, value: Any) -> None:
        """Set an attribute; EnforceNotMet if it was set before."""
        if name in self._attrs:
            raise EnforceNotMet(f"Attribute {name} already set in the pass {self._type}")
        self._attrs[name] = value

    def set_not_owned(self, name: str, value: ProgramDesc) -> None:
        """Set an attribute that is a program."""
        self.set(name, value)

    def apply(self, graph: Graph) -> None:
        """Do it to `graph`. EnforceNotMet if an attribute that it needs was not set."""
        if self._type == "graph_viz_pass":
            if not self.has("graph_viz_path"):
                raise EnforceNotMet(
                    "Required attribute graph_viz_path for pass < graph_viz_pass > is not set."
                )
            folder, name = os.path.split(self._attrs["graph_viz_path"])
            _nodes(graph).draw(folder or ".", name.removesuffix(".dot"))
        if self._type == "is_test_pass":
            for op in _nodes(graph).all_op_nodes():
                if "is_test" in op._operator.definition.attrs:
                    op._operator._set_attr("is_test", True)


def get_pass(pass_type: str) -> Pass:
    """The pass of a name (`fluid.core.get_pass`); EnforceNotMet if Fluid has none."""
    if pass_type not in KNOWN_PASSES:
        raise EnforceNotMet(f"Pass {pass_type} has not been registered")
    return Pass(pass_type)


class PassBuilder:
    """A list of passes (`fluid.core.PassBuilder`)."""

    def __init__(self) -> None:
        self._passes: list[Pass] = []

    def all_passes(self) -> list[Pass]:
        return list(self._passes)

    def append_pass(self, pass_type: str) -> Pass:
        return self.insert_pass(len(self._passes), pass_type)

    def insert_pass(self, idx: int, pass_type: str) -> Pass:
        """Put a new pass before number `idx`; EnforceNotMet if there are not as many."""
        if not 0 <= idx <= len(self._passes):
            raise EnforceNotMet(f"there are {len(self._passes)} passes, no place {idx} between them")
        made = get_pass(pass_type)
        self._passes.insert(idx, made)
        return made

    def remove_pass(self, idx: int) -> None:
        """Take pass number `idx` away; EnforceNotMet if there is none."""
        if not 0 <= idx < len(self._passes):
            raise EnforceNotMet(f"there are {len(self._passes)} passes, no number {idx}")
        del self._passes[idx]
