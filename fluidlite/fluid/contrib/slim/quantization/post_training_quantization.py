"""Quantization of saved models: after training with samples, and of parameters alone (`WeightQuantization`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .....base.dtypes import FLOATS, to_vartype
from .....base.place import CPUPlace
from .....executor import Executor, Scope, global_scope, scope_guard
from .....framework import Operator, Program
from .....framework.serialization.ir_graph import IrGraph
from .....reader import DataLoader
from .... import core, io
from . import transform
from .freezing import WATCHED, AddQuantDequantPass, QuantizationFreezePass
from .transform import QuantizationTransformPass

__all__ = ["PostTrainingQuantization", "WeightQuantization"]

_BINS = 2048
_FIRST = 0.7


def kl_threshold(magnitudes: np.ndarray, steps: int) -> float:
    """The threshold with which `steps` integers tell most about the histogram of `magnitudes` (Migacz 2017).

    Candidates are the ends of the upper bins of 2048; magnitudes beyond count with the last bin.
    """
    magnitudes = magnitudes.astype(float)
    counts, edges = np.histogram(
        magnitudes, bins=_BINS, range=(float(magnitudes.min()), float(magnitudes.max()))
    )
    first = int((_BINS - 1) * _FIRST)
    best, lowest = None, 0.0
    for end in range(first, _BINS):
        if counts[end - 1] == 0:
            continue
        reference = counts[:end].astype(float)
        reference[-1] += counts[end:].sum()
        divergence = _divergence(reference, _quantized(counts[:end], reference, steps))
        if best is None or lowest == 0 or divergence < lowest:
            best, lowest = end, divergence
    if best is None:
        held = np.flatnonzero(counts[: first + 1])
        best = int(held[-1]) if held.size else 0
    return float((best + 0.5) * (edges[1] - edges[0]))


def _quantized(counts: np.ndarray, reference: np.ndarray, steps: int) -> np.ndarray:
    """`counts` summed in `steps` groups of bins, each spread evenly over its bins that are not empty in `reference`."""
    width = len(counts) // steps
    group = np.minimum(np.arange(len(counts)) // width, steps - 1)
    total = np.bincount(group, counts, steps)
    present = np.bincount(group, reference > 0, steps)
    mean = np.divide(total, present, out=np.zeros(steps), where=present > 0)
    return np.where(reference > 0, mean[group], 0.0)


def _divergence(reference: np.ndarray, candidate: np.ndarray) -> float:
    held = (reference > 0) & (candidate > 0)
    p, q = reference[held], candidate[held]
    total = reference.sum()
    return float((p * np.log(candidate.sum() * p / (total * q))).sum() / total)


_STEPS = 255
_WITH_WEIGHTS = QuantizationTransformPass._supported_quantizable_op_type
_SUPPORTED = [*_WITH_WEIGHTS, *AddQuantDequantPass._supported_quantizable_op_type]


class PostTrainingQuantization:
    """Quantizes a saved inference model, with scales calibrated on samples
    (`fluid.contrib.slim.quantization.PostTrainingQuantization`).

    Args:
        executor: runs the model.
        scope: the scope to load it into; the global scope if None.
        model_dir, model_filename, params_filename: as for `fluid.io.load_inference_model`.
        batch_generator: a function that returns an iterable of batches; or
        sample_generator: a function that returns one of samples, which are batched by `batch_size`.
        batch_nums: the number of batches used; all if None.
        algo: 'KL' clips magnitudes at the least Kullback-Leibler divergence, 'abs_max' takes the largest magnitude,
            'min_max' only stores the least and the largest value in attributes.
        quantizable_op_type: the types of operators.
        is_full_quantize: True for all supported types.
        activation_bits, weight_bits, activation_quantize_type, weight_quantize_type: see `QuantizationTransformPass`.
        is_use_cache_file, cache_dir: without effect: samples are held in memory.

    Raises AssertionError for missing arguments, an unknown `algo` or other types of operators.
    """

    def __init__(
        self,
        executor: Executor | None = None,
        scope: Scope | None = None,
        model_dir: str | None = None,
        model_filename: str | None = None,
        params_filename: str | None = None,
        batch_generator: Callable[[], Any] | None = None,
        sample_generator: Callable[[], Any] | None = None,
        batch_size: int = 10,
        batch_nums: int | None = None,
        algo: str = "KL",
        quantizable_op_type: Sequence[str] = ("conv2d", "depthwise_conv2d", "mul"),
        is_full_quantize: bool = False,
        activation_bits: int = 8,
        weight_bits: int = 8,
        activation_quantize_type: str = "range_abs_max",
        weight_quantize_type: str = "channel_wise_abs_max",
        is_use_cache_file: bool = False,
        cache_dir: str = "./temp_post_training",
    ) -> None:
        if executor is None:
            raise AssertionError("The executor cannot be None.")
        if model_dir is None:
            raise AssertionError("The model_dir cannot be None.")
        if (batch_generator is None) == (sample_generator is None):
            raise AssertionError("One of batch_generator and sample_generator must be given, and not both.")
        if algo not in ("KL", "abs_max", "min_max"):
            raise AssertionError("The algo should be KL, abs_max or min_max.")
        self._quantizable_op_type = list(_SUPPORTED if is_full_quantize else quantizable_op_type)
        transform.check_types(self._quantizable_op_type, _SUPPORTED)
        for what, kind, kinds in (
            ("activation", activation_quantize_type, ("range_abs_max", "moving_average_abs_max", "abs_max")),
            ("weight", weight_quantize_type, ("abs_max", "channel_wise_abs_max")),
        ):
            if kind not in kinds:
                raise AssertionError(
                    f"The {what}_quantize_type ({kind}) should be one of {', '.join(kinds)}."
                )
        self._executor, self._scope = executor, scope or global_scope()
        self._model = model_dir, model_filename, params_filename
        self._batch_generator, self._sample_generator = batch_generator, sample_generator
        self._batch_size, self._batch_nums = batch_size, batch_nums
        self._algo = algo
        self._kinds: dict[str, Any] = {
            "weight_bits": weight_bits,
            "activation_bits": activation_bits,
            "weight_quantize_type": weight_quantize_type,
        }
        self._activation_quantize_type = activation_quantize_type
        self._place = CPUPlace()

    def quantize(self) -> Program:
        """Load the model, run it on the samples, and return it quantized."""
        directory, model_file, params_file = self._model
        with scope_guard(self._scope):
            program, self._feeds, self._fetches = io.load_inference_model(
                directory, self._executor, model_filename=model_file, params_filename=params_file
            )
            self._program = program
            self._values = self._summed_up(self._observed())
            if self._algo == "min_max":
                self._note_ranges()
            else:
                self._program = self._quantized()
                self._note_outputs()
        for op in self._program.global_block().ops:
            if op.type in self._quantizable_op_type:
                op._set_attr("quantization_type", f"post_{self._algo.lower()}")
        return self._program

    def save_quantized_model(
        self, save_model_path: str, model_filename: str | None = None, params_filename: str | None = None
    ) -> None:
        """Save the quantized model by `fluid.io.save_inference_model`."""
        block = self._program.global_block()
        with scope_guard(self._scope):
            io.save_inference_model(
                save_model_path,
                self._feeds,
                [block.var(var.name) for var in self._fetches],
                self._executor,
                main_program=self._program,
                model_filename=model_filename,
                params_filename=params_filename,
            )

    def _observed(self) -> list[str]:
        """The variables whose magnitudes are observed."""
        block = self._program.global_block()
        observed: dict[str, None] = {}
        for op in block.ops:
            names: list[str] = []
            if op.type in self._quantizable_op_type:
                names += [name for slot in transform.INPUTS[op.type] for name in op.input(slot)]
            if op.type in self._quantizable_op_type or op.type in WATCHED:
                names += op.output(transform.OUTPUTS[op.type])
            observed.update(dict.fromkeys(names))
        return [
            name for name in observed if not block.var(name).persistable and block.var(name).dtype in FLOATS
        ]

    def _batches(self) -> Iterator[Any]:
        feeds = [self._program.global_block().var(name) for name in self._feeds]
        loader = DataLoader.from_generator(feed_list=feeds, capacity=4, iterable=True)
        if self._sample_generator is not None:
            loader.set_sample_generator(
                self._sample_generator, batch_size=self._batch_size, drop_last=True, places=self._place
            )
        elif self._batch_generator is not None:
            loader.set_batch_generator(self._batch_generator, places=self._place)
        for count, batch in enumerate(loader()):
            if self._batch_nums is not None and count >= self._batch_nums:
                return
            yield batch

    def _summed_up(self, names: list[str]) -> dict[str, Any]:
        """The threshold of each variable, or its least and largest value for 'min_max'."""
        held: dict[str, list[Any]] = {name: [] for name in names}
        for batch in self._batches():
            for name, value in zip(names, self._executor.run(self._program, batch, names), strict=True):
                if self._algo == "KL":
                    held[name].append(np.abs(value).reshape(-1))
                elif self._algo == "abs_max":
                    held[name].append(float(np.abs(value).max()))
                else:
                    held[name].append((float(value.min()), float(value.max())))
        if names and not held[names[0]]:
            raise ValueError("the generator yields no batch: scales need samples")
        if self._algo == "KL":
            return {name: kl_threshold(np.concatenate(parts), _STEPS) for name, parts in held.items()}
        if self._algo == "abs_max":
            return {name: max(parts) for name, parts in held.items()}
        return {name: (min(a for a, _ in parts), max(b for _, b in parts)) for name, parts in held.items()}

    def _quantized(self) -> Program:
        graph = IrGraph(core.Graph(self._program.desc), for_test=True)
        chosen = self._quantizable_op_type
        QuantizationTransformPass(
            self._scope,
            self._place,
            activation_quantize_type=self._activation_quantize_type,
            quantizable_op_type=[op_type for op_type in chosen if op_type in _WITH_WEIGHTS],
            **self._kinds,
        ).apply(graph)
        AddQuantDequantPass(
            self._scope,
            self._place,
            quantizable_op_type=[
                op_type for op_type in chosen if op_type in AddQuantDequantPass._supported_quantizable_op_type
            ],
        ).apply(graph)
        for name, threshold in self._values.items():
            for scale in (f"{name}.scale", f"{name}.quant_dequant.scale"):
                if self._scope.find_var(scale) is not None:
                    self._scope.var(scale).get_tensor().set(np.array([threshold], "float32"), self._place)
        QuantizationFreezePass(self._scope, self._place, **self._kinds).apply(graph)
        return graph.to_program()

    def _note_ranges(self) -> None:
        """Store the least and largest values of operators' inputs and outputs in attributes."""
        values = {**self._values, **self._weight_ranges()}
        for op in self._program.global_block().ops:
            if op.type in self._quantizable_op_type:
                for name in (name for slot in transform.INPUTS[op.type] for name in op.input(slot)):
                    if name in values:
                        op._set_attr(f"{name}.min", values[name][0])
                        op._set_attr(f"{name}.max", values[name][1])
            for name in op.output(transform.OUTPUTS[op.type]) if op.type in WATCHED else ():
                if name in values:
                    op._set_attr("out_min", values[name][0])
                    op._set_attr("out_max", values[name][1])

    def _weight_ranges(self) -> dict[str, Any]:
        """The least and largest value of each quantized parameter, or those of its channels."""
        ranges = {}
        for op in self._program.global_block().ops:
            for slot in transform.INPUTS[op.type] if op.type in self._quantizable_op_type else ():
                for name in op.input(slot):
                    if self._program.global_block().var(name).persistable:
                        value = transform.read(self._scope, name)
                        if self._kinds["weight_quantize_type"] == "channel_wise_abs_max":
                            value = value.reshape(len(value), -1)
                            ranges[name] = value.min(1).tolist(), value.max(1).tolist()
                        else:
                            ranges[name] = float(value.min()), float(value.max())
        return ranges

    def _note_outputs(self) -> None:
        for op in self._program.global_block().ops:
            if op.type in WATCHED:
                for name in op.output(transform.OUTPUTS[op.type]):
                    if name in self._values:
                        op._set_attr("out_threshold", float(np.float32(self._values[name])))


_WEIGHT_BINS = 5000
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
    counts, edges = np.histogram(magnitudes, bins=_WEIGHT_BINS, range=(0.0, float(magnitudes.max())))
    below = np.cumsum(counts) / counts.sum()
    return np.asarray(edges[int(np.argmax(below > 1 - rate)) + 1])


def _rounded(weight: np.ndarray, scale: np.ndarray, bits: int) -> np.ndarray:
    largest = 2 ** (bits - 1) - 1
    return np.clip(np.round(weight / scale), -largest - 1, largest)
