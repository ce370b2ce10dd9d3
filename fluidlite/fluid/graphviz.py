"""Graphs in the language of the program `dot` (`fluid.graphviz`)."""

from __future__ import annotations

import itertools
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any, ClassVar

from ..base.storage.files import write_file
from ..framework import Operator, Program


def crepr(v: Any) -> str:
    """A value as `dot` takes it: strings in quotation marks."""
    return f'"{v}"' if isinstance(v, str) else str(v)


def _attributes(attrs: dict[str, Any], between: str) -> str:
    return between.join(f"{name}={crepr(value)}" for name, value in attrs.items())


class Rank:
    """Nodes that stand side by side: `kind` is 'same', 'min' or 'max' (`fluid.graphviz.Rank`)."""

    def __init__(self, kind: str, name: str, priority: int) -> None:
        if kind not in ("source", "sink", "same", "min", "max"):
            raise AssertionError(f"a rank is source, sink, same, min or max, got {kind!r}")
        self.kind, self.name, self.priority = kind, name, priority
        self.nodes: list[Node] = []

    def __str__(self) -> str:
        if not self.nodes:
            return ""
        return f"{{rank={self.kind};{','.join(node.name for node in self.nodes)}}}"


class Node:
    """A node, with a name of its own that begins with `prefix` (`fluid.graphviz.Node`)."""

    counter: ClassVar[int] = 1

    def __init__(self, label: str, prefix: str, description: str = "", **attrs: Any) -> None:
        self.label = label
        self.name = f"{prefix}_{Node.counter}"
        self.description = description
        self.attrs = attrs
        Node.counter += 1

    def __str__(self) -> str:
        rest = "," + _attributes(self.attrs, ",") if self.attrs else " "
        return f"{self.name} [label={self.label} {rest} ];"


class Edge:
    """An arrow from one node to another (`fluid.graphviz.Edge`)."""

    def __init__(self, source: Node, target: Node, **attrs: Any) -> None:
        self.source, self.target, self.attrs = source, target, attrs

    def __str__(self) -> str:
        attrs = f"[{_attributes(self.attrs, ',')}]" if self.attrs else ""
        return f"{self.source.name} -> {self.target.name} {attrs}"


class Graph:
    """A directed graph; `attrs` are those of the graph (`fluid.graphviz.Graph`)."""

    rank_counter = 0

    def __init__(self, title: str, **attrs: Any) -> None:
        self.title = title
        self.attrs = attrs
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.rank_groups: dict[str, Rank] = {}

    def code(self) -> str:
        """The graph in the language of `dot`."""
        return str(self)

    def rank_group(self, kind: str, priority: int) -> str:
        """A new `Rank`; nodes with its name, which is returned, as attribute `rank` belong to it."""
        name = f"rankgroup-{Graph.rank_counter}"
        Graph.rank_counter += 1
        self.rank_groups[name] = Rank(kind, name, priority)
        return name

    def node(self, label: str, prefix: str, description: str = "", **attrs: Any) -> Node:
        """A new node; `label` as `dot` takes it."""
        made = Node(label, prefix, description, **attrs)
        rank = attrs.get("rank")
        if rank in self.rank_groups:
            self.rank_groups[rank].nodes.append(made)
            del made.attrs["rank"]
        self.nodes.append(made)
        return made

    def edge(self, source: Node, target: Node, **attrs: Any) -> Edge:
        """A new arrow."""
        made = Edge(source, target, **attrs)
        self.edges.append(made)
        return made

    def compile(self, dot_path: str) -> str:
        """Write the graph to `dot_path`, which ends with `.dot`, and have `dot` make a PDF beside it; returns its path.

        Without `dot` (Graphviz) on the machine only the graph is written, and a warning is logged.
        """
        if not dot_path.endswith(".dot"):
            raise AssertionError(f"the path of a graph ends with .dot, got {dot_path!r}")
        write_file(dot_path, str(self), folders=False)
        picture = dot_path[: -len("dot")] + "pdf"
        if shutil.which("dot") is None:
            logging.warning("there is no program dot to draw %s with; Graphviz has it", dot_path)
            return picture
        subprocess.run(["dot", "-Tpdf", dot_path, "-o", picture], check=True)
        logging.warning("write block debug graph to %s", picture)
        return picture

    def show(self, dot_path: str) -> None:
        """`compile`, and open the picture with the program that the machine has for it."""
        picture = self.compile(dot_path)
        opener = "open" if sys.platform == "darwin" else "xdg-open"
        if shutil.which(opener) is not None:
            subprocess.run([opener, picture], check=False)

    def _rank_repr(self) -> str:
        ranks = sorted(self.rank_groups.values(), key=lambda rank: rank.priority)
        return "\n".join(str(rank) for rank in ranks)

    def __str__(self) -> str:
        lines = ["digraph G {", f"title = {crepr(self.title)}"]
        lines += [f"{name}={crepr(value)};" for name, value in self.attrs.items()]
        lines += [self._rank_repr(), "", *map(str, self.nodes), *map(str, self.edges), "}"]
        return "\n".join(lines)


class GraphPreviewGenerator:
    """A graph of operators, parameters and other variables (`fluid.graphviz.GraphPreviewGenerator`)."""

    def __init__(self, title: str) -> None:
        self.graph = Graph(title, layout="dot", concentrate="true", rankdir="TB")
        self.op_rank = self.graph.rank_group("same", 2)
        self.param_rank = self.graph.rank_group("same", 1)
        self.arg_rank = self.graph.rank_group("same", 0)

    def __call__(self, path: str = "temp.dot", show: bool = False) -> None:
        """Write the graph to `path`, and open the picture with `show`."""
        (self.graph.show if show else self.graph.compile)(path)

    def add_param(self, name: str, data_type: Any, highlight: bool = False) -> Node:
        """A parameter, with its name and type."""
        rows = [f'<tr><td bgcolor="#2b787e"><b>{name}</b></td></tr>', f"<tr><td>{data_type}</td></tr>"]
        return self.graph.node(
            f'<<table cellpadding="5">{"".join(rows)}</table>>',
            prefix="param",
            description=name,
            shape="none",
            style="rounded,filled,bold",
            width="1.3",
            color="orange" if highlight else "#148b97",
            fontcolor="#ffffff",
            fontname="Arial",
        )

    def add_op(self, opType: str, **kwargs: Any) -> Node:
        """An operator; `highlight=True` gives it another colour."""
        return self.graph.node(
            f"<<B>{opType}</B>>",
            prefix="op",
            description=opType,
            shape="box",
            style="rounded, filled, bold",
            color="orange" if kwargs.get("highlight") else "#303A3A",
            fontname="Arial",
            fontcolor="#ffffff",
            width="1.3",
            height="0.84",
        )

    def add_arg(self, name: str, highlight: bool = False) -> Node:
        """A variable that is no parameter."""
        return self.graph.node(
            crepr(name),
            prefix="arg",
            description=name,
            shape="box",
            style="rounded,filled,bold",
            fontname="Arial",
            fontcolor="#999999",
            color="orange" if highlight else "#dddddd",
        )

    def add_edge(self, source: Node, target: Node, **kwargs: Any) -> Edge:
        """An arrow; `highlight=True` gives it another colour."""
        return self.graph.edge(source, target, color="orange" if kwargs.get("highlight") else "#00000")


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
