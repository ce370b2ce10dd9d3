"""`WeightQuantization`: the parameters of a saved model as integers."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from .....base.dtypes import to_vartype
from .....base.place import CPUPlace
from .....executor import Executor, Scope, scope_guard
from .....framework import Operator
from .... import io
from . import transform

_BINS = 5000
_TYPES = {8: np.int8, 16: np.int16}


class WeightQuantization:
    """Converts the parameters of a saved inference model to integers of 8 or 16 bits
    (`fluid.contrib.slim.quantization.WeightQuantization`).

    Args:
        model_dir, model_filename, params_filename: as for `fluid.io.load_inference_model`.
    """

    _supported_quantizable_op_type = ("conv2d", "depthwise_conv2d", "mul")
    _supported_weight_quantize_type = ("channel_wise_abs_max", "abs_max")

    def __init__(
        self, model_dir: str, model_filename: str | None = None, params_filename: str | None = None
    ) -> None:
        self._model_dir = model_dir
        self._model_filename = model_filename
        self._params_filename = params_filename

    def quantize_weight_to_int(
        self,
        save_model_dir: str,
        save_model_filename: str | None = None,
        save_params_filename: str | None = None,
        quantizable_op_type: Sequence[str] = ("conv2d", "mul"),
        weight_bits: int = 8,
        weight_quantize_type: str = "channel_wise_abs_max",
        generate_test_model: bool = False,
        threshold_rate: float = 0.0,
    ) -> None:
        """Save the model with integers, in the folder `quantized_model` of `save_model_dir`.

        Args:
            save_model_filename, save_params_filename: as for `fluid.io.save_inference_model`.
            quantizable_op_type: the operators whose parameters are converted: conv2d, depthwise_conv2d, mul.
            weight_bits: 8 or 16.
            weight_quantize_type: 'abs_max' for one scale, 'channel_wise_abs_max' for one of each filter or column.
            generate_test_model: also save the model with dequantized parameters, in the folder `test_model`.
            threshold_rate: with 'abs_max' the fraction of the elements that may be clipped.

        The scales are attributes `NAME_quant_scale` of the operators. Raises AssertionError for another argument.
        """
        for op_type in quantizable_op_type:
            if op_type not in self._supported_quantizable_op_type:
                raise AssertionError(f"Input error:{op_type} is not supported for weight quantization.")
        if weight_bits not in _TYPES:
            raise AssertionError("Input error: weight_bits should be 8 or 16.")
        if weight_quantize_type not in self._supported_weight_quantize_type:
            raise AssertionError(
                "Input error: weight_quantize_type should in "
                f"{list(self._supported_weight_quantize_type)}, got {weight_quantize_type!r}"
            )
        for folder in ("quantized_model", "test_model") if generate_test_model else ("quantized_model",):
            executor, place, scope = Executor(CPUPlace()), CPUPlace(), Scope()
            with scope_guard(scope):
                program, feeds, fetches = io.load_inference_model(
                    self._model_dir,
                    executor,
                    model_filename=self._model_filename,
                    params_filename=self._params_filename,
                )
                for op in program.global_block().ops:
                    if op.type not in quantizable_op_type:
                        continue
                    op._set_attr("quantization_type", f"post_weight_{weight_quantize_type}")
                    op._set_attr("quantize_weight_bits", weight_bits)
                    for name in _weights(op):
                        weight = transform.read(scope, name)
                        axis = 1 if op.type == "mul" else 0
                        if weight_quantize_type == "abs_max":
                            scale = _threshold(np.abs(weight), threshold_rate)
                        else:
                            others = tuple(k for k in range(weight.ndim) if k != axis)
                            scale = np.abs(weight).max(axis=others, keepdims=True)
                        scale = scale / (2 ** (weight_bits - 1) - 1)
                        stored = _rounded(weight, scale, weight_bits)
                        held = (
                            stored * scale if folder == "test_model" else stored.astype(_TYPES[weight_bits])
                        )
                        if folder == "test_model":
                            held = held.astype(weight.dtype)
                        else:
                            program.global_block().var(name)._dtype = to_vartype(held.dtype)
                        scope.var(name).get_tensor().set(held, place)
                        op._set_attr(f"{name}_quant_scale", np.ravel(scale).astype(float).tolist())
                io.save_inference_model(
                    os.path.join(save_model_dir, folder),
                    feeds,
                    fetches,
                    executor,
                    main_program=program,
                    model_filename=save_model_filename,
                    params_filename=save_params_filename,
                )


def _weights(op: Operator) -> list[str]:
    """The parameters among the quantized inputs of an operator."""
    names = [name for slot in transform.INPUTS[op.type] for name in op.input(slot)]
    return [name for name in names if op.block._is_persistable(name)]


def _threshold(magnitudes: np.ndarray, rate: float) -> np.ndarray:
    """The magnitude exceeded by at most the fraction `rate` of all, by a histogram."""
    if rate < 1e-10:
        return np.asarray(magnitudes.max())
    counts, edges = np.histogram(magnitudes, bins=_BINS, range=(0.0, float(magnitudes.max())))
    below = np.cumsum(counts) / counts.sum()
    return np.asarray(edges[int(np.argmax(below > 1 - rate)) + 1])


def _rounded(weight: np.ndarray, scale: np.ndarray, bits: int) -> np.ndarray:
    largest = 2 ** (bits - 1) - 1
    return np.clip(np.round(weight / scale), -largest - 1, largest)
