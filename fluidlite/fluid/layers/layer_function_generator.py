"""`fluid.layers.layer_function_generator`: layers made from operators by their types."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, TypeVar

from ...base import callsite
from ...base.errors import ArgumentError
from ...framework.serialization.op_protos import OpProto, OpProtoHolder
from ..layer_helper import LayerHelper, run_op

__all__ = [
    "autodoc",
    "deprecated",
    "escape_math",
    "generate_activation_fn",
    "generate_layer_fn",
    "templatedoc",
]

Function = TypeVar("Function", bound=Callable[..., Any])


def generate_layer_fn(op_type: str) -> Callable[..., Any]:
    """A layer that appends `op_type`, which has one output that matters.

    It takes the inputs by their slots' names in small letters (or, in their order, by place), attributes, `name` and
    `act`. Raises ValueError for an unknown operator, or one without such an output.
    Follows `fluid.layers.layer_function_generator.generate_layer_fn`.
    """
    proto = OpProtoHolder.instance().get_op_proto(op_type)
    outputs = [out for out in proto.outputs if not out.intermediate]
    if len(outputs) != 1 or outputs[0].duplicable:
        raise ArgumentError(
            f"a layer is made of an operator with one output, but {op_type} has {proto.outputs}"
        )

    def layer(*args: Any, **kwargs: Any) -> Any:
        helper = LayerHelper(op_type, **{key: kwargs[key] for key in ("name", "act") if key in kwargs})
        inputs: dict[str, Any] = {}
        places = iter(args)
        for slot in proto.inputs:
            given = kwargs.pop(_snake(slot.name), None)
            given = next(places, None) if given is None else given
            if given is not None:
                inputs[slot.name] = given
        if not inputs:
            raise IndexError(
                f"{op_type} takes {[_snake(slot.name) for slot in proto.inputs]}, got none of them"
            )
        out = kwargs.pop(_snake(outputs[0].name), None)
        names = {attr.name for attr in proto.attrs}
        attrs = {key: value for key, value in kwargs.items() if key in names}
        if out is None:
            slots = [outputs[0].name, *(slot.name for slot in proto.outputs if slot.intermediate)]
            return helper.append_activation(helper.run(op_type, inputs, slots, attrs))
        helper.append_op(type=op_type, inputs=inputs, outputs={outputs[0].name: [out]}, attrs=attrs)
        return helper.append_activation(out)

    layer.__name__ = op_type
    layer.__doc__ = _documentation(proto)
    return layer


def generate_activation_fn(op_type: str) -> Callable[..., Any]:
    """A layer that appends `op_type` to `x`; ValueError for an unknown operator (`fluid.layers`)."""
    proto = OpProtoHolder.instance().get_op_proto(op_type)

    def activation(x: Any, name: str | None = None) -> Any:
        return run_op(op_type, {"X": x}, name=name)

    activation.__name__ = op_type
    activation.__doc__ = _documentation(proto)
    return activation


def deprecated(func_or_class: Function) -> Function:
    """A function that warns when it is called that it is going away."""

    @functools.wraps(func_or_class)
    def warned(*args: Any, **kwargs: Any) -> Any:
        callsite.warn(f"API {func_or_class.__name__} is deprecated.", DeprecationWarning)
        return func_or_class(*args, **kwargs)

    return warned  # type: ignore[return-value]


def autodoc(comment: str = "") -> Callable[[Function], Function]:
    """A decorator that documents a function by the operator of its name, and `comment`."""

    def decorate(func: Function) -> Function:
        func.__doc__ = _documentation(OpProtoHolder.instance().get_op_proto(func.__name__)) + comment
        return func

    return decorate


def templatedoc(op_type: str | None = None) -> Callable[[Function], Function]:
    """A decorator that fills `${comment}` in a function's documentation with what its operator computes.

    `op_type`: the operator, that of the function's name if None. Placeholders of slots and attributes, such as
    `${x_comment}` and `${x_type}`, become their names.
    """

    def decorate(func: Function) -> Function:
        proto = OpProtoHolder.instance().get_op_proto(op_type or func.__name__)
        text = (func.__doc__ or "").replace("${comment}", proto.comment)
        func.__doc__ = re.sub(r"\$\{(\w+?)(?:_comment|_type)\}", r"\1", text)
        return func

    return decorate


def escape_math(text: str) -> str:
    """`text` with formulas between single dollar signs as Sphinx has them; those between two stay.

    Follows `fluid.layers.layer_function_generator.escape_math`.
    """
    return re.sub(r"(\$\$.*?\$\$)|\$([^$]+)\$", lambda m: m[1] or f":math:`{m[2]}`", text, flags=re.DOTALL)


def _snake(name: str) -> str:
    """`InputSize` gives `input_size`, `X` gives `x`."""
    return re.sub("([a-z0-9])([A-Z])", r"\1_\2", re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)).lower()


def _documentation(proto: OpProto) -> str:
    taken = ", ".join(_snake(slot.name) for slot in proto.inputs)
    return f"{proto.comment}\n\nTakes {taken or 'no inputs'}; attributes: {', '.join(a.name for a in proto.attrs)}."
