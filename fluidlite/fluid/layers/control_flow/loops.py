"""`While` and `while_loop`: blocks that run as long as a condition holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from .... import eager
from ....base import callsite
from ....base.dtypes import VarType, to_numpy
from ....base.errors import OperatorError
from ....framework import Block, Variable, mode
from ....framework.gradients.blocks import names_from_outside
from ...layer_helper import LayerHelper
from ..tensor.variables import assign
from ..utils import assert_same_structure, map_structure
from .conditional_block import BlockGuard, programs_only

__all__ = ["While", "while_loop"]


class While:
    """Runs the operators built inside `block()` as long as `cond` is true (`fluid.layers.While`).

        loop = layers.While(cond=layers.less_than(i, n))
        with loop.block():
            ...
            layers.increment(i)
            layers.less_than(i, n, cond=cond)

    Variables from outside are read inside and, by layers that write into a given variable (`assign`, `increment`,
    `array_write`, `cond=` of comparisons), changed there; the block has to change `cond`. Variables made inside are
    new in each iteration.

    Args:
        cond: the condition, bool of shape [1].
        is_test: kept in the program.
        name: the prefix of names.

    Raises:
        TypeError: `cond` is something else; StaticModeError in dygraph mode.
    """

    def __init__(self, cond: Variable, is_test: bool = False, name: str | None = None) -> None:
        programs_only("While")
        self.helper = LayerHelper("while", name=name)
        _check_condition(cond, "condition")
        self.cond_var = cond
        self.is_test = is_test

    def block(self) -> WhileGuard:
        """A context in which the operators that are repeated are built."""
        return WhileGuard(self)


_PLACES = frozenset({VarType.INT32, VarType.INT64})
"""Types of indices and ids, which operators accept interchangeably."""


class WhileGuard(BlockGuard):
    """The context that `While.block()` returns (`fluid.layers.control_flow.WhileGuard`)."""

    def __init__(self, while_op: While) -> None:
        if not isinstance(while_op, While):
            raise TypeError(f"WhileGuard takes a while op, got {type(while_op).__name__}")
        super().__init__(while_op.helper.main_program)
        self.while_op = while_op

    def __enter__(self) -> None:
        self._types = _types(self.main_program.current_block())
        super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        body = self.main_program.current_block()
        super().__exit__(kind, error, trace)
        if kind is None:
            self._check_types(body)
            _append_loop(self.while_op, body, self.main_program.current_block())
        return None

    def _check_types(self, body: Block) -> None:
        """Raise OperatorError if the block gives a variable from outside another type of elements; `_PLACES` may."""
        for op in body.ops:
            for name in op.writes():
                var = body._find_var_recursive(name)
                if var is None:  # gradients internal to a branch are no variables
                    continue
                made, before = var.dtype, self._types.get(name, var.dtype)
                if made != before and not {made, before} <= _PLACES:
                    raise OperatorError(
                        f"operator {op.type}: variable {name!r} is of type {to_numpy(before)} before the loop and "
                        f"of type {to_numpy(made)} after an iteration{callsite.describe(op.line)}; convert it with "
                        "fluid.layers.cast"
                    )


def _append_loop(loop: While, body: Block, outer: Block) -> None:
    if body.backward_block_idx >= 0:
        raise NotImplementedError(
            "minimize inside of While has no effect in Fluid: nothing runs its gradients. Minimize inside of a branch "
            "(fluid.layers.cond), or after the loop"
        )
    read, written = names_from_outside(body)
    outs = [name for name in written if outer._find_var_recursive(name) is not None]
    # A tensor that is written is an input too: the next iteration may read it, and with no iteration it is unchanged.
    kept = [name for name in outs if outer._var_recursive(name).type != VarType.LOD_TENSOR_ARRAY]
    names = [name for name in dict.fromkeys((*read, *kept)) if name != loop.cond_var.name]
    scopes = outer.create_var(type=VarType.STEP_SCOPES)
    outer.append_op(
        type="while",
        inputs={"X": names, "Condition": [loop.cond_var]},
        outputs={"Out": outs, "StepScopes": [scopes]},
        attrs={"sub_block": body, "is_test": loop.is_test},
    )


def _types(block: Block) -> dict[str, VarType]:
    """The element types of all tensors that the operators of a block may use."""
    found = {} if block.parent_idx < 0 else _types(block.program.block(block.parent_idx))
    tensors = (
        var for var in block.vars.values() if var.type == VarType.LOD_TENSOR and var._dtype is not None
    )
    return {**found, **{var.name: var.dtype for var in tensors}}


def while_loop(
    cond: Callable[..., Variable],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    is_test: bool = False,
    name: str | None = None,
) -> Sequence[Any]:
    """Compute `loop_vars = body(*loop_vars)` as long as `cond(*loop_vars)` is true (`fluid.layers.while_loop`).

    Args:
        cond: says whether to go on, bool of shape [1].
        body: gives new values for all loop variables, in the same order and structure.
        loop_vars: Variables, tensor arrays, or lists and dicts of them. In a program it is these variables that change.
        is_test: kept in the program.
        name: the prefix of names.

    Returns:
        The loop variables after the last iteration.

    Raises:
        TypeError: `cond` or `body` cannot be called, `loop_vars` is no list or tuple, or the condition is not a bool of
            one element.
        ValueError: there are no loop variables, or `body` returns something of another structure.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> i = fluid.layers.fill_constant([1], "int64", 0)
        >>> last, = fluid.layers.while_loop(lambda i: i < 10, lambda i: [i + 3], [i])
        >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[last])
        [array([12])]
    """
    for function, what in ((cond, "cond"), (body, "body")):
        if not callable(function):
            raise TypeError(f"{what} in while_loop should be callable, got {function!r}")
    if not isinstance(loop_vars, (list, tuple)):
        raise TypeError(f"loop_vars in while_loop should be a list or tuple, got {type(loop_vars).__name__}")
    if not loop_vars:
        raise ValueError("loop_vars in while_loop should not be empty")
    condition = cond(*loop_vars)
    _check_condition(condition, "the variable returned by cond in while_loop")
    if eager.mixture([condition]) or mode.in_dygraph_mode():
        while condition.numpy().item():
            loop_vars = _same_structure(body(*loop_vars), loop_vars)
            condition = cond(*loop_vars)
        return loop_vars
    loop = While(condition, is_test, name)
    with loop.block():
        # The body may change the lists and dictionaries that it gets; those of the caller keep their variables.
        own = map_structure(lambda var: var, loop_vars)
        made = _same_structure(body(*own), loop_vars)
        next_condition = cond(*made)
        map_structure(assign, made, loop_vars)
        assign(next_condition, condition)
    return loop_vars


def _same_structure(made: Any, loop_vars: Sequence[Any]) -> Sequence[Any]:
    """The body's results as a list; ValueError if their structure differs from that of the loop variables."""
    given = made if isinstance(made, (list, tuple)) else [made]
    try:
        if len(given) != len(loop_vars):
            raise ValueError(f"{len(given)} instead of {len(loop_vars)}")
        assert_same_structure(list(given), list(loop_vars), check_types=False)
    except ValueError as error:
        raise ValueError(
            f"body in while_loop should return the same arity (length and structure) and types as loop_vars: {error}"
        ) from None
    return given


def _check_condition(cond: Any, what: str) -> None:
    """Raise TypeError unless `cond` is a bool Variable of one element."""
    if not isinstance(cond, Variable):
        raise TypeError(f"{what} should be a variable, got {type(cond).__name__}")
    if cond.dtype != VarType.BOOL:
        raise TypeError(f"{what} should be a boolean variable, got {cond.name!r} of type {cond.dtype}")
    if math.prod(cond.shape) != 1:
        raise TypeError(
            f"{what} should have one element, got {cond.name!r} of shape {list(cond.shape)}; reduce it with "
            "reduce_all or reduce_any"
        )
