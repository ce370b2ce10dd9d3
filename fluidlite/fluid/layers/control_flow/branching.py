"""cond, case and switch_case: the results of one of several functions, chosen by a value.

While a program is built all functions are called, and their operators are appended to blocks, one of which runs.
With eager tensors the value is known, and only the function that it chooses is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ....base.dtypes import VarType
from ....base.errors import ArgumentAssertion, ArgumentError, ArgumentTypeError
from ....eager import Tensor
from ....framework import Variable, mode
from ...layer_helper import LayerHelper
from ..checks import check_dtype
from ..tensor.arithmetic import equal, logical_not
from ..tensor.constants import fill_constant
from ..tensor.variables import assign, cast
from ..utils import assert_same_structure, flatten, map_structure
from .conditional_block import ConditionalBlock

__all__ = ["case", "cond", "switch_case"]

Branch = Callable[[], Any]


def cond(
    pred: Variable, true_fn: Branch | None = None, false_fn: Branch | None = None, name: str | None = None
) -> Any:
    """Return the result of `true_fn` if `pred` is true, else that of `false_fn` (`fluid.layers.cond`).

    Gradients go through the branch that was taken; what only the other one uses gets zeros.

    Args:
        pred: a bool variable of one element.
        true_fn, false_fn: functions without arguments that return a Variable, or lists, tuples and dicts of some, or
            nothing; both of them alike. None: there is nothing to do.
        name: no effect.

    Returns:
        New Variables in the structure that `false_fn` returns. Their declared shapes and dtypes are those of its
        results; in a run they are those of the branch that was taken. None if the functions return nothing.

    Raises:
        TypeError: `pred` is no bool variable, a branch is no function or returns something else than Variables.
        ValueError: the functions return different structures.
        EnforceNotMet: in a run: `pred` has several elements. For eager tensors AssertionError.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> x = fluid.data("x", [1], "float32")
        >>> size = fluid.layers.cond(x < 0, lambda: -x, lambda: x)
        >>> fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.array([-2.5], "float32")}, fetch_list=[size])
        [array([2.5], dtype=float32)]
    """
    if mode.in_dygraph_mode() or isinstance(pred, Tensor):
        chosen = true_fn if _eager_truth(pred) else false_fn
        return None if chosen is None else _function(chosen, "true_fn" if chosen is true_fn else "false_fn")()
    check_dtype(pred, "pred", "fluid.layers.cond", [VarType.BOOL])
    if not isinstance(name, (str, type(None))):
        raise ArgumentTypeError(
            f"The type of 'name' in fluid.layers.cond must be str, but received {type(name)}."
        )
    helper = LayerHelper("cond", name=name)
    if_true = _branch(helper, pred, true_fn, "true_fn")
    if_false = None
    if false_fn is not None:
        if_false = _branch(helper, logical_not(pred), false_fn, "false_fn")
    if if_true is None and if_false is None:
        return None
    if if_true is None or if_false is None:
        returns = ["non-None" if value is not None else "None" for value in (if_true, if_false)]
        raise ArgumentError(
            f"Incompatible return values of true_fn and false_fn in cond: true_fn returns {returns[0]} while false_fn "
            f"returns {returns[1]}"
        )
    try:
        true_names, false_names = (map_structure(lambda var: var.name, made) for made in (if_true, if_false))
        assert_same_structure(true_names, false_names, check_types=False)
    except ArgumentError as error:
        raise ArgumentError(f"Incompatible return values of true_fn and false_fn in cond: {error}") from None
    mask = cast(pred, "int32")
    return map_structure(lambda no, yes: select_input([no, yes], mask), if_false, if_true)


def _eager_truth(pred: Any) -> bool:
    if not isinstance(pred, Variable):
        raise ArgumentAssertion(
            f"The pred in cond must be Variable, got {type(pred).__name__} ({pred!r:.60})"
        )
    value = pred.numpy()  # type: ignore[attr-defined]
    if value.size != 1:
        raise ArgumentAssertion(
            f"condition input's numel should be 1: pred of cond has {value.size} elements, of shape {list(value.shape)}"
        )
    return bool(value.reshape(()))


def _function(given: Any, what: str) -> Branch:
    if not callable(given):
        raise ArgumentTypeError(f"The {what} in cond must be callable, but received {type(given).__name__}")
    return given  # type: ignore[no-any-return]


def _branch(helper: LayerHelper, pred: Variable, build: Branch | None, what: str) -> Any:
    """Build a conditional block of `build`; returns its results as variables of the parent block."""
    if build is None:
        return None
    function = _function(build, what)
    with ConditionalBlock([pred], is_scalar_condition=True).block():
        results = function()
        for item in [] if results is None else flatten(results):
            if not isinstance(item, Variable):
                raise ArgumentTypeError(
                    f"{what} in cond must return Variables, lists, tuples and dicts of some, or None; it returns "
                    f"{type(item).__name__} ({item!r:.60})"
                )
        return (
            None
            if results is None
            else map_structure(lambda var: copy_var_to_parent_block(var, helper), results)
        )


def copy_var_to_parent_block(var: Variable | None, layer_helper: LayerHelper) -> Variable | None:
    """A new variable of the block around the current one, which gets the value of `var` here; None for None.

    Follows `fluid.layers.control_flow.copy_var_to_parent_block`.
    """
    if var is None:
        return None
    program = layer_helper.main_program
    parent = program.current_block().parent_idx
    if parent < 0:
        raise ArgumentAssertion("copy_var_to_parent_block: there is no block around the current one")
    outside = program.block(parent).create_var(dtype=var.dtype, shape=var.shape, type=var.type)
    assign(var, outside)
    return outside


def select_input(inputs: Sequence[Variable], mask: Variable) -> Variable:
    """The one of `inputs` that `mask` numbers, 0 for the first; the others need not have been computed.

    Args:
        inputs: two Variables.
        mask: an int32 variable of one element.

    Returns:
        A new Variable, declared as the first of `inputs` is. Follows `fluid.layers.control_flow.select_input`.
    """
    helper = LayerHelper("select_input")
    first = inputs[0]
    out: Variable = helper.create_variable(dtype=first.dtype, shape=first.shape, type=first.type)
    helper.append_op(type="select_input", inputs={"X": list(inputs), "Mask": mask}, outputs={"Out": out})
    return out


def select_output(input: Variable, outputs: Sequence[Variable], mask: Variable) -> Sequence[Variable]:
    """Copy `input` to the one of `outputs` that `mask` (int32, one element) numbers; the others are left alone.

    Returns `outputs`. Follows `fluid.layers.control_flow.select_output`.
    """
    helper = LayerHelper("select_output")
    helper.append_op(type="select_output", inputs={"X": input, "Mask": mask}, outputs={"Out": list(outputs)})
    return outputs


def case(
    pred_fn_pairs: Sequence[tuple[Variable, Branch]], default: Branch | None = None, name: str | None = None
) -> Any:
    """Return the result of the function of the first true predicate, or else of `default` (`fluid.layers.case`).

    Args:
        pred_fn_pairs: pairs of a bool variable of one element and a function without arguments; see `cond` for what
            the functions return.
        default: the function for when no predicate is true; by default the last one of the pairs.
        name: no effect.

    Returns:
        As `cond`: case is made of it.

    Raises:
        TypeError: an argument is of another type.
        ValueError: there are no pairs, or the functions return different structures.
    """
    pairs = _checked_pairs(pred_fn_pairs)
    if default is None:
        default = pairs.pop()[1]
    elif not callable(default):
        raise ArgumentTypeError("The default in Op(case) must be callable.")
    otherwise = default
    for pred, function in reversed(pairs):
        otherwise = partial(cond, pred, function, otherwise)
    return otherwise()


def _checked_pairs(pairs: Any) -> list[tuple[Variable, Branch]]:
    if not isinstance(pairs, (list, tuple)):
        raise ArgumentTypeError(
            f"The type of 'pred_fn_pairs' in case must be list or tuple, but received {type(pairs)}."
        )
    if not pairs:
        raise ArgumentError("'pred_fn_pairs' in case must not be empty")
    for pair in pairs:
        _check_pair(pair, "pred_fn_pairs", "case")
        pred, function = pair
        if not isinstance(pred, Variable):
            raise ArgumentTypeError(
                f"The pred's type of 'pred_fn_pairs' in case must be boolean Variable, but received: {type(pred)}."
            )
        if not callable(function):
            raise ArgumentTypeError(f"The fn for {pred.name} of pred_fn_pairs in Op(case) must be callable.")
    return list(pairs)


def _check_pair(pair: Any, argument: str, layer: str) -> None:
    if not isinstance(pair, tuple):
        raise ArgumentTypeError(
            f"The elements' type of '{argument}' in {layer} must be tuple, but received: {type(pair)}."
        )
    if len(pair) != 2:
        raise ArgumentTypeError(
            f"The tuple's size of '{argument}' in {layer} must be 2, but received: {len(pair)}-tuple."
        )


def switch_case(
    branch_index: Variable,
    branch_fns: Mapping[int, Branch] | Sequence[Any],
    default: Branch | None = None,
    name: str | None = None,
) -> Any:
    """Return the result of function number `branch_index`, or else of `default` (`fluid.layers.switch_case`).

    Args:
        branch_index: an int32, int64 or uint8 variable of one element.
        branch_fns: numbers and functions as a dict or pairs, or functions alone, which are numbered from 0; see `cond`
            for what they return.
        default: the function for all other numbers; by default that of the largest one.
        name: no effect.

    Returns:
        As `cond`: switch_case is made of it.

    Raises:
        TypeError: an argument is of another type.
        ValueError: there are no functions, a number comes twice, or the functions return different structures.
    """
    kinds = [VarType.UINT8, VarType.INT32, VarType.INT64]
    check_dtype(branch_index, "branch_index", "switch_case", kinds)
    numbered = _numbered(branch_fns)
    if branch_index.dtype != VarType.INT64:
        branch_index = cast(branch_index, "int64")
    if default is None:
        default = numbered.pop()[1]
    elif not callable(default):
        raise ArgumentTypeError("The default in Op(case) must be callable.")
    pairs = [
        (equal(branch_index, fill_constant([1], "int64", number)), function) for number, function in numbered
    ]
    otherwise = default
    for pred, function in pairs:
        otherwise = partial(cond, pred, function, otherwise)
    return otherwise()


def _numbered(functions: Any) -> list[tuple[int, Branch]]:
    """The functions with their numbers, in the order of these."""
    if not isinstance(functions, (list, tuple, Mapping)):
        raise ArgumentTypeError(
            f"The type of 'branch_fns' in switch_case must be list, tuple or dict, but received {type(functions)}."
        )
    if not functions:
        raise ArgumentError("'branch_fns' in switch_case must not be empty")
    if isinstance(functions, Mapping):
        pairs = list(functions.items())
    else:
        pairs = list(enumerate(functions)) if all(map(callable, functions)) else list(functions)
    known: set[int] = set()
    for pair in pairs:
        _check_pair(pair, "branch_fns", "switch_case")
        number, function = pair
        if not isinstance(number, int):
            raise ArgumentTypeError(
                f"The key's type of 'branch_fns' in switch_case must be int, but received: {type(number)}."
            )
        if number in known:
            raise ArgumentError(
                f"The key in 'branch_fns' must be unique, but '{number}' appears more than once."
            )
        known.add(number)
        if not callable(function):
            raise ArgumentTypeError(
                f"The type of function for key {number} of 'branch_fns' in switch_case must be callable, but received: "
                f"{type(function)}."
            )
    return sorted(pairs, key=lambda pair: pair[0])
