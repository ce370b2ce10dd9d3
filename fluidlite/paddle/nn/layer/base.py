"""Layers without parameters that are a function with arguments of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ....fluid.dygraph.layers import Layer


class FunctionLayer(Layer):
    """A layer whose `forward` is a function, with some of its arguments given when the layer is made.

    Subclasses say which function; the layer's arguments are those of the function that are not tensors.
    """

    function: ClassVar[Callable[..., Any]]
    inputs: ClassVar[int] = 1
    """The number of leading tensor arguments of the function."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        kind = type(self)
        parameters = list(inspect.signature(kind.function).parameters.values())[kind.inputs :]
        try:
            given = inspect.Signature(parameters).bind_partial(*args, **kwargs)
        except TypeError as error:
            raise TypeError(
                f"{kind.__name__}: {error}; it takes {[one.name for one in parameters]}"
            ) from None
        missing = [
            one.name for one in parameters if one.default is one.empty and one.name not in given.arguments
        ]
        if missing:
            raise TypeError(f"{kind.__name__} needs {' and '.join(missing)}")
        self._arguments: dict[str, Any] = dict(given.arguments)

    def forward(self, *inputs: Any) -> Any:
        """The function of the tensors `inputs`."""
        return type(self).function(*inputs, **self._arguments)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self._arguments.items() if name != "name")


def layer_of(name: str, function: Callable[..., Any], module: str, inputs: int = 1) -> type[FunctionLayer]:
    """The layer class `name` for `function`, whose first `inputs` arguments are tensors.

    The class takes the other arguments; type checkers learn them from the module's stub, which `scripts/layer_stubs.py`
    writes.
    """

    def __init__(self: FunctionLayer, *args: Any, **kwargs: Any) -> None:
        FunctionLayer.__init__(self, *args, **kwargs)

    arguments = list(inspect.signature(function).parameters.values())[inputs:]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = inspect.Signature([own, *arguments])  # type: ignore[attr-defined]
    doc = f"""The layer of `{function.__name__}`, which takes its other arguments (`paddle.nn.{name}`)."""
    members = {"function": staticmethod(function), "inputs": inputs, "__init__": __init__}
    return type(name, (FunctionLayer,), {**members, "__doc__": doc, "__module__": module})


def layers_of(
    functions: Mapping[str, Callable[..., Any]], module: str, inputs: int = 1
) -> dict[str, type[FunctionLayer]]:
    """The classes that `layer_of` makes of functions, by their names."""
    return {name: layer_of(name, function, module, inputs) for name, function in functions.items()}
