"""`LayerHelper`: what layers share - names, parameters, bias, activation, appending operators."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from . import eager
from .base import missing, unique_name
from .base.dtypes import FLOATS, VarType, to_numpy, to_vartype
from .base.errors import NotSupportedError
from .framework import (
    Operator,
    Parameter,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    mode,
)
from .initializer import ConstantInitializer, Initializer, XavierInitializer
from .ops import input_types
from .param_attr import ParamAttr, WeightNormParamAttr
from .weight_norm import WeightNorm


class LayerHelper:
    """One use of a layer: `LayerHelper('fc', name=name, param_attr=..., bias_attr=..., act=...)`.

    Names are made from `name` (or the layer's type, numbered). While a program is built, the element types of inputs
    are those that the layers of Fluid take, unless `any_type` is true (Paddle 2.0 takes more).
    Follows `fluid.layer_helper.LayerHelper`.
    """

    def __init__(self, layer_type: str, **kwargs: Any) -> None:
        self.layer_type = layer_type
        self.kwargs = kwargs
        self._name: str | None = kwargs.get("name")
        if self._name is None and not mode.in_dygraph_mode():
            self._name = unique_name.generate(layer_type)

    @property
    def name(self) -> str:
        """What names begin with. In dygraph mode a number is taken only if something is named after the layer."""
        if self._name is None:
            self._name = unique_name.generate(self.layer_type)
        return self._name

    @property
    def main_program(self) -> Program:
        return default_main_program()

    @property
    def startup_program(self) -> Program:
        return default_startup_program()

    @property
    def param_attr(self) -> Any:
        return ParamAttr._to_attr(self.kwargs.get("param_attr"))

    @property
    def bias_attr(self) -> Any:
        return ParamAttr._to_attr(self.kwargs.get("bias_attr"))

    def multiple_input(self, input_param_name: str = "input") -> list[Variable]:
        """The layer's inputs as a list; TypeError for anything but Variables."""
        given = self.kwargs.get(input_param_name, [])
        inputs = list(given) if isinstance(given, (list, tuple)) else [given]
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

    def create_parameter(
        self,
        attr: Any,
        shape: Sequence[int],
        dtype: Any = None,
        is_bias: bool = False,
        default_initializer: Initializer | None = None,
        stop_gradient: bool = False,
        type: VarType = VarType.LOD_TENSOR,
    ) -> Any:
        """A parameter of the main program, filled by the startup program; None if `attr` is False.

        In dygraph mode an eager one, which has its initial value at once. Weights are called `NAME.w_N` and
        drawn by Xavier, biases `NAME.b_N` and zero, unless `attr` says otherwise.
        """
        if attr is False:
            return None
        attr = copy.copy(ParamAttr._to_attr(attr))
        if not isinstance(attr, ParamAttr):
            raise TypeError(f"param_attr must be a ParamAttr, a name, an initializer or False, got {attr!r}")
        dtype = to_vartype(dtype if dtype is not None else VarType.FP32)
        if default_initializer is None:
            if is_bias or dtype not in FLOATS:
                default_initializer = ConstantInitializer(0.0)
            else:
                default_initializer = XavierInitializer()
        if attr.initializer is None:
            attr.initializer = default_initializer
        if attr.name is None:
            attr.name = unique_name.generate(".".join([self.name, "b" if is_bias else "w"]))
        if isinstance(attr, WeightNormParamAttr):
            return self._weight_norm(attr, shape, dtype)
        given = attr._to_kwargs(with_initializer=True)
        if mode.in_dygraph_mode():
            fill, name = given.pop("initializer"), given.pop("name")
            array = eager.initial_value(fill, list(shape), dtype, name, self.main_program.random_seed)
            made = eager.Parameter(eager.placing.here(array), name, **given)
            made.stop_gradient = made.stop_gradient or stop_gradient
            return made
        startup = self.startup_program.global_block()
        startup.create_parameter(dtype=dtype, shape=list(shape), type=type, **given)
        given.pop("initializer")
        param = self.main_program.global_block().create_parameter(
            dtype=dtype, shape=list(shape), type=type, **given
        )
        if stop_gradient:
            param.stop_gradient = True
        return param

    def _weight_norm(self, attr: WeightNormParamAttr, shape: Sequence[int], dtype: VarType) -> Variable:
        if mode.in_dygraph_mode():
            raise NotSupportedError("WeightNormParamAttr works in static programs only, as in Fluid 1.8")
        norm = WeightNorm(self.name, self.main_program.global_block(), self.startup_program.global_block())
        return norm.create(attr, shape, dtype, attr.initializer)

    def get_parameter(self, name: str) -> Parameter:
        """The parameter `name` of the main program; ValueError if it is something else."""
        param = self.main_program.global_block().var(name)
        if not isinstance(param, Parameter):
            raise ValueError(f"no Parameter name {name} found")  # noqa: TRY004 - as Fluid
        return param

    def create_variable_for_type_inference(
        self, dtype: Any = None, stop_gradient: bool = False, like: Any = None
    ) -> Any:
        """A new temporary `NAME.tmp_N`; its shape comes from the operator that writes it.

        An eager tensor, which gets its value from there, if `like` (a variable or a list of them) is eager, or in
        dygraph mode if it is left out.
        """
        if _is_eager(like):
            return eager.empty()
        return self.main_program.current_block().create_var(
            name=unique_name.generate(f"{self.name}.tmp"),
            dtype=dtype,
            persistable=False,
            stop_gradient=stop_gradient,
        )

    create_tmp_variable = create_variable_for_type_inference

    def create_variable(self, *args: Any, like: Any = None, **kwargs: Any) -> Any:
        """A variable of the current block, or an eager tensor: see `create_variable_for_type_inference`."""
        if _is_eager(like):
            return eager.empty()
        return self.main_program.current_block().create_var(*args, **kwargs)

    def create_global_variable(self, persistable: bool = False, *args: Any, **kwargs: Any) -> Any:
        """A variable of the global block (an eager tensor in dygraph mode), named `NAME.tmp_N` by default."""
        if not kwargs.get("name"):
            kwargs["name"] = unique_name.generate(f"{self.name}.tmp")
        kwargs.setdefault("stop_gradient", False)
        if mode.in_dygraph_mode():
            zeros = np.zeros(
                [max(n, 0) for n in kwargs.get("shape") or ()], to_numpy(kwargs.get("dtype") or "float32")
            )
            return eager.Tensor(eager.placing.here(zeros), kwargs["name"], persistable=persistable)
        return self.main_program.global_block().create_var(*args, persistable=persistable, **kwargs)

    def create_or_get_global_variable(self, name: str, *args: Any, **kwargs: Any) -> tuple[Variable, bool]:
        """The global variable `name` and whether it was made just now."""
        block = self.main_program.global_block()
        if block.has_var(name):
            return block.var(name), False
        return self.create_global_variable(*args, name=name, **kwargs), True

    def set_variable_initializer(self, var: Variable, initializer: Initializer) -> Variable:
        """Have the startup program fill the persistable `var`; an eager tensor is filled now."""
        if eager.mixture([var]):
            array = eager.initial_value(
                initializer, var.shape, var.dtype, var.name, self.main_program.random_seed
            )
            var.array = eager.placing.beside(array, var.array)  # type: ignore[attr-defined]
            return var
        block = self.startup_program.global_block()
        twin = block.create_var(
            name=var.name, type=var.type, dtype=var.dtype, shape=var.shape, persistable=True
        )
        initializer(twin, block)
        return twin

    def append_op(
        self,
        type: str,
        inputs: dict[str, Any] | None = None,
        outputs: dict[str, Any] | None = None,
        attrs: dict[str, Any] | None = None,
        stop_gradient: bool = False,
    ) -> Operator | None:
        """Append an operator to the current block; if its inputs (or, without any, its outputs) are eager tensors,
        run it now, put the results into the output tensors, and return None.
        """
        given = _given(inputs or {})
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

    def apply(
        self,
        op_type: str,
        inputs: dict[str, Any],
        outputs: Sequence[str] = ("Out",),
        attrs: dict[str, Any] | None = None,
        dtype: Any = None,
        frozen: Sequence[str] = (),
        stop_gradient: bool = False,
    ) -> Any:
        """Append operator `op_type` with new temporaries for `outputs`, numbered in that order; returns them.

        Runs the operator at once if the inputs are eager tensors, or if there are none in dygraph mode. `dtype`: of the
        outputs, where the operator does not say; `frozen`: outputs that no gradient goes through.
        """
        given = _given(inputs)
        if eager.mixture(given.values()) or (not given and mode.in_dygraph_mode()):
            results = eager.apply(op_type, given, outputs, attrs)
            for slot, result in zip(
                outputs, results if isinstance(results, tuple) else (results,), strict=True
            ):
                if stop_gradient or slot in frozen:
                    result.stop_gradient = True
            return results
        made = [
            self.create_variable_for_type_inference(dtype, stop_gradient=stop_gradient or slot in frozen)
            for slot in outputs
        ]
        self.append_op(
            type=op_type,
            inputs={slot: value for slot, value in inputs.items() if value is not None},
            outputs={slot: [var] for slot, var in zip(outputs, made, strict=True)},
            attrs=attrs,
        )
        return made[0] if len(made) == 1 else tuple(made)

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
        return self.apply(
            "elementwise_add", {"X": input_var, "Y": bias}, attrs={"axis": dim_start}, dtype=input_var.dtype
        )

    def append_activation(self, input_var: Variable) -> Variable:
        """The activation that `act` names (a string, or a dict with `type` and attributes) of `input_var`."""
        act = self.kwargs.get("act")
        if act is None:
            return input_var
        if isinstance(act, str):
            act = {"type": act}
        elif not isinstance(act, dict):
            raise TypeError(f"act must be the name of an activation, got {act!r}")
        attrs = dict(act)
        return self.apply(attrs.pop("type"), {"X": input_var}, attrs=attrs, dtype=input_var.dtype)

    def _get_default_initializer(self, dtype: Any) -> Initializer:
        return XavierInitializer() if to_vartype(dtype) in FLOATS else ConstantInitializer()

    def is_instance(self, param_name: str, cls: type) -> None:
        param = self.kwargs.get(param_name)
        if not isinstance(param, cls):
            raise TypeError(
                f"the input {param_name} of {self.layer_type} must be {cls.__name__}, got {type(param).__name__}"
            )


def _is_eager(like: Any) -> bool:
    return mode.in_dygraph_mode() if like is None else bool(eager.mixture([like]))


def _given(inputs: dict[str, Any]) -> dict[str, Any]:
    """The slots that hold something. Tensors are not compared: that would be an operator."""
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
    """Raise TypeError unless `value` is a Variable of a program."""
    if not isinstance(value, Variable):
        raise TypeError(
            f"The type of '{name}' in {layer} must be a Variable of a fluid program, got {type(value).__name__} "
            f"({value!r:.60})"
        )


__getattr__ = missing.reporter(__name__)
