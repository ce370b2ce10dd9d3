"""`fluid.contrib.quantize`: quantization-aware training of programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ...executor import Scope, global_scope
from ...framework import Block, Operator, Program, Variable, default_main_program, default_startup_program
from ...framework.program import program_guard
from ..initializer import Constant
from ..layer_helper import LayerHelper
from ..layers.control_flow import autoincreased_step_counter
from ..param_attr import ParamAttr
from .slim.quantization import transform

__path__: list[str] = []  # the modules below are views: base/names/views.py

__all__ = ["QuantizeTranspiler"]

_KINDS = ("abs_max", "range_abs_max", "moving_average_abs_max")
_OPERATORS = ("conv2d", "depthwise_conv2d", "mul")


def quant(x: Any, scale: float, num_bits: int) -> np.ndarray:
    """`x` / `scale` * (2^(num_bits - 1) - 1), rounded (`fluid.contrib.quantize.quantize_transpiler.quant`)."""
    return np.round(x / scale * _steps(num_bits))


class QuantizeTranspiler:
    """Quantization-aware training by changing programs in place
    (`fluid.contrib.quantize.QuantizeTranspiler`; Jacob et al. 2018).

    Convolutions (`conv2d`, `depthwise_conv2d`) and products (`mul`) get inputs rounded to integers times a scale; the
    gradient of rounding is the identity. `QuantizationTransformPass` does the same to graphs.

    Args:
        weight_bits, activation_bits: the bits of parameters, and of other inputs.
        activation_quantize_type, weight_quantize_type: the scale: 'abs_max' is the largest magnitude, 'range_abs_max'
            the largest of the last `window_size` steps, 'moving_average_abs_max' a moving average with `moving_rate`.

    Raises ValueError for another kind.
    """

    def __init__(
        self,
        weight_bits: int = 8,
        activation_bits: int = 8,
        activation_quantize_type: str = "abs_max",
        weight_quantize_type: str = "abs_max",
        window_size: int = 10000,
        moving_rate: float = 0.9,
    ) -> None:
        for what, kind in (("activation", activation_quantize_type), ("weight", weight_quantize_type)):
            if kind not in _KINDS:
                raise ValueError(
                    f"Unknown {what}_quantize_type: {kind!r}. It can only be one of {', '.join(_KINDS)}"
                )
        self.weight_bits, self.activation_bits = weight_bits, activation_bits
        self.activation_quantize_type = activation_quantize_type
        self.weight_quantize_type = weight_quantize_type
        self.window_size, self.moving_rate = window_size, moving_rate

    def training_transpile(
        self, program: Program | None = None, startup_program: Program | None = None
    ) -> None:
        """Quantize the inputs in `program`, for training or for tests, before or after `minimize`.

        Initial scales are added to `startup_program`; None stands for the default programs. Transpile the program for
        tests (`Program.clone`) as well, with the same startup program.
        """
        program = program or default_main_program()
        with program_guard(program, startup_program or default_startup_program()):
            self._counter: Variable | None = None
            if "range_abs_max" in (self.activation_quantize_type, self.weight_quantize_type):
                self._counter = autoincreased_step_counter()
            for block in program.blocks:
                rounded: dict[str, str] = {}
                for op in list(block.ops):
                    if op.type in _OPERATORS:
                        self._round_inputs(block, op, rounded)
                    elif op.type.removesuffix("_grad") in _OPERATORS:
                        _rename_inputs(op, rounded)

    def freeze_program(self, program: Program, place: Any, scope: Scope | None = None) -> None:
        """Convert a transpiled program for inference, in place, to compute with integers.

        Parameters in `scope` (None: the global one) become integers, stored as floats; results of convolutions and
        products are scaled. Raises ValueError for operators without a quantized parameter, or without its value.
        """
        scope = scope or global_scope()
        scales: dict[str, float] = {}
        replaced: dict[str, str] = {}
        for block in program.blocks:
            self._freeze_block(block, place, scope, scales, replaced)
        _remove_unused(program)

    def convert_to_int8(self, program: Program, place: Any, scope: Scope | None = None) -> None:
        """Store the parameters of a frozen program as int8, under the names `NAME.int8`, for programs that run
        elsewhere. `scope` as for `freeze_program`.
        """
        scope = scope or global_scope()
        converted: dict[str, str] = {}
        for block in program.blocks:
            for op in block.ops:
                if op.type not in _OPERATORS:
                    continue
                for name in op.input_arg_names:
                    var = block._var_recursive(name)
                    if not var.persistable or var.dtype == VarType.INT8:
                        continue
                    if name not in converted:
                        converted[name] = _store_int8(program, var, place, scope)
                _rename_inputs(op, converted)
        _remove_unused(program)

    def _round_inputs(self, block: Block, op: Operator, rounded: dict[str, str]) -> None:
        index = op.idx  # as in Fluid, operators for the second input are inserted before those for the first
        for name in op.input_arg_names:
            if name not in rounded:
                rounded[name] = self._round(block, index, block._var_recursive(name))
        _rename_inputs(op, rounded)

    def _round(self, block: Block, index: int, var: Variable) -> str:
        """Insert quantization and dequantization of `var` at `index`; returns the name of the result."""
        bits = self.weight_bits if var.persistable else self.activation_bits
        kind = self.weight_quantize_type if var.persistable else self.activation_quantize_type
        quantized = _like(block, var, _quantized_var_name(var.name))
        inputs, outputs, attrs = {"X": var}, {"Out": quantized}, {"bit_length": bits}
        if kind == "abs_max":
            scale = block.create_var(name=_quantized_scale_name(var.name), shape=[1], dtype=var.dtype)
        else:
            moving = self._window if kind == "range_abs_max" else self._average
            scale = moving(var, inputs, outputs, attrs)
            inputs["InScale"] = scale
        outputs["OutScale"] = scale
        block._insert_op(index, f"fake_quantize_{kind}", inputs, outputs, attrs)
        back = _like(block, var, _dequantized_var_name(quantized.name))
        inputs, outputs = {"X": quantized, "Scale": scale}, {"Out": back}
        block._insert_op(
            index + 1, "fake_dequantize_max_abs", inputs, outputs, {"max_range": float(_steps(bits))}
        )
        return back.name

    def _window(self, var: Variable, inputs: Any, outputs: Any, attrs: Any) -> Variable:
        scale = _scale(var)
        outputs["OutScales"] = _held("scales", [self.window_size], var, 0.0)
        inputs["Iter"] = self._counter
        attrs.update(window_size=self.window_size, is_test=False)
        return scale

    def _average(self, var: Variable, inputs: Any, outputs: Any, attrs: Any) -> Variable:
        for slot in ("State", "Accum"):
            inputs[f"In{slot}"] = outputs[f"Out{slot}"] = _held(slot.lower(), [1], var, 1.0)
        attrs.update(moving_rate=self.moving_rate, is_test=False)
        return _scale(var)

    def _freeze_block(
        self, block: Block, place: Any, scope: Scope, scales: dict[str, float], replaced: dict[str, str]
    ) -> None:
        """Freeze a block. `scales`: of parameters frozen already; `replaced`: variables' new names, by the old ones."""
        activations: dict[str, str] = {}
        for op in list(block.ops):
            if op.type in transform.QUANTIZING:
                _rename_inputs(op, replaced)
                (source,), (quantized,) = op.input("X"), op.output("Out")
                if not block._var_recursive(source).persistable:
                    (activations[quantized],) = op.output("OutScale")
                    continue
                if source not in scales:
                    scales[source] = self._freeze_weight(op, source, place, scope)
                replaced[quantized] = source
                block._remove_op(op.idx)
            elif op.type in transform.DEQUANTIZING:
                (quantized,), (back,) = op.input("X"), op.output("Out")
                replaced[back] = replaced.get(quantized, quantized)
                block._remove_op(op.idx)
            else:
                _rename_inputs(op, replaced)
                if op.type in _OPERATORS:
                    (result,) = op.output_arg_names
                    replaced[result] = self._scale_result(block, op, scales, activations)

    def _freeze_weight(self, op: Operator, name: str, place: Any, scope: Scope) -> float:
        """Convert a parameter in the scope to integers; returns its scale."""
        weight = transform.read(scope, name)
        if op.type == "fake_quantize_abs_max":
            scale = float(np.abs(weight).max())
        else:
            scale = float(transform.read(scope, op.output("OutScale")[0]).reshape(-1)[0])
        frozen = quant(np.clip(weight, -scale, scale), scale, self.weight_bits).astype(weight.dtype)
        scope.var(name).get_tensor().set(frozen, place)
        return scale

    def _scale_result(
        self, block: Block, op: Operator, scales: dict[str, float], activations: dict[str, str]
    ) -> str:
        """Insert the dequantization of the result of `op`; returns the name of its output."""
        names = op.input_arg_names
        weight = next((scales[name] for name in names if name in scales), None)
        activation = next((activations[name] for name in names if name in activations), None)
        if weight is None or activation is None:
            raise ValueError(f"operator {op.type} on {names} has no quantized parameter and input")
        result = block._var_recursive(op.output_arg_names[0])
        scaled = _like(block, result, _dequantized_var_name(result.name))
        inputs = {"X": result, "Scale": block._var_recursive(activation)}
        steps = _steps(self.weight_bits) * _steps(self.activation_bits)
        attrs = {"max_range": steps / weight}
        block._insert_op(op.idx + 1, "fake_dequantize_max_abs", inputs, {"Out": scaled}, attrs)
        return scaled.name


def _quantized_var_name(var_name: str) -> str:
    return f"{var_name}.quantized"


def _dequantized_var_name(var_name: str) -> str:
    return f"{var_name}.dequantized"


def _quantized_scale_name(var_name: str) -> str:
    return f"{var_name}.scale"


def _original_var_name(var_name: str) -> str:
    """`var_name` without the suffixes of quantized values and scales."""
    for suffix in (".quantized.dequantized", ".quantized", ".dequantized", ".scale"):
        if var_name.endswith(suffix):
            return var_name.removesuffix(suffix)
    return var_name


def _steps(bits: int) -> int:
    """The largest signed integer of `bits` bits."""
    return int(2 ** (bits - 1) - 1)


def _like(block: Block, var: Variable, name: str) -> Variable:
    return block.create_var(name=name, type=var.type, shape=var.shape, dtype=var.dtype)


def _scale(var: Variable) -> Variable:
    """The persistable scale of `var`."""
    attr = ParamAttr(name=_quantized_scale_name(var.name), initializer=Constant(0.001), trainable=False)
    return LayerHelper("quantize").create_parameter(attr, shape=[1], dtype=var.dtype)


def _held(kind: str, shape: list[int], var: Variable, value: float) -> Variable:
    """A new persistable variable, initialised in the startup program."""
    helper = LayerHelper("quantize")
    var_held = helper.create_global_variable(
        name=helper._new_name(kind), persistable=True, dtype=var.dtype, shape=shape
    )
    helper.set_variable_initializer(var_held, Constant(value))
    return var_held


def _rename_inputs(op: Operator, names: dict[str, str]) -> None:
    for name in op.input_arg_names:
        if name in names:
            op._rename_input(name, names[name])


def _store_int8(program: Program, var: Variable, place: Any, scope: Scope) -> str:
    made = program.global_block().create_parameter(
        name=f"{var.name}.int8", type=var.type, shape=var.shape, dtype=VarType.INT8
    )
    scope.var(made.name).get_tensor().set(transform.read(scope, var.name).astype(np.int8), place)
    return made.name


def _remove_unused(program: Program) -> None:
    """Remove variables that no operator reads or writes."""
    used = {
        name
        for block in program.blocks
        for op in block.ops
        for name in (*op.input_arg_names, *op.output_arg_names)
    }
    for block in program.blocks:
        for name in [name for name in block.vars if name not in used]:
            block._remove_var(name)
