"""Programs as graphs of operators and variables (`fluid.net_drawer`)."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import Any

from .base import missing
from .framework import Operator, Program
from .graphviz import Graph, Node, crepr

OP_STYLE = {"shape": "oval", "color": "#0F9D58", "style": "filled", "fontcolor": "#FFFFFF"}
VAR_STYLE: dict[str, str] = {}
GRAPH_STYLE = {"rankdir": "TB"}
GRAPH_ID = 0
logger = logging.getLogger("paddle.fluid.net_drawer")


def unique_id() -> Callable[[], int]:
    """A function that gives 0, 1, 2, ... (`fluid.net_drawer.unique_id`)."""
    return itertools.count(GRAPH_ID).__next__


def draw_node(op: Operator) -> dict[str, str]:
    """How the node of an operator looks: its name, its text and the style (`fluid.net_drawer.draw_node`)."""
    return {**OP_STYLE, "name": op.type, "label": op.type}


def draw_edge(var_parent: dict[str, str], op: Operator, var: Any, arg: str) -> dict[str, str]:
    """The arrow from the operator that makes `arg` to `op`, which takes it in the slot `var.parameter`."""
    return {"label": f"{var.parameter}({arg})", "from": var_parent[arg], "to": op.type}


def parse_graph(program: Program, graph: Graph, var_dict: dict[str, Node], **kwargs: Any) -> None:
    """Add the operators of the first block of `program` to `graph`, and variables that are not in `var_dict` yet."""

    def node(name: str) -> Node:
        if name not in var_dict:
            var_dict[name] = graph.node(crepr(name), "var", name, **VAR_STYLE)
        return var_dict[name]

    for op in program.global_block().ops:
        drawn = graph.node(crepr(op.type), "op", op.type, **OP_STYLE)
        for slots, reads in ((op.inputs, True), (op.outputs, False)):
            for slot, names in slots.items():
                for name in names:
                    ends = (node(name), drawn) if reads else (drawn, node(name))
                    graph.edge(*ends, label=slot)


def draw_graph(startup_program: Program, main_program: Program, **kwargs: Any) -> Graph:
    """A graph of two programs, to be written by its `compile`; variables that both have stand in it once.

    `title` and `graph_attr`, a dict, change how it looks; with `filename`, which ends with `.dot`, it is written there.
    """
    graph = Graph(kwargs.get("title", "program"), **{**GRAPH_STYLE, **kwargs.get("graph_attr", {})})
    known: dict[str, Node] = {}
    for program in (startup_program, main_program):
        parse_graph(program, graph, known)
    if kwargs.get("filename"):
        graph.compile(kwargs["filename"])
    return graph


__getattr__ = missing.reporter(__name__)
