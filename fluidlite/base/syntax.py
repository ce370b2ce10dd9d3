"""Copies of syntax trees."""

from __future__ import annotations

import ast
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)


def copied(node: Node) -> Node:
    """A copy of a syntax tree: the fields and positions of its nodes, and nothing else.

    Tools such as `executing`, by which IPython makes tracebacks, attach its parent to a node. As Python has one node
    of each context and operator (`ast.Load`) in all trees, `copy.deepcopy` would go from there to other trees.
    """
    fields = {name: _field(getattr(node, name)) for name in node._fields if hasattr(node, name)}
    return ast.copy_location(type(node)(**fields), node)


def _field(value: object) -> object:
    if isinstance(value, list):
        return [_field(each) for each in value]
    return copied(value) if isinstance(value, ast.AST) else value
