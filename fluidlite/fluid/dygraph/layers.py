"""`Layer`: the base of everything that has parameters and computes at once."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...base import unique_name
from ...base.dtypes import VarType, to_numpy, to_vartype
from ...base.place import as_place
from ...eager import Tensor, placing, set_recording
from ...framework import default_main_program, mode, tracing
from ..initializer import Initializer
from ..layer_helper import LayerHelper
from ..param_attr import ParamAttr
from . import members
from .members import Members

__all__ = ["Layer"]


class LayerObjectHelper(LayerHelper):
    """The `_helper` of a `Layer` (`fluid.dygraph.layer_object_helper.LayerObjectHelper`).

    `name`: the prefix of names of parameters and results.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, name=name)

    def _helper_for(self, inputs_in: Any, param_attr_in: Any = None) -> LayerHelper:
        """A helper of the same name with these inputs and attributes."""
        return LayerHelper(self.layer_type, name=self.name, input=inputs_in, param_attr=param_attr_in)

    def _multiple_input(self, inputs_in: Any) -> list[Any]:
        """`inputs_in` as a list; TypeError for anything but variables and tensors."""
        return list(self._helper_for(inputs_in).multiple_input())

    def _input(self, inputs_in: Any) -> Any:
        """The only one of `inputs_in`; ValueError if there are several."""
        return self._helper_for(inputs_in).input()

    def _multiple_param_attr(self, length: int, param_attr_in: Any = None) -> list[Any]:
        """A ParamAttr for each of `length` inputs."""
        return self._helper_for([], param_attr_in).multiple_param_attr(length)

    def iter_inputs_and_params(  # type: ignore[override]
        self, inputs_in: Any, param_attr_in: Any = None
    ) -> Iterator[tuple[Any, Any]]:
        """Each of `inputs_in` with its ParamAttr."""
        return self._helper_for(inputs_in, param_attr_in).iter_inputs_and_params()

    def input_dtype(self, inputs_in: Any) -> VarType:  # type: ignore[override]
        """The element type of `inputs_in`; ValueError if they differ."""
        return self._helper_for(inputs_in).input_dtype()

    def is_instance(self, param: Any, cls: type) -> None:  # type: ignore[override]
        """Raise TypeError unless `param` is a `cls`."""
        if not isinstance(param, cls):
            raise TypeError(
                f"an argument of {self.name} must be a {cls.__name__}, got {type(param).__name__}"
            )


class HookRemoveHelper:
    """The handle of a registered hook: `remove()` unregisters it."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        if not callable(hook):
            raise TypeError(f"a hook must be callable, got {hook!r}")
        self._hooks = hooks
        self._hook_id = max(hooks, default=-1) + 1
        hooks[self._hook_id] = hook

    def remove(self) -> None:
        """Unregister the hook; without effect the second time."""
        self._hooks.pop(self._hook_id, None)


class Layer(Members):
    """A part of a model: parameters, buffers, other layers, and `forward`, which computes with them.

    Subclass it, call `super().__init__()` first, assign parameters and layers to attributes (which registers them) and
    define `forward`. Calling the layer runs its hooks and `forward`, on eager tensors or on Variables of a program.
    Follows `fluid.dygraph.Layer`, with further methods of `paddle.nn.Layer`.

    Args:
        name_scope: the prefix of the names of the layer and its parameters; by default the name of the class in snake
            case.
        dtype: the element type of the layer's parameters, a Fluid dtype or its name.

    Raises:
        TypeError: if `name_scope` is no string.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> class Twice(fluid.dygraph.Layer):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.linear = fluid.dygraph.Linear(3, 2)
        ...
        ...     def forward(self, x):
        ...         return self.linear(x) * 2
        >>> with fluid.dygraph.guard():
        ...     model = Twice()
        ...     y = model(fluid.dygraph.to_variable(np.ones([4, 3], "float32")))
        >>> y.shape, len(model.parameters())
        ([4, 2], 2)
    """

    def __init__(self, name_scope: str | None = None, dtype: Any = VarType.FP32) -> None:
        super().__init__()
        if name_scope is None:
            name_scope = _snake_case(type(self).__name__)
        elif not isinstance(name_scope, str):
            raise TypeError(f"the name_scope of a Layer must be a string, got {name_scope!r}")
        self.training = True
        self._full_name = unique_name.generate(name_scope)
        self._helper = LayerObjectHelper(self._full_name)
        self._dtype = dtype if dtype is None else to_vartype(dtype)
        self._built = type(self)._build_once is Layer._build_once
        self._forward_pre_hooks: dict[int, Callable[..., Any]] = OrderedDict()
        self._forward_post_hooks: dict[int, Callable[..., Any]] = OrderedDict()

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        if self._forward_pre_hooks or self._forward_post_hooks or not self._built:
            return self._call_with_hooks(inputs, kwargs)
        rewrite = tracing.rewriter.get()
        return (self.forward if rewrite is None else rewrite(self.forward))(*inputs, **kwargs)

    def _call_with_hooks(self, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for hook in list(self._forward_pre_hooks.values()):
            changed = hook(self, inputs)
            if changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        if not self._built:
            self._build_once(*inputs, **kwargs)
            self._built = True
        rewrite = tracing.rewriter.get()
        outputs = (self.forward if rewrite is None else rewrite(self.forward))(*inputs, **kwargs)
        for hook in list(self._forward_post_hooks.values()):
            changed = hook(self, inputs, outputs)
            if changed is not None:
                outputs = changed
        return outputs

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Compute the layer's outputs; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward(self, ...)")

    def _build_once(self, *inputs: Any, **kwargs: Any) -> None:
        """Called with the arguments of the first call; older code makes parameters of dependent shapes here."""

    def backward(self, *inputs: Any) -> None:
        """Always ValueError: gradients come from the operators that `forward` uses."""
        raise ValueError(
            "Layer shouldn't implement backward: gradients come from the operators in forward; call "
            "loss.backward()"
        )

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> HookRemoveHelper:
        """Call `hook(layer, inputs)` before `forward`.

        `inputs` is the tuple of positional arguments; the hook's result, unless None, replaces them (anything but a
        tuple is a single argument). Returns an object whose `remove()` unregisters the hook. Raises TypeError if `hook`
        is not callable.
        """
        return HookRemoveHelper(self._forward_pre_hooks, hook)

    def register_forward_post_hook(self, hook: Callable[..., Any]) -> HookRemoveHelper:
        """Call `hook(layer, inputs, outputs)` after `forward`; its result, unless None, replaces the outputs.

        Returns an object whose `remove()` unregisters the hook. Raises TypeError if `hook` is not callable.
        """
        return HookRemoveHelper(self._forward_post_hooks, hook)

    def train(self) -> None:
        """Training mode for this layer and all inside it: `training` is True.

        Under `fluid.dygraph.guard` and `enable_dygraph` this also switches the recording of gradients on.
        """
        self._set_training(True)

    def eval(self) -> None:
        """Evaluation mode for this layer and all inside it: `training` is False.

        Under `fluid.dygraph.guard` and `enable_dygraph` this also switches the recording of gradients off, for
        everything, until some `train()`: that is what Fluid 1.8 does. Outside of them, with the names of Paddle 2.0,
        recording goes on, as it does there.
        """
        self._set_training(False)

    def _set_training(self, training: bool) -> None:
        if mode.in_dygraph_mode():
            set_recording(training)
            mode.set_training(training)
        for layer in self._everything():
            layer.training = training

    def full_name(self) -> str:
        """The layer's unique name, such as `linear_0`."""
        return self._full_name

    def extra_repr(self) -> str:
        """Text for `repr`, before the sublayers."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): {layer!r}".replace("\n", "\n  ") for name, layer in self._sub_layers.items()]
        shown = self.extra_repr()
        if lines:
            shown = "\n  ".join([shown, *lines]) + "\n"
        return f"{type(self).__name__}({shown})"

    def create_parameter(
        self,
        shape: Sequence[int],
        attr: Any = None,
        dtype: Any = "float32",
        is_bias: bool = False,
        default_initializer: Initializer | None = None,
    ) -> Any:
        """A new parameter, which becomes the layer's when it is assigned to an attribute.

        Args:
            shape: its shape, integers.
            attr: a `ParamAttr`, a name, an initializer, or None; False: no parameter.
            dtype: its element type; None: float32.
            is_bias: True for the name `NAME.b_N` and zeros as the default, instead of `NAME.w_N` and Xavier.
            default_initializer: used unless `attr` has one.

        Returns:
            The parameter; None if `attr` is False. An eager one in dygraph mode, one of the default program in static
            mode, inside `program_guard` and, as long as a script uses nothing of Paddle 2.0, by default.

        Raises:
            ValueError: in Fluid's dygraph mode, the name in `attr` is taken; optimizers identify parameters by names.
        """
        attr = ParamAttr._to_attr(attr)
        named = isinstance(attr, ParamAttr) and attr.name is not None
        if named and mode.in_dygraph_mode() and unique_name.is_taken(attr.name):
            raise ValueError(
                f"parameter name [{attr.name}] have be been used. In dygraph mode each parameter needs a name of its "
                "own, because optimizers and saved models identify it by the name"
            )
        eager = mode.layers_compute()
        with mode.guard(eager):
            parameter = self._helper.create_parameter(
                attr,
                shape,
                dtype="float32" if dtype is None else dtype,
                is_bias=is_bias,
                default_initializer=default_initializer,
            )
        if eager and isinstance(attr, ParamAttr) and not attr.trainable and not mode.in_dygraph_mode():
            parameter.trainable = False
        return parameter

    def create_variable(
        self,
        name: str | None = None,
        persistable: bool | None = None,
        dtype: Any = None,
        type: VarType = VarType.LOD_TENSOR,
    ) -> Any:
        """An empty tensor called `LAYER.name`, without gradient; `set_value` gives it a value.

        A variable of the current program where layers belong to programs (see `create_parameter`).

        `dtype` is by default the layer's; `type` is accepted, the result is always a dense tensor. It is not
        registered: `register_buffer` does that.
        """
        stem = f"{self._full_name}."
        name = stem + name if name is not None else unique_name.generate(stem + "_generated_var")
        kind = to_vartype(dtype) if dtype is not None else self._dtype or VarType.FP32
        if not mode.layers_compute():
            block = default_main_program().current_block()
            return block.create_var(name=name, type=type, dtype=kind, persistable=bool(persistable))
        array = placing.to_default_device(np.zeros((0,), to_numpy(kind)))
        return Tensor(array, name=name, persistable=bool(persistable))

    create_tensor = create_variable

    def clear_gradients(self) -> None:
        """Set the gradients of all parameters to zero."""
        for layer in self._everything():
            for parameter in layer._parameters.values():
                if parameter is not None and parameter.trainable:
                    parameter.clear_gradient()

    def state_dict(
        self,
        destination: dict[str, Any] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
    ) -> dict[str, Any]:
        """The parameters and persistable buffers by the names of attributes joined with dots.

        The tensors themselves, not copies. `destination`: a dict to put them into; `structured_name_prefix` goes
        before the names.
        """
        into = OrderedDict() if destination is None else destination
        return members.gather(self, into, structured_name_prefix, include_sublayers)

    def set_dict(
        self, stat_dict: Mapping[str, Any], include_sublayers: bool = True, use_structured_name: bool = True
    ) -> None:
        """Copy the values of a state dict into the parameters and buffers; all of them must be there.

        Args:
            stat_dict: tensors or arrays, by what `state_dict` calls them.
            include_sublayers: whether layers inside this one are set too.
            use_structured_name: False: the keys are names of parameters (`linear_0.w_0`).

        Raises:
            RuntimeError: a name is missing. AssertionError, as in Fluid: a value has another shape or dtype.
            Nothing has changed then. Names that nothing has are warned of.
        """
        members.restore(self.state_dict(None, include_sublayers), stat_dict, use_structured_name)

    def load_dict(
        self, stat_dict: Mapping[str, Any], include_sublayers: bool = True, use_structured_name: bool = True
    ) -> None:
        """The same as `set_dict`."""
        self.set_dict(stat_dict, include_sublayers, use_structured_name)

    def set_state_dict(
        self, state_dict: Mapping[str, Any], use_structured_name: bool = True
    ) -> tuple[list[str], list[str]]:
        """As `set_dict`, but values that are missing or differ in shape are left unchanged, with a warning
        (`paddle.nn.Layer.set_state_dict`).

        Returns the names that are missing in `state_dict`, and those in it that the layer does not have.
        """
        return members.restore_what_fits(self.state_dict(), state_dict, use_structured_name)

    def to(self: Any, device: Any = None, dtype: Any = None, blocking: bool | None = None) -> Any:
        """Move the parameters and buffers, with their gradients, to `device`, in place; returns the layer.

        `device`: a place, 'cpu' or 'gpu:N'; None: not moved. `dtype`: the new type of floating-point ones.
        `blocking`: accepted; nothing needs to wait for the copies. Raises ValueError for a device that is not there.
        """
        tensors = (*self.parameters(), *self.buffers())
        if device is not None:
            place = as_place(device)
            for tensor in tensors:
                tensor.array = placing.at(tensor.array, place)
                if tensor.grad_array is not None:
                    tensor.grad_array = placing.to_device_of(tensor.grad_array, tensor.array)
        if dtype is None:
            return self
        kind = to_vartype(dtype)
        for tensor in tensors:
            if np.issubdtype(tensor.array.dtype, np.floating):
                with placing.computing(tensor.array):
                    tensor.array = tensor.array.astype(to_numpy(kind))
        for layer in self.sublayers(include_self=True):
            layer._dtype = kind
        return self


def setting(name: str, unset: Any = None) -> property:
    """A property of layers: the attribute `name` of their operator, in `_attrs`, which may be set later as well."""

    def put(layer: Any, value: Any) -> None:
        layer._attrs = {**layer._attrs, name: value}

    return property(lambda layer: layer._attrs.get(name, unset), put)


def _snake_case(name: str) -> str:
    """`LayerList` as `layer_list`, `GRUUnit` as `gru_unit`, `Conv2D` as `conv2d`."""
    parted = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", parted).lower()
