"""`LayerHelper`: what layers share - names, parameters, bias, activation, appending operators."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import eager
from ..base import unique_name
from ..base.dtypes import FLOATS, VarType, to_vartype
from ..framework import (
    Operator,
    Parameter,
    Variable,
    mode,
)
from ..ops import input_types
from .initializer import ConstantInitializer, Initializer, XavierInitializer
from .layer_helper_base import LayerHelperBase
from .param_attr import ParamAttr


class LayerHelper(LayerHelperBase):
    """One use of a layer: `LayerHelper('fc', name=name, param_attr=..., bias_attr=..., act=...)`.

    Names are made from `name` (or the layer's type, numbered). While a program is built, the element types of inputs
    are those that the layers of Fluid take, unless `any_type` is true (Paddle 2.0 takes more).
    Follows `fluid.layer_helper.LayerHelper`.
    """

    def __init__(self, layer_type: str, **kwargs: Any) -> None:
        name = kwargs.get("name")
        if name is None and not mode.in_dygraph_mode():
            name = unique_name.generate(layer_type)
        super().__init__(name, layer_type)
        self.kwargs = kwargs

    @property
    def param_attr(self) -> Any:
        return ParamAttr._to_attr(self.kwargs.get("param_attr"))

    @property
    def bias_attr(self) -> Any:
        return ParamAttr._to_attr(self.kwargs.get("bias_attr"))

    def multiple_input(self, input_param_name: str = "input") -> list[Variable]:
        """The layer's inputs as a list; TypeError for anything but Variables, and arrays in dygraph mode."""
        given = self.kwargs.get(input_param_name, [])
        inputs = list(given) if isinstance(given, (list, tuple)) else [given]
        if mode.in_dygraph_mode() and any(isinstance(item, np.ndarray) for item in inputs):
            inputs = self.kwargs[input_param_name] = [self.to_variable(item) for item in inputs]
        for item in inputs:
            check_variable(item, input_param_name, self.layer_type)
        return inputs

    def input(self, input_param_name: str = "input") -> Variable:
        """The layer's only input; ValueError if there are several."""
        inputs = self.multiple_input(input_param_name)
        if len(inputs) != 1:
            raise ValueError(f"{self.layer_type} takes one {input_param_name}, got {len(inputs)}")
        return inputs[0]

    def multiple_param_attr(self, length: int) -> list[Any]:
        """One ParamAttr for each of `length` inputs."""
        attr = self.param_attr
        if isinstance(attr, ParamAttr):
            return [attr] + [copy.deepcopy(attr) for _ in range(length - 1)]
        attrs = list(attr) if isinstance(attr, (list, tuple)) else [attr]
        if len(attrs) == 1:
            attrs *= length
        if len(attrs) != length:
            raise ValueError(
                f"{self.layer_type} has {length} inputs but param_attr has {len(attrs)} elements"
            )
        return attrs

    def iter_inputs_and_params(self, input_param_name: str = "input") -> Iterator[tuple[Variable, Any]]:
        inputs = self.multiple_input(input_param_name)
        yield from zip(inputs, self.multiple_param_attr(len(inputs)), strict=True)

    def input_dtype(self, input_param_name: str = "input") -> VarType:
        """The dtype of the inputs; ValueError if they differ."""
        inputs = self.multiple_input(input_param_name)
        for var in inputs[1:]:
            if var.dtype != inputs[0].dtype:
                raise ValueError(
                    f"the inputs of {self.layer_type} differ in dtype: {[str(v.dtype) for v in inputs]}"
                )
        return inputs[0].dtype

    def get_parameter(self, name: str) -> Parameter:
        """The parameter `name` of the main program; ValueError if it is something else."""
        param = self.main_program.global_block().var(name)
        if not isinstance(param, Parameter):
            raise ValueError(f"no Parameter name {name} found")  # noqa: TRY004 - as Fluid
        return param

    def append_op(
        self,
        type: str,
        inputs: dict[str, Any] | None = None,
        outputs: dict[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
        stop_gradient: bool = False,
    ) -> Operator | None:
        """Append an operator to the current block; if its inputs (or, without any, its outputs) are eager tensors,
        run it now, put the results into the output tensors, and return None.
        """
        given = _present(inputs or {})
        results = outputs or {}
        if eager.mixture(given.values()) or (not given and eager.mixture(results.values())):
            eager.apply_into(type, given, results, attrs)
            if stop_gradient:
                for item in _flat(results.values()):
                    item.stop_gradient = True
            return None
        if not self.kwargs.get("any_type"):
            input_types.check(type, self.layer_type, given)
        return self.main_program.current_block().append_op(
            type=type, inputs=inputs, outputs=outputs, attrs=attrs, stop_gradient=stop_gradient
        )

    def run(
        self,
        op_type: str,
        inputs: Mapping[str, Any],
        outputs: Sequence[str | tuple[str, int]] = ("Out",),
        attrs: Mapping[str, Any] | None = None,
        *,
        stop_gradient: bool | Sequence[str] = False,
        into: Mapping[str, Any] | None = None,
    ) -> Any:
        """`run_op` for this layer, whose name the results get in a program."""
        return run_op(op_type, inputs, outputs, attrs, stop_gradient=stop_gradient, into=into, helper=self)

    def add_bias(self, value: Any, bias: Any, axis: int) -> Any:
        """`value` plus `bias` along `axis`; `value` itself without a bias."""
        if bias is None:
            return value
        return run_op("elementwise_add", {"X": value, "Y": bias}, attrs={"axis": axis}, helper=self)

    def append_bias_op(self, input_var: Variable, dim_start: int = 1, dim_end: int | None = None) -> Variable:
        """`input_var` plus a bias over its dimensions `dim_start` to `dim_end`; itself if `bias_attr` is False."""
        bias_attr = self.bias_attr
        if not bias_attr:
            return input_var
        bias = self.create_parameter(
            attr=bias_attr,
            shape=list(input_var.shape[dim_start:dim_end]),
            dtype=input_var.dtype,
            is_bias=True,
        )
        return self.add_bias(input_var, bias, dim_start)

    def append_activation(
        self, input_var: Variable, act: Any = None, use_cudnn: Any = None, use_mkl_dnn: Any = None
    ) -> Variable:
        """The activation that `act` names (a string, or a dict with `type` and attributes) of `input_var`.

        By default that of the layer. Operators say `use_cudnn` if it is given and true.
        """
        act = self.kwargs.get("act") if act is None else act
        if act is None:
            return input_var
        if isinstance(act, str):
            act = {"type": act}
        elif not isinstance(act, dict):
            raise TypeError(f"act must be the name of an activation, got {act!r}")
        attrs = {**act, "use_cudnn": True} if use_cudnn or self.kwargs.get("use_cudnn") else dict(act)
        return self.run(attrs.pop("type"), {"X": input_var}, attrs=attrs)

    def _get_default_initializer(self, dtype: Any) -> Initializer:
        return XavierInitializer() if to_vartype(dtype) in FLOATS else ConstantInitializer()

    def is_instance(self, param_name: str, cls: type) -> None:
        param = self.kwargs.get(param_name)
        if not isinstance(param, cls):
            raise TypeError(
                f"the input {param_name} of {self.layer_type} must be {cls.__name__}, got {type(param).__name__}"
            )


def run_op(
    op_type: str,
    inputs: Mapping[str, Any],
    outputs: Sequence[str | tuple[str, int]] = ("Out",),
    attrs: Mapping[str, Any] | None = None,
    name: str | None = None,
    *,
    stop_gradient: bool | Sequence[str] = False,
    into: Mapping[str, Any] | None = None,
    helper: LayerHelper | None = None,
    any_type: bool = False,
) -> Any:
    """The results of operator `op_type`: one tensor, or a tuple of them in the order of `outputs`.

    Layers of all kinds run operators by this function. It runs eagerly if eager tensors are among `inputs`, or without
    inputs in dygraph mode; otherwise it appends the operator to the current block.

    Args:
        inputs: tensors or lists of them by slot; None: left out.
        outputs: the slots wanted, `(slot, n)` for a list of n.
        name: the prefix of the results' names in a program; by default numbered after the operator.
        stop_gradient: the outputs through which no gradient goes; True: all.
        into: tensors to write outputs to, by slot; persistable ones keep their memory. None: a new tensor.
        helper: the layer that the operator is part of, with a name and rules for element types; None: a new one.
        any_type: without `helper`: take all element types of the operator (Paddle 2.0), not those of Fluid's layers.

    Raises TypeError for inputs that are neither tensors nor Variables, and the operator's own errors.
    """
    targets = _present(into) if into else {}
    if eager.mixture(inputs.values()) or _computes_without_inputs(inputs, targets):
        results = eager.apply(op_type, inputs, outputs, attrs)
        return (
            _store_results(results, outputs, stop_gradient, targets) if stop_gradient or targets else results
        )
    if helper is None:
        helper = LayerHelper(op_type, name=name, any_type=any_type)
    given = _present(inputs)
    for slot, value in given.items():
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if not isinstance(item, Variable):
                raise TypeError(
                    f"{helper.layer_type} takes tensors, got {type(item).__name__}; make one with "
                    "fluid.dygraph.to_variable or paddle.to_tensor, or a Variable of a program "
                    f"({slot} is {item!r:.60})"
                )
    made: list[Variable] = []
    wanted: dict[str, list[Variable]] = {}
    for slot in _slot_names(outputs):
        var = targets[slot] if slot in targets else helper.create_variable_for_type_inference()
        if stop_gradient is True or (stop_gradient and slot in stop_gradient):
            var.stop_gradient = True
        made.append(var)
        wanted.setdefault(slot, []).append(var)
    helper.append_op(type=op_type, inputs=given, outputs=wanted, attrs=attrs)
    return made[0] if len(made) == 1 else tuple(made)


def _computes_without_inputs(inputs: Mapping[str, Any], targets: Mapping[str, Any]) -> bool:
    """Whether an operator without inputs runs eagerly: decided by its targets, or else by the mode."""
    if _present(inputs):
        return False
    return bool(eager.mixture(targets.values())) if targets else mode.in_dygraph_mode()


def _store_results(
    results: Any,
    outputs: Sequence[str | tuple[str, int]],
    stop_gradient: bool | Sequence[str],
    into: Mapping[str, Any],
) -> Any:
    """Store the results of an operator in the tensors of `into`, and set `stop_gradient`; returns the results."""
    made = list(results) if isinstance(results, tuple) else [results]
    for k, slot in enumerate(_slot_names(outputs)):
        if slot in into:
            eager.put(into[slot], made[k])
            made[k] = into[slot]
        if stop_gradient is True or (stop_gradient and slot in stop_gradient):
            made[k].stop_gradient = True
    return made[0] if len(made) == 1 else tuple(made)


def _slot_names(outputs: Sequence[str | tuple[str, int]]) -> Iterator[str]:
    """The slot of each output."""
    for item in outputs:
        if isinstance(item, str):
            yield item
        else:
            yield from [item[0]] * item[1]


def _present(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The slots that are not empty. Tensors are not compared: that would append an operator."""
    return {
        slot: value
        for slot, value in inputs.items()
        if value is not None and not (isinstance(value, (list, tuple)) and not value)
    }


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from value
        else:
            yield value


def check_variable(value: Any, name: str, layer: str) -> None:
    """Raise TypeError unless `value` is a Variable of a program or an eager tensor."""
    if type(value) in TENSOR_TYPES:
        return
    if not isinstance(value, Variable):
        raise TypeError(
            f"The type of '{name}' in {layer} must be a Variable of a fluid program, got {type(value).__name__} "
            f"({value!r:.60})"
        )
    TENSOR_TYPES.add(type(value))


TENSOR_TYPES: set[type] = set()
"""A cache of types that are Variables or eager tensors: ten times as fast as `isinstance`."""


def check_variables(layer: str, **given: Any) -> None:
    """`check_variable` for several arguments of `layer` by their names."""
    for name, value in given.items():
        check_variable(value, name, layer)
