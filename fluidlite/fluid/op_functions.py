"""Families: public functions that share a signature, which is written once.

Functions that run a single operator are documented by its declaration (`OpDef.doc`), in `fluid.layers`, `paddle` and
`paddle.nn.functional`; each is one line where it is public. Other families, like convolutions of images and of volumes,
have one implementation, and `of_kind` gives each member its name, documentation and defaults. `help`,
`inspect.signature` and type checkers see the signature of the family. Functions with a signature of their own whose
arguments are the inputs and attributes of one operator end in `run_layer`.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType, FunctionType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ..base.dtypes import to_numpy, to_vartype
from ..base.errors import ArgumentError
from ..eager import Tensor, as_numbers
from ..framework import Variable
from ..ops import input_types, registry
from .layer_helper import TENSOR_TYPES, LayerHelper, check_variable, run_op

Function = TypeVar("Function", bound=Callable[..., Any])
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def public(
    function: Function, op_type: str, name: str | None = None, api: str = "fluid.layers", note: str = ""
) -> Function:
    """`function`, which runs `op_type`, as the function `name` (by default the operator's) of the calling module.

    Its documentation is that of the operator, and `note`: sentences about its arguments, or sections, in which THIS
    stands for the function.
    """
    name = name or op_type
    function.__name__ = function.__qualname__ = name
    # The module that calls the family, whose attribute this becomes: that is where pickle looks for it.
    function.__module__ = sys._getframe(2).f_globals["__name__"]
    what = registry.find(op_type).doc.rstrip(".")
    note = note.replace("THIS", f"{api}.{name}")
    function.__doc__ = f"{what} (`{api}.{name}`).{'' if note[:1] in ('', chr(10)) else ' '}{note}"
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

    Arguments match inputs, attributes and outputs by name, ignoring case and underscores (`PriorBox` is `prior_box`,
    `Out` is `out`); `called` maps the others: `X="input"`. Attributes that are None keep their defaults, but for
    switches of eager operators, which are off; numbers become floats where the default is one, and element types
    numbers. If an argument matches an input and an attribute, a Variable is the input, and anything else the attribute;
    an argument for an output is the variable to write. `name` names the results in a program, `act` is the activation
    of the first. `outputs` are by default all that the operator declares. `without` names arguments that the operator
    does not have. The other arguments are those of `run_op`.

    Raises TypeError for inputs that are no tensors or of element types that the operator does not take (`input_types`),
    ValueError for empty lists, LookupError for arguments that match nothing.
    """
    names = (op_type, without, *arguments, *called.items())
    matched = _MATCHED.get(names)
    if matched is None:
        matched = _MATCHED[names] = _Matched(op_type, arguments, called, without)
    inputs: dict[str, Any] = {}
    attrs: dict[str, Any] = {}
    for slot, argument, optional, kinds, eager_kinds in matched.inputs:
        inputs[slot] = value = arguments[argument]
        if type(value) not in TENSOR_TYPES:
            fits = value is None and optional
        elif isinstance(value, Tensor):
            fits = not eager_kinds or any_type or value.array.dtype.kind in eager_kinds
        else:
            fits = kinds is None or any_type or value.dtype in kinds
        if not fits:
            _check_input(op_type, slot, argument, value, helper, any_type)
    for name, argument, slot, convert, default in matched.attributes:
        value = arguments[argument]
        if slot and type(value) not in _NUMBERS and isinstance(value, Variable):
            inputs[slot] = value
        elif value is not None:
            if type(value) not in _PLAIN and (
                type(value) is not list or not _PLAIN.issuperset(map(type, value))
            ):
                value = as_numbers(value)
            attrs[name] = value if convert is None else convert(value)
        elif default is True and any(isinstance(one, Tensor) for one in inputs.values()):
            attrs[name] = False
    for slot, argument in matched.outputs:
        if arguments[argument] is not None:
            check_variable(arguments[argument], argument, _layer(op_type, helper))
            into = {**(into or {}), slot: arguments[argument]}
    activated = matched.activated and arguments["act"] is not None
    if activated:
        helper = LayerHelper(op_type, name=arguments.get("name"), act=arguments["act"])
    made = run_op(
        op_type,
        inputs,
        outputs or matched.declared,
        attrs,
        arguments.get("name"),
        stop_gradient=stop_gradient,
        into=into,
        helper=helper,
        any_type=any_type,
    )
    return helper.append_activation(made) if activated and helper is not None else made


_PLAIN = frozenset((bool, int, float, str))
_NUMBERS = _PLAIN | {list, tuple}


def _check_input(
    op_type: str, slot: str, argument: str, value: Any, helper: LayerHelper | None, any_type: bool
) -> None:
    """Raise TypeError unless the `argument` of a layer that is an input of its operator is what that takes."""
    layer = _layer(op_type, helper)
    many = registry.find(op_type).inputs_by_name[slot].many
    # Where Fluid does not check types it takes a list of one.
    asked = input_types.taken(op_type, slot) is not None
    listed = isinstance(value, (list, tuple)) and (many or (not asked and len(value) == 1))
    items = list(value) if listed else [value]
    if not items:
        raise ArgumentError(f"'{argument}' of {layer} must not be empty: it takes at least one Variable")
    for k, item in enumerate(items):
        name = argument if item is value else f"{argument}[{k}]"
        check_variable(item, name, layer)
        kinds = input_types.taken(op_type, slot, isinstance(item, Tensor))
        if kinds and not any_type:
            input_types.check_kind(kinds, name, layer, item)


def _layer(op_type: str, helper: LayerHelper | None) -> str:
    """The name of the layer in messages: that of the public function that was called."""
    if helper is not None:
        return helper.layer_type
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith((__name__, _LAYERS)):
        name = frame.f_code.co_name
        if name in frame.f_globals.get("__all__", ()):
            return name
        frame = frame.f_back
    return op_type


_LAYERS = f"{__package__}.layers."


class _Matched:
    """The mapping of a layer's arguments to slots and attributes of its operator; cached by the argument names.

    `inputs`: slot, argument, whether it is optional, its valid element types (None: any), and the valid NumPy kinds of
    eager tensors ('': any).
    `attributes`: name, argument, the input with the same argument ('' for none), the conversion of its value, default.
    `outputs`: slot, argument. `activated`: whether there is an activation.
    """

    def __init__(
        self, op_type: str, arguments: Mapping[str, Any], called: Mapping[str, str], without: tuple[str, ...]
    ) -> None:
        definition = registry.find(op_type)
        by_letters = {one.replace("_", "").lower(): one for one in arguments if one not in without}
        taken = (*definition.inputs_by_name, *definition.attrs)
        found = {
            name: called.get(name) or by_letters.get(name.replace("_", "").lower(), "")
            for name in (*taken, *definition.outputs_by_name)
        }
        used = {*(found[name] for name in taken), "", "name", *without}
        results = {slot: found[slot] for slot in definition.outputs_by_name if found[slot] not in used}
        self.activated = "act" in arguments and "act" not in used
        used |= {*results.values(), "act"}
        unused = [argument for argument in arguments if argument not in used]
        unknown = [
            name for name, argument in called.items() if name not in found or argument not in arguments
        ]
        if unused or unknown:
            raise LookupError(
                f"operator {op_type} has no use for the arguments {unused}, and none to be called {unknown}; it has "
                f"the inputs {list(definition.inputs_by_name)} and the attributes {list(definition.attrs)}"
            )
        attrs = {name: found[name] for name in definition.attrs if found[name]}
        both = {found[name]: name for name in definition.inputs_by_name if found[name] in attrs.values()}
        slots = [
            slot for slot in definition.input_slots if found[slot.name] and slot.name not in both.values()
        ]
        self.inputs = [
            (slot.name, found[slot.name], slot.optional, *_kinds(op_type, slot.name)) for slot in slots
        ]
        self.attributes = [
            (
                name,
                argument,
                both.get(argument, ""),
                _conversion(name, definition.attrs[name]),
                definition.attrs[name],
            )
            for name, argument in attrs.items()
        ]
        self.outputs = list(results.items())
        self.declared = tuple(definition.outputs_by_name)


def _kinds(op_type: str, slot: str) -> tuple[input_types.Kinds | None, str]:
    eager = input_types.taken(op_type, slot, eager=True) or ()
    return input_types.taken(op_type, slot), "".join({to_numpy(kind).kind for kind in eager})


def _conversion(name: str, default: Any) -> Callable[[Any], Any] | None:
    """The function that converts a value for an attribute with this default; None: no conversion."""
    if name == "dtype":
        return lambda value: int(to_vartype(value))
    return float if isinstance(default, float) else None


_MATCHED: dict[tuple[Any, ...], _Matched] = {}
"""The cache of mappings."""


def of_kind(
    family: Callable[Concatenate[str, Arguments], Result], kind: str, doc: str, **defaults: Any
) -> Callable[Arguments, Result]:
    """The public function `kind` of the module of `family`, which is `family` with `kind` as its first argument.

    `doc` is its documentation, `defaults` are those of its arguments that differ from the family's.
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

    # Wrong calls raise TypeError from `own`, under the public name.
    function.__name__ = function.__qualname__ = own.__qualname__ = kind
    function.__module__, function.__doc__ = family.__module__, doc
    function.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    return function


_signature = functools.cache(inspect.signature)


class Unary(Protocol):
    """Element by element, shaped as `x`."""

    def __call__(self, x: Any, name: str | None = None) -> Any: ...


def unary(op_type: str, name: str | None = None) -> Unary:
    """The function of `fluid.layers` that applies `op_type`."""

    def function(x: Variable, name: str | None = None) -> Variable:
        return run_layer(op_type, {"x": x, "name": name})

    return public(function, op_type, name, note=_UNARY)


_UNARY = """

    Args:
        x: a float tensor of any shape; of some functions also integers.
        name: the name of the result.

    Returns:
        A tensor of the shape and type of `x`.

    Raises:
        TypeError: `x` is no Variable, or of a type that the operator does not take.

    Example:
        >>> import paddle.fluid as fluid
        >>> THIS(fluid.data("x", [None, 3], "float32")).shape
        (-1, 3)
    """


def modern_unary(op_type: str, name: str | None = None, api: str = "paddle.nn.functional") -> Unary:
    """The function of Paddle 2.0 that applies `op_type` to `x`, of any element type that the operator has."""

    def function(x: Any, name: str | None = None) -> Any:
        return run_op(op_type, {"X": x}, name=name, any_type=True)

    definition = registry.find(op_type)
    fixed = [f"{key} = {value:g}" for key, value in definition.attrs.items() if key in definition.doc]
    return public(function, op_type, name, api, f"Here {', '.join(fixed)}." if fixed else "")
