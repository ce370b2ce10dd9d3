"""`LayerHelperBase`: how layers get names, parameters and variables."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import eager
from ..base import unique_name
from ..base.dtypes import FLOATS, VarType, to_numpy, to_vartype
from ..base.errors import NotSupportedError
from ..executor.scope import Scope
from ..framework import (
    Block,
    Parameter,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    mode,
)
from .initializer import ConstantInitializer, Initializer, XavierInitializer
from .param_attr import ParamAttr, WeightNorm, WeightNormParamAttr

__all__ = ["LayerHelperBase"]


class LayerHelperBase:
    """A layer by its type, and by the name that names are made from: a number is taken for it if it is None.

    Follows `fluid.layer_helper_base.LayerHelperBase`.
    """

    def __init__(self, name: str | None, layer_type: str) -> None:
        self._name = name
        self._layer_type = layer_type

    @property
    def layer_type(self) -> str:
        return self._layer_type

    @property
    def name(self) -> str:
        """The prefix of names. In dygraph mode its number is drawn only if a name is needed."""
        if self._name is None:
            self._name = unique_name.generate(self.layer_type)
        return self._name

    @property
    def main_program(self) -> Program:
        return default_main_program()

    @property
    def startup_program(self) -> Program:
        return default_startup_program()

    def to_variable(self, value: Any, name: str | None = None) -> Any:
        """An array as an eager tensor; tensors and Variables as they are. TypeError for anything else."""
        if isinstance(value, Variable):
            return value
        if not isinstance(value, np.ndarray):
            raise TypeError(f"to_variable takes an array, a tensor or a Variable, got {type(value).__name__}")
        return eager.Tensor(eager.placing.to_default_device(value.copy()), name)

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
            attr.name = self._new_parameter_name(f"{self.name}.{'b' if is_bias else 'w'}")
        if isinstance(attr, WeightNormParamAttr):
            return self._create_weight_normalize(attr, shape, dtype)
        given = attr._to_kwargs(with_initializer=True)
        if mode.in_dygraph_mode():
            fill, name = given.pop("initializer"), given.pop("name")
            array = initial_value(fill, list(shape), dtype, name, self.main_program.random_seed)
            made = eager.Parameter(eager.placing.to_default_device(array), name, **given)
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

    def _new_name(self, key: str) -> str:
        """A name for a new variable of the current block; see `Block._new_name`."""
        return self.main_program.current_block()._new_name(key)

    def _new_parameter_name(self, key: str) -> str:
        """A name `key_N` that no variable has, or a parameter, which two networks built alike share, as in Fluid."""
        known = self.main_program.global_block().vars
        name = unique_name.generate(key)
        while name in known and not isinstance(known[name], Parameter):
            name = unique_name.generate(key)
        return name

    def _create_weight_normalize(
        self, attr: WeightNormParamAttr, shape: Sequence[int], dtype: VarType
    ) -> Variable:
        if mode.in_dygraph_mode():
            raise NotSupportedError("WeightNormParamAttr works in static programs only, as in Fluid 1.8")
        norm = WeightNorm(self.name, self.main_program.global_block(), self.startup_program.global_block())
        return norm.create(attr, shape, dtype, attr.initializer)

    def create_variable_for_type_inference(
        self, dtype: Any = None, stop_gradient: bool = False, like: Any = None
    ) -> Any:
        """A new temporary `NAME.tmp_N`; its shape comes from the operator that writes it.

        It is an eager tensor if `like` (a variable or a list of them) is eager, or in dygraph mode without `like`.
        """
        if is_eager(like):
            return eager.empty()
        return self.main_program.current_block().create_var(
            name=self._new_name(f"{self.name}.tmp"),
            dtype=dtype,
            persistable=False,
            stop_gradient=stop_gradient,
        )

    create_tmp_variable = create_variable_for_type_inference

    def create_variable(self, *args: Any, like: Any = None, **kwargs: Any) -> Any:
        """A variable of the current block, or an eager tensor: see `create_variable_for_type_inference`."""
        if is_eager(like):
            return eager.empty()
        return self.main_program.current_block().create_var(*args, **kwargs)

    def create_global_variable(self, persistable: bool = False, *args: Any, **kwargs: Any) -> Any:
        """A variable of the global block (an eager tensor in dygraph mode), named `NAME.tmp_N` by default."""
        if not kwargs.get("name"):
            kwargs["name"] = self._new_name(f"{self.name}.tmp")
        kwargs.setdefault("stop_gradient", False)
        if mode.in_dygraph_mode():
            zeros = np.zeros(
                [max(n, 0) for n in kwargs.get("shape") or ()], to_numpy(kwargs.get("dtype") or "float32")
            )
            return eager.Tensor(
                eager.placing.to_default_device(zeros), kwargs["name"], persistable=persistable
            )
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
            array = initial_value(initializer, var.shape, var.dtype, var.name, self.main_program.random_seed)
            var.array = eager.placing.to_device_of(array, var.array)  # type: ignore[attr-defined]
            return var
        block = self.startup_program.global_block()
        twin = block.create_var(
            name=var.name, type=var.type, dtype=var.dtype, shape=var.shape, persistable=True
        )
        initializer(twin, block)
        return twin


def is_eager(like: Any) -> bool:
    """Whether a variable made from `like` is an eager tensor; None: decided by the mode."""
    return mode.in_dygraph_mode() if like is None else bool(eager.mixture([like]))


def initial_value(
    fill: Callable[[Variable, Block], Any], shape: Sequence[int], dtype: VarType, name: str, seed: int = 0
) -> np.ndarray:
    """The array that initializer `fill` makes for a parameter.

    `seed`: the `random_seed` of the program that it counts as part of.
    """
    program = Program()
    program.random_seed = seed
    block = program.global_block()
    fill(block.create_var(name=name, shape=list(shape), dtype=dtype, persistable=True), block)
    scope = Scope()
    from ..executor.plan_cache import run_once  # what runs programs is loaded when one runs

    run_once(program, scope)
    holder = scope.find_var(name)
    assert holder is not None
    array = holder.get_tensor().array
    assert array is not None
    return np.ascontiguousarray(array).reshape(array.shape)
