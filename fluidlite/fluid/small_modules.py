"""The contents of Fluid's smallest modules: decorators, loggers, averages, a stack of scopes, functions without effect.

`base/names/views.py` lists which names `fluid.annotations`, `fluid.average` and the others have.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import callsite
from ..executor.scope import Scope, ScopeVariable
from ..framework import Program, Variable, dygraph_only
from .layer_helper import run_op
from .layers.nn.activations import encoded
from .layers.nn.dense import looked_up


def deprecated(
    since: str, instead: str, extra_message: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of functions that say on stderr, whenever they are called, what to use instead."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        text = f"API {func.__name__} is deprecated since {since}. Please use {instead} instead."
        if extra_message:
            text += "\n" + extra_message

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            print(text, file=sys.stderr)
            return func(*args, **kwargs)

        wrapper.__doc__ = f"{text}\n\n{func.__doc__ or ''}"
        return wrapper

    return decorate


signature_safe_contextmanager = contextlib.contextmanager


def wrap_decorator(decorator_func: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Callable[..., Any]:
    """`decorator_func` as a decorator that keeps the signature of functions (`fluid.wrapped_decorator`)."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(func)(decorator_func(func))

    return decorate


def get_logger(name: str, level: int, fmt: str | None = None) -> logging.Logger:
    """The logger `name` at `level`, with one handler that writes to stderr in the format `fmt`."""
    logger = logging.getLogger(name)
    logger.setLevel(level)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(fmt) if fmt else None)
        logger.addHandler(handler)
    logger.propagate = False
    return logger


class WeightedAverage:
    """The average of values, each with a weight (`fluid.average.WeightedAverage`).

    Warns that `fluid.metrics` has newer ways, as Fluid does.
    """

    numerator: Any
    denominator: Any

    def __init__(self) -> None:
        callsite.warn(
            "The WeightedAverage is deprecated, please use fluid.metrics.Accuracy instead.", Warning
        )
        self.reset()

    def reset(self) -> None:
        """Forget all values."""
        self.numerator = self.denominator = None

    def add(self, value: Any, weight: Any) -> None:
        """Add a number or an array of any shape, which counts `weight` times; arrays keep their shape.

        Raises ValueError for other values, and for a weight that is not one number.
        """
        if not (_is_number(value) or isinstance(value, np.ndarray)):
            raise ValueError(f"The 'value' must be a number(int, float) or a numpy ndarray, got {value!r}")
        if not _is_number(weight):
            raise ValueError(f"The 'weight' must be a number(int, float), got {weight!r}")
        if self.numerator is None:
            self.numerator, self.denominator = value * weight, weight
        else:
            self.numerator = self.numerator + value * weight
            self.denominator = self.denominator + weight

    def eval(self) -> Any:
        """The average so far: a number, or an array of the shape of the values; ValueError if nothing was added."""
        if self.numerator is None:
            raise ValueError("There is no data to be averaged in WeightedAverage.")
        return self.numerator / self.denominator


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) or (
        isinstance(value, np.ndarray) and value.shape == (1,)
    )


class _Stack(threading.local):
    def __init__(self) -> None:
        self.scopes = [Scope()]


_stack = _Stack()


def get_cur_scope() -> Scope:
    """The innermost scope of this thread; it has nothing to do with `fluid.global_scope()`."""
    if not _stack.scopes:
        _stack.scopes.append(Scope())
    return _stack.scopes[-1]


def enter_local_scope() -> None:
    """Go into a new scope inside the current one."""
    _stack.scopes.append(get_cur_scope().new_scope())


def leave_local_scope() -> None:
    """Leave the current scope, which drops its variables and those of scopes made in it."""
    get_cur_scope()
    _stack.scopes.pop()
    get_cur_scope().drop_kids()


def var(name: str) -> ScopeVariable:
    """The variable `name` of the current scope, made if there is none."""
    return get_cur_scope().var(name)


def find_var(name: str) -> ScopeVariable | None:
    """The variable `name` of the current scope or of one around it, or None."""
    return get_cur_scope().find_var(name)


def scoped_function(func: Callable[[], Any]) -> None:
    """Call `func` inside a scope of its own."""
    enter_local_scope()
    try:
        func()
    finally:
        leave_local_scope()


def memory_optimize(
    input_program: Program,
    skip_opt_set: Any = None,
    print_log: bool = False,
    level: int = 0,
    skip_grads: bool = True,
) -> None:
    """Warn that nothing is done: plans share memory by themselves (`fluid.memory_optimize`)."""
    _warn("paddle.fluid.memory_optimize() is deprecated and changes nothing: memory is shared anyway")


def release_memory(input_program: Program, skip_opt_set: Any = None) -> None:
    """Warn that nothing is done (`fluid.release_memory`)."""
    _warn("paddle.fluid.release_memory() is deprecated, it would not take any memory release on your program")


def _warn(text: str) -> None:
    logging.warning(text)


def monkey_patch_variable() -> None:
    """Nothing is left to do: Variables have their operators."""


def monkey_patch_varbase() -> None:
    """Nothing is left to do: eager tensors have their methods."""


@dygraph_only
def _append_activation_in_dygraph(
    input: Any, act: str | None = None, use_cudnn: Any = None, use_mkldnn: Any = None
) -> Any:
    """The activation `act`, an operator from X to Out, of a tensor; the tensor itself for None."""
    return input if act is None else run_op(act, {"X": input})


@dygraph_only
def _append_bias_in_dygraph(input: Any, bias: Any = None, axis: int = 1) -> Any:
    """A tensor plus `bias` along `axis`; the tensor itself for None."""
    return input if bias is None else run_op("elementwise_add", {"X": input, "Y": bias}, attrs={"axis": axis})


LOOKUP_TABLE_TYPE = "lookup_table"


def find_distributed_lookup_table(program: Program) -> str | None:
    """The name of the table of `embedding(is_distributed=True)`; None if there is none.

    Raises RuntimeError for several. Follows `fluid.distribute_lookup_table.find_distributed_lookup_table`.
    """
    found = {
        op.input("W")[0]
        for op in program.global_block().ops
        if op.type == LOOKUP_TABLE_TYPE and op.attr("is_distributed")
    }
    if len(found) > 1:
        raise RuntimeError("all distributed lookup_table_ops should have only one table")
    return found.pop() if found else None


def find_distributed_lookup_table_inputs(program: Program, table_name: str | None) -> list[Variable]:
    """The ids that are looked up in a table, one for each lookup."""
    return _named(program, table_name, "Ids")


def find_distributed_lookup_table_outputs(program: Program, table_name: str | None) -> list[Variable]:
    """The results of the lookups in a table, one for each lookup."""
    return _named(program, table_name, "Out")


def _named(program: Program, table_name: str | None, slot: str) -> list[Variable]:
    block = program.global_block()
    ops = [op for op in block.ops if op.type == LOOKUP_TABLE_TYPE and op.input("W") == [table_name]]
    return [
        block.var(name)
        for op in ops
        for name in (op.input(slot) if slot in op.input_names else op.output(slot))
    ]


__all__ = ["embedding", "one_hot"]


def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Variable:
    """The rows of a trainable table that `input` names (`fluid.embedding`).

    As `fluid.layers.embedding`, but `input` has any shape.

    Args:
        input: int64 ids of any shape, from 0 to below `size[0]`.
        size: rows and columns of the table.
        is_sparse: the gradient has the rows that were read only.
        is_distributed: the table is on parameter servers.
        padding_idx: an id whose row is read as zeros; negative ones are counted from the end.
        param_attr: a ParamAttr, a name or an initializer of the table.
        dtype: float32 or float64.

    Returns:
        A tensor of shape `input.shape + [size[1]]` and type `dtype`.

    Raises:
        TypeError: for arguments of other types. An id that is out of range raises an OperatorError in the step.

    Example:
        >>> import paddle.fluid as fluid
        >>> words = fluid.data("words", [None, 20], "int64")
        >>> fluid.embedding(words, size=[1000, 32]).shape
        (-1, 20, 32)
    """
    return looked_up("lookup_table_v2", "fluid.embedding", **locals())


def one_hot(input: Variable, depth: int | Variable, allow_out_of_range: bool = False) -> Variable:
    """A float32 vector of length `depth` with a single 1 for each class number in `input` (`fluid.one_hot`).

    As `fluid.layers.one_hot`, but `input` has any shape: the result has shape `input.shape + [depth]`.
    """
    return encoded("one_hot_v2", input, depth, allow_out_of_range)
