"""`fluid.layers.py_func`: functions of the user's as operators of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ....base.errors import ArgumentError
from ....executor.lod_tensor import LoDTensor
from ....framework import Variable
from ....ops.program.host import registered
from ....ops.registry import LodArray, OperatorError
from ...layer_helper import LayerHelper

__all__ = ["PyFuncRegistry", "py_func"]

Several = Variable | Sequence[Variable] | None


def _listed(given: Several, slot: str) -> list[Variable]:
    if given is None:
        return []
    if isinstance(given, Variable):
        return [given]
    if not isinstance(given, (list, tuple)):
        raise TypeError(
            f"The type of '{slot}' in py_func must be a Variable, a list or tuple of them or None, but received "
            f"{type(given)}."
        )
    return list(given)


def _operator(function: Callable[..., Any], count: int, partly: bool = False) -> int:
    """The id of a py_func operator for `function`, which has to return `count` results; `partly`: None is allowed."""
    if not callable(function):
        raise TypeError("func must be a Python function")
    name = getattr(function, "__name__", repr(function))

    def call(inputs: list[LodArray]) -> list[LodArray | None]:
        result = function(*(LoDTensor.wrap(one.array, one.lod) for one in inputs))
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        if count == 0 and results == [None]:
            return []
        if len(results) != count or (not partly and any(one is None for one in results)):
            kinds = ["None" if one is None else "one" for one in results]
            raise OperatorError(
                f"operator py_func: function {name} must return {count} results, got {len(kinds)} ({', '.join(kinds)})"
            )
        return [_taken(one) for one in results]

    return registered(call)


def _taken(result: Any) -> LodArray | None:
    if isinstance(result, LoDTensor):
        return LodArray(result.numpy(), result.offsets)
    return None if result is None else LodArray(np.asarray(result), ())


class PyFuncRegistry:
    """Functions by number (`fluid.layers.nn.PyFuncRegistry`): `PyFuncRegistry(func).id`.

    Calling one gives a tuple of the results. Raises TypeError for what cannot be called.
    """

    _register_funcs: ClassVar[list[PyFuncRegistry]] = []

    def __init__(self, func: Callable[..., Any]) -> None:
        if not callable(func):
            raise TypeError("func must be a Python function")
        self._func = func
        self._id = len(self._register_funcs)
        self._register_funcs.append(self)

    @classmethod
    def registered_func(cls, idx: int) -> Callable[..., Any]:
        return cls._register_funcs[idx]._func

    @classmethod
    def registered_func_num(cls) -> int:
        return len(cls._register_funcs)

    @property
    def id(self) -> int:
        return self._id

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        result = self._func(*args)
        return tuple(result) if isinstance(result, (list, tuple)) else (result,)


def py_func(
    func: Callable[..., Any],
    x: Several,
    out: Several,
    backward_func: Callable[..., Any] | None = None,
    skip_vars_in_backward_input: Several = None,
) -> Several:
    """Have a program call a Python function (`fluid.layers.py_func`).

    The function gets a LoDTensor for each input, which `numpy.array` makes an array of, and returns an array, a
    LoDTensor or a list or tuple of these, one for each of `out`; nothing if there are none. It is called in each run,
    even if its results are unused. Its exceptions are raised by `Executor.run`.

    Args:
        func: the function.
        x: its inputs: a Variable, several, or None.
        out: its outputs, made by the caller with `create_var`, with shape and dtype; or None.
        backward_func: a function that gets `x`, `out` and the gradients of `out`, one after the other, and returns
            the gradients of `x` (None where none is needed); None: no gradient goes through.
        skip_vars_in_backward_input: those of `x` and `out` that `backward_func` does not get.

    Returns:
        `out`.

    Raises:
        TypeError: for arguments of another type.
        ValueError: for outputs without a shape, and for skipped variables that are neither input nor output.
    """
    inputs, outputs = _listed(x, "X"), _listed(out, "Out")
    forward = _operator(func, len(outputs))
    if not all(var.shape for var in outputs):
        raise ArgumentError("Output shapes of py_func op should be provided by users manually")
    backward, skipped = -1, []
    if backward_func is not None:
        backward = _operator(backward_func, len(inputs), partly=True)
        skipped = [var.name for var in _listed(skip_vars_in_backward_input, "skip_vars_in_backward_input")]
        known = {var.name for var in (*inputs, *outputs)}
        for name in skipped:
            if name not in known:
                raise ArgumentError(f"Variable {name} is not found in forward inputs and outputs")
    LayerHelper("py_func").append_op(
        type="py_func",
        inputs={"X": inputs},
        outputs={"Out": outputs},
        attrs={
            "forward_callable_id": forward,
            "backward_callable_id": backward,
            "backward_skip_vars": skipped,
        },
    )
    return out
