"""Operators that draw random numbers, orders, choices and crops, for a seed those of Paddle 1.8 on the CPU."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._ext import rng
from ...base.dtypes import VarType, to_numpy, to_vartype
from ...base.seeds import fresh_seed as fresh_seed
from ...base.seeds import is_reseeded as is_reseeded
from ...base.seeds import reseed as reseed
from ...base.seeds import stream_of as stream_of
from ...base.sizes import with_size_of
from ..grad_pairs import Kernel
from ..host_fallback import hosted
from ..infer import given_numbers
from ..registry import Attr, Dispatch, Effects, OpView, Sequences, register
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
        return draw(xp, given_numbers(shape, ShapeTensor, ShapeTensorList), **attrs)

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


for _type, _kind, _draw, _attrs, _doc in (
    (
        "uniform_random",
        "uniform",
        _uniform,
        _UNIFORM,
        "Uniform random numbers in [min, max); `diag_num` of them, every `diag_step` + 1, become `diag_val`.",
    ),
    (
        "gaussian_random",
        "normal",
        _gaussian,
        _GAUSSIAN,
        "Numbers from the normal distribution with the given mean and standard deviation.",
    ),
):
    register(
        _type,
        inputs=_SHAPED,
        attrs={"shape": Attr([], "LONGS"), **_attrs},
        infer=infer_constant,
        kernel=_of_shape(_draw),
        dispatch=Dispatch(cuda=f"random.of_shape:{_kind}"),
        sequences=Sequences(source=None),
        effects=Effects(random=True, numbered=False),
        doc=_doc,
    )
    register(
        f"{_type}_batch_size_like",
        inputs=("Input#",),
        attrs={**_LIKE, **_attrs},
        infer=_like,
        kernel=_of_batch(_draw),
        dispatch=Dispatch(cuda=f"random.of_batch:{_kind}"),
        sequences=Sequences(source=None),
        effects=Effects(random=True),
        doc=f"As {_type}, with one dimension taken from Input.",
    )


def _truncated(xp: Any, shape: list[int], mean: float, std: float, seed: int, dtype: int) -> Any:
    values = rng.truncated_normal(stream_of(seed), mean, std, math.prod(shape))
    return xp.asarray(np.asarray(values).reshape([int(n) for n in shape]), dtype=to_numpy(dtype))


register(
    "truncated_gaussian_random",
    attrs={"shape": [], **_GAUSSIAN},
    infer=lambda op: op.set("Out", op.attr("shape"), to_vartype(op.attr("dtype"))),
    kernel=_truncated,
    dispatch=Dispatch(cuda="random.of_shape:truncated"),
    effects=Effects(random=True),
    doc="Normal numbers, but only those within two standard deviations of the mean.",
)


def _randint_infer(op: OpView) -> None:
    if op.attr("low") >= op.attr("high"):
        raise op.fail(f"low must be below high, got {op.attr('low')} and {op.attr('high')}")
    infer_constant(op)


register(
    "randint",
    inputs=_SHAPED,
    attrs={"shape": Attr([], "LONGS"), "low": 0, "high": 0, "seed": 0, "dtype": int(VarType.INT64)},
    infer=_randint_infer,
    kernel=_of_shape(_randint),
    dispatch=Dispatch(cuda="random.of_shape:integers"),
    sequences=Sequences(source=None),
    effects=Effects(random=True),
    doc="Integers drawn evenly from low to high - 1.",
)


register(
    "seed",
    attrs={"seed": 0},
    infer=lambda op: op.set("Out", (1,), VarType.INT32),
    kernel=lambda xp, seed: xp.asarray([seed or fresh_seed()], dtype="int32"),
    no_grad=("Out",),
    effects=Effects(random=True),
    doc="The seed that several random operators share, one int32: `seed`, or a new one in each run if that is 0.",
)

_WORD = 2**32
_PRIME = 2**31 - 1


def _c_rand(seed: int) -> Iterator[int]:
    """The numbers of the C library's `rand` after `srand(seed)`: an additive feedback generator (Knuth)."""
    state = [seed % _WORD or 1]
    for _ in range(30):
        state.append(16807 * state[-1] % _PRIME)
    state += state[:3]
    for k in range(34, 344):
        state.append((state[k - 3] + state[k - 31]) % _WORD)
    recent = state[-31:]
    while True:
        recent.append((recent[-3] + recent[-31]) % _WORD)
        del recent[0]
        yield recent[-1] >> 1


def _randperm(xp: Any, n: int, dtype: int, seed: int) -> Any:
    order = list(range(n))
    draw = _c_rand(seed or fresh_seed())
    for k in range(1, n):
        other = next(draw) % (k + 1)
        order[k], order[other] = order[other], order[k]
    return xp.asarray(order, dtype=to_numpy(dtype))


def _infer_randperm(op: OpView) -> None:
    if op.attr("n") < 1:
        raise op.fail(f"n must be positive, got {op.attr('n')}")
    op.set("Out", (op.attr("n"),), to_vartype(op.attr("dtype")))


register(
    "randperm",
    attrs={"n": -1, "dtype": int(VarType.INT64), "seed": 0},
    infer=_infer_randperm,
    kernel=_randperm,
    effects=Effects(random=True),
    doc="The numbers from 0 to n - 1 in random order.",
)


def _sampling_id(xp: Any, X: Any, min: float, max: float, seed: int) -> Any:
    drawn = np.asarray(rng.uniform(stream_of(seed), min, max, len(X), False)).reshape(-1, 1)
    below = xp.asarray(drawn) >= xp.cumsum(X, axis=1)
    return xp.minimum(below.sum(axis=1), X.shape[1] - 1).astype("int64")


def _infer_sampling_id(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) != 2:
        raise op.fail(f"X must be [rows, classes], got shape {list(shape)}")
    op.set("Out", (shape[0],), VarType.INT64)


register(
    "sampling_id",
    inputs=("X",),
    attrs={"min": 0.0, "max": 1.0, "seed": 0},
    infer=_infer_sampling_id,
    kernel=_sampling_id,
    no_grad=("Out",),
    effects=Effects(random=True),
    doc="A class for each row of probabilities, drawn by them.",
)

_FACTOR, _RANDOM_CROP_PRIME = 48271, 2**31 - 1
"""Factor and modulus of Fluid's random generator here, `std::minstd_rand`."""


def _states(seed: int, count: int) -> np.ndarray:
    """The first `count` numbers that the generator gives."""
    powers, step = np.ones(1, np.int64), _FACTOR
    while len(powers) < count:
        powers = np.concatenate([powers, powers * step % _RANDOM_CROP_PRIME])
        step = step * step % _RANDOM_CROP_PRIME
    first = (seed % 2**64 % _RANDOM_CROP_PRIME or 1) * _FACTOR % _RANDOM_CROP_PRIME
    return powers[:count] * first % _RANDOM_CROP_PRIME


def _place(state: int, spans: tuple[int, ...]) -> list[int]:
    """A number below each of `spans`, drawn from the stream at `state` by rejection."""
    result = []
    for span in spans:
        scale = (_RANDOM_CROP_PRIME - 2) // span
        while (state - 1) // scale >= span:
            state = state * _FACTOR % _RANDOM_CROP_PRIME
        result.append((state - 1) // scale)
        state = state * _FACTOR % _RANDOM_CROP_PRIME
    return result


@hosted
def _crop(xp: Any, X: Any, Seed: Any, shape: Any, startup_seed: int) -> Any:
    lead, whole = X.shape[: X.ndim - len(shape)], X.shape[X.ndim - len(shape) :]
    flat = X.reshape(-1, *whole)
    made = np.empty((len(flat), *shape), X.dtype)
    spans = tuple(n - m + 1 for n, m in zip(whole, shape, strict=True))
    states = _states(
        startup_seed if Seed is None else int(Seed.reshape(-1)[0]), len(flat) * len(spans) + 1
    ).tolist()
    for part, source, state in zip(made, flat, states[:: len(spans)], strict=False):
        begin = _place(state, spans)
        part[...] = source[tuple(slice(b, b + m) for b, m in zip(begin, shape, strict=True))]
    return made.reshape(*lead, *shape), np.array(states[-1:], np.int64)


def _infer_crop(op: OpView) -> None:
    whole, cut = op.shape("X"), list(op.attr("shape"))
    if not 0 < len(cut) <= len(whole):
        raise op.fail(f"shape must be that of 1 to {len(whole)} dimensions of X, got {cut}")
    lead = len(whole) - len(cut)
    if any(0 <= n < m or m < 1 for n, m in zip(whole[lead:], cut, strict=True)):
        raise op.fail(f"shape must fit into {list(whole[lead:])}, got {cut}")
    op.set("Out", (*whole[:lead], *cut), op.dtype("X"))
    op.set("SeedOut", (1,), VarType.INT64)


register(
    "random_crop",
    inputs=("X", "Seed?"),
    outputs=("Out", "SeedOut?"),
    attrs={"shape": [], "startup_seed": 0},
    infer=_infer_crop,
    kernel=_crop,
    no_grad=("Out", "SeedOut"),
    sequences=Sequences(source=None),
    effects=Effects(random=True, uninitialized=("Seed",)),
    doc="A part of the given shape of each element along the leading dimensions; for a seed at Fluid's places.",
)
