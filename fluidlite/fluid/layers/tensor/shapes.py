"""Layers about shapes: reshape, squeeze, unsqueeze, flatten, transpose; lists of integers in which Variables of one
element may stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....base import callsite
from ....base.errors import ArgumentAssertion, ArgumentError
from ....eager import Tensor, as_number_list
from ....framework import Variable
from ...layer_helper import LayerHelper, check_variable
from ...op_functions import run_layer
from ..checks import alone
from .constants import fill_constant
from .variables import assign

__all__ = ["flatten", "rank", "reshape", "shape", "size", "squeeze", "transpose", "unsqueeze"]


def has_variables(values: Any) -> bool:
    """Whether a list holds Variables among its numbers."""
    return isinstance(values, (list, tuple)) and any(isinstance(value, Variable) for value in values)


def one_by_one(helper: LayerHelper, values: Sequence[Any]) -> list[Variable]:
    """A one-element Variable for each of `values`; numbers become int32 constants."""
    found = []
    given = [value for value in values if isinstance(value, Variable)]
    for value in values:
        if isinstance(value, Variable):
            value.stop_gradient = True
            found.append(value)
        else:
            made = helper.create_variable_for_type_inference("int32", like=given or None)
            found.append(fill_constant([1], "int32", int(value), force_cpu=True, out=made))
    return found


def known(values: Sequence[Any], unknown: int = -1) -> list[int]:
    """The numbers of `values`, with `unknown` for each Variable."""
    return [unknown if isinstance(value, Variable) else int(value) for value in values]


def number_inputs(
    helper: LayerHelper, name: str, values: Any, slot: str, list_slot: str, unknown: int = -1
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and attributes for the numbers `values`, of which the operator has an attribute `name`.

    A Variable that holds them all is the input `slot`. Where Variables stand among them, the input `list_slot` holds
    all, and the attribute has `unknown` in their place.
    """
    if isinstance(values, Variable):
        values.stop_gradient = True
        return {slot: values}, {}
    inputs = {list_slot: one_by_one(helper, values)} if has_variables(values) else {}
    return inputs, {name: known(values, unknown)}


def check_list(value: Any, name: str, layer: str) -> None:
    """Raise TypeError unless `value` is a list, a tuple or a Variable."""
    if not isinstance(value, (list, tuple, Variable)):
        raise TypeError(
            f"The type of '{name}' in {layer} must be a list, tuple or Variable, "
            f"but received {type(value).__name__}"
        )


def _check_target(x: Variable, shape: Sequence[Any]) -> None:
    """Raise ValueError unless `shape` has at most one -1, zeros only for existing dimensions, and is not empty."""
    if not shape:
        raise ArgumentAssertion("The 'shape' in reshape must not be empty")
    unknown = [axis for axis, n in enumerate(shape) if not isinstance(n, Variable) and n == -1]
    if len(unknown) > 1:
        raise ArgumentAssertion(
            f"Only one number of 'shape' in reshape can be -1, but received {list(shape)}"
        )
    for axis, n in enumerate(shape):
        if isinstance(n, Variable):
            continue
        if n == 0 and axis >= len(x.shape):
            raise ArgumentAssertion(
                f"A 0 in 'shape' of reshape keeps that dimension, but x has {len(x.shape)} dimensions and "
                f"shape[{axis}] is 0"
            )
        if n < -1:
            raise ArgumentAssertion(
                f"'shape' in reshape must not hold negative numbers but one -1, received shape[{axis}] = {n}"
            )


def reshape(
    x: Variable,
    shape: Sequence[int | Variable] | Variable,
    actual_shape: Variable | None = None,
    act: Any = None,
    inplace: bool = False,
    name: str | None = None,
) -> Variable:
    """`x` with another shape of as many elements (`fluid.layers.reshape`).

    Args:
        x: a tensor.
        shape: its new sizes: 0 keeps the size of that dimension of `x`, one -1 is worked out, a Variable of
            one element tells when the program runs; or a Variable that holds them all.
        actual_shape: a Variable with the sizes, which then count instead of `shape`; ignored for eager tensors.
        act: the name of an activation of the result.
        inplace: return `x` itself, changed; of an eager tensor another one all the same, with a warning.
        name: the name of the result.

    Returns:
        A tensor of that shape and the type of `x`.

    Raises:
        TypeError: `shape` is no list, tuple or Variable.
        ValueError: `shape` cannot fit `x`.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> x = fluid.data("x", [None, 4, 6], "float32")
        >>> fluid.layers.reshape(x, [-1, 24]).shape
        (-1, 24)
    """
    check_variable(x, "x", "reshape")
    shape = as_number_list(shape)
    check_list(shape, "shape", "reshape")
    if isinstance(x, Tensor):
        actual_shape = None
        if inplace:
            callsite.warn("reshape leaves an eager tensor as it is: inplace=True is for programs")
            inplace = False
    elif actual_shape is not None:
        check_variable(actual_shape, "actual_shape", "reshape")
    helper = LayerHelper("reshape2", name=name, act=act)
    if not isinstance(shape, Variable):
        _check_target(x, shape)
    inputs, attrs = number_inputs(helper, "shape", shape, "Shape", "ShapeTensor")
    if not inputs and actual_shape is not None:
        actual_shape.stop_gradient = True
        inputs["Shape"] = actual_shape
    into = {"Out": x} if inplace else None
    out, _ = helper.run("reshape2", {"X": x, **inputs}, ("Out", "XShape"), attrs, into=into)
    return helper.append_activation(out)


def squeeze(input: Variable, axes: Sequence[int], name: str | None = None) -> Variable:
    """`input` without dimensions of size 1 (`fluid.layers.squeeze`).

    Args:
        input: a tensor of any type.
        axes: a list of the dimensions to leave out, negative ones counted from the end; [] leaves out all of size 1.
        name: the name of the result.

    Returns:
        A tensor of as many elements and of the same type.

    Raises:
        TypeError: `axes` is no list.
        OperatorError: a dimension has another size.

    Example:
        >>> import paddle.fluid as fluid
        >>> x = fluid.data("x", [None, 1, 3, 1], "float32")
        >>> fluid.layers.squeeze(x, axes=[1]).shape
        (-1, 3, 1)
    """
    check_variable(input, "input", "squeeze")
    axes = as_number_list(axes)
    if not isinstance(axes, (list, tuple)):
        raise TypeError(
            f"The type of 'axes' in squeeze must be a list or tuple, but received {type(axes).__name__}"
        )
    return run_layer("squeeze2", locals(), helper=LayerHelper("squeeze", name=name), X="input")[0]


def unsqueeze(
    input: Variable, axes: int | Sequence[int | Variable] | Variable, name: str | None = None
) -> Variable:
    """`input` with dimensions of size 1 put in (`fluid.layers.unsqueeze`).

    Args:
        input: a tensor of any type.
        axes: where they stand, one after another: an integer, a list in which Variables may stand, or a Variable.
        name: the name of the result.

    Returns:
        A tensor of as many elements and of the same type.

    Raises:
        TypeError: `axes` is something else.

    Example:
        >>> import paddle.fluid as fluid
        >>> x = fluid.data("x", [None, 3], "float32")
        >>> fluid.layers.unsqueeze(x, axes=[1, 3]).shape
        (-1, 1, 3, 1)
    """
    check_variable(input, "input", "unsqueeze")
    places: Any = as_number_list([axes] if isinstance(axes, int) else axes)
    check_list(places, "axes", "unsqueeze")
    helper = LayerHelper("unsqueeze2", name=name)
    inputs, attrs = number_inputs(helper, "axes", places, "AxesTensor", "AxesTensorList")
    attrs = {} if inputs else attrs
    return helper.run("unsqueeze2", {"X": input, **inputs}, ("Out", "XShape"), attrs)[0]


def flatten(x: Variable, axis: int = 1, name: str | None = None) -> Variable:
    """`x` as a matrix whose rows are its first `axis` dimensions (`fluid.layers.flatten`).

    Raises TypeError unless `x` is a Variable, ValueError unless `axis` is an integer from 0 to the rank of
    `x`.
    """
    check_variable(x, "x", "flatten")
    if not isinstance(axis, int) or not 0 <= axis <= len(x.shape):
        raise ArgumentError(f"'axis' of flatten must be an integer from 0 to {len(x.shape)}, got {axis!r}")
    return run_layer("flatten2", locals(), helper=LayerHelper("flatten", name=name))[0]


def transpose(x: Variable, perm: Sequence[int], name: str | None = None) -> Variable:
    """`x` with its dimensions in another order (`fluid.layers.transpose`).

    Args:
        x: a tensor of floats or integers.
        perm: the dimensions of `x` in the order that they get.
        name: the name of the result.

    Returns:
        A tensor of the type of `x`, whose size i is size `perm[i]` of `x`.

    Raises:
        TypeError: `perm` is no list or tuple.
        ValueError: `perm` is no permutation of the dimensions of `x`.

    Example:
        >>> import paddle.fluid as fluid
        >>> images = fluid.data("images", [None, 3, 32, 28], "float32")
        >>> fluid.layers.transpose(images, [0, 2, 3, 1]).shape
        (-1, 32, 28, 3)
    """
    check_variable(x, "x", "transpose")
    perm = as_number_list(perm)
    if not isinstance(perm, (list, tuple)):
        raise TypeError(f"The type of 'perm' in transpose must be a list, but received {type(perm).__name__}")
    if sorted(perm) != list(range(len(x.shape))):
        raise ArgumentError(
            f"'perm' of transpose must name each of the {len(x.shape)} dimensions of x {list(x.shape)} once, "
            f"got {list(perm)}"
        )
    return run_layer("transpose2", locals(), helper=LayerHelper("transpose", name=name), axis="perm")[0]


def shape(input: Variable) -> Variable:
    """The shape of `input` when the program runs, int32 [rank] (`fluid.layers.shape`)."""
    return run_layer("shape", locals())


def rank(input: Variable) -> Variable:
    """The number of dimensions of `input`, int32 (`fluid.layers.rank`)."""
    check_variable(input, "input", "rank")
    return assign(np.array(len(input.shape), "int32"))


def size(input: Variable) -> Variable:
    """The number of elements of `input` when the program runs, int64 [1] (`fluid.layers.size`)."""
    input = alone(input)
    return run_layer("size", locals())
