"""`fluid.dygraph.dygraph_to_static.break_continue_transformer`: loops that are left, or whose turns are."""

from __future__ import annotations

import ast
from typing import Any

from ...base import missing, unique_name
from .control_flow import is_range
from .static_analysis import TreeStep

__all__ = [
    "BREAK_NAME_PREFIX",
    "CONTINUE_NAME_PREFIX",
    "BreakContinueTransformer",
    "ForToWhileTransformer",
    "counted",
]

BREAK_NAME_PREFIX, CONTINUE_NAME_PREFIX = "__break", "__continue"


def counted(loop: ast.For) -> tuple[ast.stmt, ast.expr, ast.stmt] | None:
    """What counts in `for name in range(...)`: the first value, the condition, the step; None for other loops."""
    if not is_range(loop.iter) or not isinstance(loop.target, ast.Name):
        return None
    assert isinstance(loop.iter, ast.Call)
    name, args = loop.target.id, [ast.unparse(arg) for arg in loop.iter.args]
    first: ast.stmt
    if len(args) == 1:
        text = f"{name} = fluid.layers.fill_constant([1], 'int64', 0)"
        start, step = text, "1"
    else:
        start, step = f"{name} = {args[0]}", args[2] if len(args) == 3 else "1"
    first = ast.parse(start).body[0]
    last = args[0] if len(args) == 1 else args[1]
    condition = ast.parse(f"({name} + {step}) <= ({last})", mode="eval").body
    return first, condition, ast.parse(f"{name} += {step}").body[0]


class ForToWhileTransformer(ast.NodeTransformer):
    """Makes the loop `loop_node` among the statements of `parent_node` a `while` that `condition_node` ends, too.

    Loops over something else than a `range` stay as they are. Follows
    `fluid.dygraph.dygraph_to_static.break_continue_transformer.ForToWhileTransformer`; the tree is changed.
    """

    def __init__(self, parent_node: ast.AST, loop_node: ast.For, condition_node: ast.expr) -> None:
        self.parent_node, self.loop_node, self.condition_node = parent_node, loop_node, condition_node

    def transform(self) -> None:
        for field in ("body", "orelse", "finalbody"):
            stmts = getattr(self.parent_node, field, None)
            if isinstance(stmts, list) and self.loop_node in stmts:
                at = stmts.index(self.loop_node)
                stmts[at : at + 1] = self.get_for_stmt_nodes(self.loop_node)

    def get_for_stmt_nodes(self, node: ast.For) -> list[ast.stmt]:
        """The statements that stand for a loop: what comes before it, and it."""
        found = counted(node)
        if found is None:
            return [node]
        first, condition, step = found
        test = ast.BoolOp(op=ast.And(), values=[condition, self.condition_node])
        loop = ast.While(test=test, body=[*node.body, step], orelse=node.orelse)
        return [first, ast.copy_location(loop, node)]


class BreakContinueTransformer(TreeStep):
    """`break` and `continue` become variables: what follows them in the loop stands under `if not ...`.

    Follows `fluid.dygraph.dygraph_to_static.break_continue_transformer.BreakContinueTransformer`; the tree is changed.
    A `for` over a `range` that is left becomes a `while`, which counts in every turn; other `for` go on, and their
    further turns do nothing but what comes before the `if`.
    """

    def transform(self) -> None:
        left: list[tuple[ast.For, ast.expr]] = []
        while True:
            around = _places(self.root)
            exits = [node for node in around if isinstance(node, (ast.Break, ast.Continue))]
            if not exits:
                break
            self._leave(exits[0], around, left)
        for loop, ends in left:
            around = _places(self.root)
            if loop in around:  # it is not where nobody comes, behind another exit
                ForToWhileTransformer(around[loop][0], loop, ends).transform()

    def _leave(self, node: ast.stmt, around: _Places, left: list[tuple[ast.For, ast.expr]]) -> None:
        breaks = isinstance(node, ast.Break)
        name = unique_name.generate(BREAK_NAME_PREFIX if breaks else CONTINUE_NAME_PREFIX)
        ends = ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name, ctx=ast.Load()))
        parent, stmts = around[node]
        stmts[stmts.index(node) :] = [_flag(name, True)]
        child: ast.AST = parent
        while not (isinstance(parent, (ast.While, ast.For)) and stmts is parent.body):
            if child not in around:
                raise ValueError(f"a {'break' if breaks else 'continue'} stands outside of loops")
            parent, stmts = around[child]
            if stmts:
                at = stmts.index(child) + 1
                if stmts[at:]:
                    stmts[at:] = [ast.If(test=ends, body=stmts[at:], orelse=[])]
            child = parent
        loop = parent
        if not breaks:
            loop.body.insert(0, _flag(name, False))
            return
        outer = around[loop][1]
        outer.insert(outer.index(loop), _flag(name, False))
        if isinstance(loop, ast.While):
            loop.test = ast.BoolOp(op=ast.And(), values=[loop.test, ends])
        else:
            left.append((loop, ends))


_Places = dict[ast.AST, tuple[Any, list[Any]]]


def _places(root: ast.AST) -> _Places:
    """What each node stands in, and the statements among which it does, in the order of the text."""
    found: _Places = {}

    def walk(node: ast.AST) -> None:
        for field, value in ast.iter_fields(node):
            items = value if isinstance(value, list) else [value]
            stmts = value if field in ("body", "orelse", "finalbody") and isinstance(value, list) else []
            for item in items:
                if isinstance(item, ast.AST):
                    found[item] = (node, stmts)
                    walk(item)

    walk(root)
    return found


def _flag(name: str, value: bool) -> ast.stmt:
    text = f"{name} = fluid.layers.fill_constant(shape=[1], dtype='bool', value={value})"
    return ast.parse(text).body[0]


__getattr__ = missing.reporter(__name__)
