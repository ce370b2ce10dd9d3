"""Operators that draw random numbers, for a seed those of Paddle 1.8 on the CPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._ext import rng
from ...base.dtypes import VarType, to_numpy, to_vartype
from ...base.seeds import fresh_seed as fresh_seed
from ...base.seeds import is_reseeded as is_reseeded
from ...base.seeds import reseed as reseed
from ...base.seeds import stream_of as stream_of
from ...base.sizes.shapes import with_size_of
from ..grad_pairs import Kernel
from ..infer import actual_shape
from ..registry import Attr, Dispatch, Effects, OpDef, OpView, Sequences, register
from .fill import batch_size_like, infer_constant


def _is_double(dtype: int) -> bool:
    return to_vartype(dtype) == VarType.FP64


def _uniform(
    xp: Any,
    size: list[int],
    min: float,
    max: float,
    seed: int,
    diag_num: int,
    diag_step: int,
    diag_val: float,
    dtype: int,
) -> Any:
    values = rng.uniform(stream_of(seed), min, max, math.prod(size), _is_double(dtype))
    if diag_num > 0:
        places = np.arange(diag_num) * (diag_step + 1)
        if places[-1] >= values.size:
            raise ValueError(
                f"diag_num {diag_num} with diag_step {diag_step} reaches beyond the {values.size} elements"
            )
        values[places] = diag_val
    return xp.asarray(values.reshape(size), dtype=to_numpy(dtype))


def _gaussian(xp: Any, size: list[int], mean: float, std: float, seed: int, dtype: int) -> Any:
    values = rng.normal(stream_of(seed), mean, std, math.prod(size), _is_double(dtype))
    return xp.asarray(np.asarray(values).reshape(size), dtype=to_numpy(dtype))


def _randint(xp: Any, size: list[int], low: int, high: int, seed: int, dtype: int) -> Any:
    values = rng.randint(stream_of(seed), low, high, math.prod(size))
    return xp.asarray(np.asarray(values).reshape(size), dtype=to_numpy(dtype))


def _of_shape(draw: Kernel) -> Kernel:
    """The kernel of operators that take the shape of the result, which `draw` draws, as an attribute or tensors."""

    def kernel(xp: Any, ShapeTensor: Any, ShapeTensorList: list[Any], shape: list[int], **attrs: Any) -> Any:
        return draw(xp, actual_shape(shape, ShapeTensor, ShapeTensorList), **attrs)

    return kernel


def _of_batch(draw: Kernel) -> Kernel:
    """The kernel of operators that take one dimension from Input."""

    def kernel(
        xp: Any, Input: Any, shape: list[int], input_dim_idx: int, output_dim_idx: int, **attrs: Any
    ) -> Any:
        return draw(xp, with_size_of(shape, Input.shape, input_dim_idx, output_dim_idx), **attrs)

    return kernel


def _like(op: OpView) -> None:
    op.set("Out", batch_size_like(op), to_vartype(op.attr("dtype")))


_SHAPED = ("ShapeTensor?", "ShapeTensorList*?")
_DTYPE = {"dtype": int(VarType.FP32)}
_LIKE = {"shape": [], "input_dim_idx": 0, "output_dim_idx": 0}
_UNIFORM = {"min": -1.0, "max": 1.0, "seed": 0, "diag_num": 0, "diag_step": 0, "diag_val": 1.0, **_DTYPE}
_GAUSSIAN = {"mean": 0.0, "std": 1.0, "seed": 0, **_DTYPE}


register(
    OpDef(
        "uniform_random",
        inputs=_SHAPED,
        attrs={"shape": Attr([], "LONGS"), **_UNIFORM},
        infer=infer_constant,
        kernel=_of_shape(_uniform),
        dispatch=Dispatch(cuda="random.uniform_random"),
        sequences=Sequences(source=None),
        effects=Effects(random=True, numbered=False),
        doc="Uniform random numbers in [min, max); `diag_num` of them, every `diag_step` + 1, become `diag_val`.",
    )
)


register(
    OpDef(
        "uniform_random_batch_size_like",
        inputs=("Input#",),
        attrs={**_LIKE, **_UNIFORM},
        infer=_like,
        kernel=_of_batch(_uniform),
        dispatch=Dispatch(cuda="random.uniform_random_like"),
        sequences=Sequences(source=None),
        effects=Effects(random=True),
        doc="As uniform_random, with one dimension taken from Input.",
    )
)


register(
    OpDef(
        "gaussian_random",
        inputs=_SHAPED,
        attrs={"shape": Attr([], "LONGS"), **_GAUSSIAN},
        infer=infer_constant,
        kernel=_of_shape(_gaussian),
        dispatch=Dispatch(cuda="random.gaussian_random"),
        sequences=Sequences(source=None),
        effects=Effects(random=True, numbered=False),
        doc="Numbers from the normal distribution with the given mean and standard deviation.",
    )
)


register(
    OpDef(
        "gaussian_random_batch_size_like",
        inputs=("Input#",),
        attrs={**_LIKE, **_GAUSSIAN},
        infer=_like,
        kernel=_of_batch(_gaussian),
        dispatch=Dispatch(cuda="random.gaussian_random_like"),
        sequences=Sequences(source=None),
        effects=Effects(random=True),
        doc="As gaussian_random, with one dimension taken from Input.",
    )
)


def _truncated(xp: Any, shape: list[int], mean: float, std: float, seed: int, dtype: int) -> Any:
    values = rng.truncated_normal(stream_of(seed), mean, std, math.prod(shape))
    return xp.asarray(np.asarray(values).reshape([int(n) for n in shape]), dtype=to_numpy(dtype))


register(
    OpDef(
        "truncated_gaussian_random",
        attrs={"shape": [], **_GAUSSIAN},
        infer=lambda op: op.set("Out", op.attr("shape"), to_vartype(op.attr("dtype"))),
        kernel=_truncated,
        dispatch=Dispatch(cuda="random.truncated_gaussian_random"),
        effects=Effects(random=True),
        doc="Normal numbers, but only those within two standard deviations of the mean.",
    )
)


def _randint_infer(op: OpView) -> None:
    if op.attr("low") >= op.attr("high"):
        raise op.fail(f"low must be below high, got {op.attr('low')} and {op.attr('high')}")
    infer_constant(op)


register(
    OpDef(
        "randint",
        inputs=_SHAPED,
        attrs={"shape": Attr([], "LONGS"), "low": 0, "high": 0, "seed": 0, "dtype": int(VarType.INT64)},
        infer=_randint_infer,
        kernel=_of_shape(_randint),
        dispatch=Dispatch(cuda="random.randint"),
        sequences=Sequences(source=None),
        effects=Effects(random=True),
        doc="Integers drawn evenly from low to high - 1.",
    )
)


register(
    OpDef(
        "seed",
        attrs={"seed": 0},
        infer=lambda op: op.set("Out", (1,), VarType.INT32),
        kernel=lambda xp, seed: xp.asarray([seed or fresh_seed()], dtype="int32"),
        no_grad=("Out",),
        effects=Effects(random=True),
        doc="The seed that several random operators share, one int32: `seed`, or a new one in each run if that is 0.",
    )
)
