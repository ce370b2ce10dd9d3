"""Families: public functions that share a signature, which is written once.

Of functions that are one operator each, the operator's declaration (`OpDef.doc`) says what they compute, for
`fluid.layers`, `paddle` and `paddle.nn.functional` alike; a line names each where it is public. Of functions that do
more, like convolutions of images and of volumes, one is written for all kinds, and `of_kind` gives each its name, words
and defaults. `help`, `inspect.signature` and type checkers see the signature of the family. Functions with a signature
of their own whose arguments are the inputs and attributes of one operator end in `run_layer`.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from .framework import Variable
from .layer_helper import TENSOR_TYPES, LayerHelper, check_variable, run_op
from .ops import registry

Function = TypeVar("Function", bound=Callable[..., Any])
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Check = Callable[[Any, str, str], None]


def public(
    function: Function, op_type: str, name: str | None = None, api: str = "fluid.layers", note: str = ""
) -> Function:
    """`function`, which runs `op_type`, as the function `name` (by default the operator's) of the calling module.

    It is documented by what the operator computes and by `note`, sentences about its arguments.
    """
    name = name or op_type
    function.__name__ = function.__qualname__ = name
    # The module that calls the family, whose attribute this becomes: that is where pickle looks for it.
    function.__module__ = sys._getframe(2).f_globals["__name__"]
    what = registry.find(op_type).doc.rstrip(".")
    function.__doc__ = f"{what} (`{api}.{name}`).{note and ' ' + note}"
    return function


def run_layer(
    op_type: str,
    arguments: Mapping[str, Any],
    outputs: Sequence[str | tuple[str, int]] = (),
    *,
    without: tuple[str, ...] = (),
    stop_gradient: bool | Sequence[str] = False,
    into: Mapping[str, Any] | None = None,
    helper: LayerHelper | None = None,
    any_type: bool = False,
    **called: str,
) -> Any:
    """The results of `op_type` for the `arguments` of a layer that is this operator: its `locals()`.

    Inputs and attributes are the arguments of their names, but for letters' case and underscores (`PriorBox` is
    `prior_box`); `called` says which argument any other is: `X="input"`. Attributes that are None keep their defaults.
    Where an argument is called both, a Variable is the input, and anything else the attribute.
    `name` names the results in a program. `outputs` are by default all that the operator declares. `without` names the
    arguments that the operator has no use for. The other arguments are those of `run_op`.

    Raises TypeError for inputs that are no tensors, LookupError for arguments that are neither of all these.
    """
    names = (op_type, without, *arguments, *called, *called.values())
    if names not in _MATCHED:
        _MATCHED[names] = _match(op_type, arguments, called, without)
    slots, attributes, declared = _MATCHED[names]
    inputs: dict[str, Any] = {}
    attrs: dict[str, Any] = {}
    for slot, argument, optional in slots:
        inputs[slot] = value = arguments[argument]
        if type(value) not in TENSOR_TYPES and not isinstance(value, (list, tuple)):
            if value is not None or not optional:
                check_variable(value, argument, op_type)
    for name, argument, slot in attributes:
        value = arguments[argument]
        if slot and type(value) not in _NUMBERS and isinstance(value, Variable):
            inputs[slot] = value
        elif value is not None:
            attrs[name] = list(value) if isinstance(value, tuple) else value
    return run_op(
        op_type,
        inputs,
        outputs or declared,
        attrs,
        arguments.get("name"),
        stop_gradient=stop_gradient,
        into=into,
        helper=helper,
        any_type=any_type,
    )


_NUMBERS = frozenset((bool, int, float, list, tuple))

_MATCHED: dict[tuple[Any, ...], tuple[Any, Any, Any]] = {}
"""What `_match` has found, by the names that calls give."""


def _match(
    op_type: str, arguments: Mapping[str, Any], called: Mapping[str, str], without: tuple[str, ...]
) -> tuple[list[tuple[str, str, bool]], list[tuple[str, str, str]], tuple[str, ...]]:
    """Which arguments the inputs are, and whether these may be left out; which the attributes are, and the inputs that
    are the same arguments; the outputs."""
    definition = registry.find(op_type)
    by_letters = {one.replace("_", "").lower(): one for one in arguments if one not in without}
    found = {
        name: called.get(name) or by_letters.get(name.replace("_", "").lower(), "")
        for name in (*definition.inputs_by_name, *definition.attrs)
    }
    used = {*found.values(), "name", *without}
    unused = [argument for argument in arguments if argument not in used]
    unknown = [name for name, argument in called.items() if name not in found or argument not in arguments]
    if unused or unknown:
        raise LookupError(
            f"operator {op_type} has no use for the arguments {unused}, and none to be called {unknown}; it has the "
            f"inputs {list(definition.inputs_by_name)} and the attributes {list(definition.attrs)}"
        )
    attrs = {name: found[name] for name in definition.attrs if found[name]}
    both = {found[name]: name for name in definition.inputs_by_name if found[name] in attrs.values()}
    slots = [slot for slot in definition.input_slots if found[slot.name] and slot.name not in both.values()]
    inputs = [(slot.name, found[slot.name], slot.optional) for slot in slots]
    attributes = [(name, argument, both.get(argument, "")) for name, argument in attrs.items()]
    return inputs, attributes, tuple(definition.outputs_by_name)


def of_kind(
    family: Callable[Concatenate[str, Arguments], Result], kind: str, doc: str, **defaults: Any
) -> Callable[Arguments, Result]:
    """The public function `kind` of the module of `family`, which is `family` with `kind` as its first argument.

    `doc` is what `help` says of it, `defaults` are those of its arguments that differ from the family's.
    """
    assert isinstance(family, FunctionType)
    _, *taken = _signature(family).parameters.values()
    taken = [one.replace(default=defaults[one.name]) if one.name in defaults else one for one in taken]
    own = FunctionType(
        family.__code__,
        family.__globals__,
        kind,
        tuple(one.default for one in taken if one.default is not one.empty),
        family.__closure__,
    )

    def function(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return own(kind, *args, **kwargs)

    # Wrong calls are told of by `own`, under the name that the caller knows.
    function.__name__ = function.__qualname__ = own.__qualname__ = kind
    function.__module__, function.__doc__ = family.__module__, doc
    function.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    return function


_signature = functools.cache(inspect.signature)


class Unary(Protocol):
    """Element by element, shaped as `x`."""

    def __call__(self, x: Any, name: str | None = None) -> Any: ...


def unary(op_type: str, name: str | None = None, check: Check = check_variable) -> Unary:
    """The function of `fluid.layers` that applies `op_type`; `check(x, "x", op_type)` raises for other arguments."""

    def function(x: Variable, name: str | None = None) -> Variable:
        check(x, "x", op_type)
        return run_op(op_type, {"X": x}, name=name)

    return public(function, op_type, name)


def modern_unary(op_type: str, name: str | None = None, api: str = "paddle.nn.functional") -> Unary:
    """The function of Paddle 2.0 that applies `op_type` to `x`, of any element type that the operator has."""

    def function(x: Any, name: str | None = None) -> Any:
        return run_op(op_type, {"X": x}, name=name, any_type=True)

    definition = registry.find(op_type)
    fixed = [f"{key} = {value:g}" for key, value in definition.attrs.items() if key in definition.doc]
    return public(function, op_type, name, api, f"Here {', '.join(fixed)}." if fixed else "")
