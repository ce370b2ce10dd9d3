"""Helpers for the tests of kernels: calls, comparisons, numeric gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from fluidlite._ext import kernels

TYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8}
TOLERANCE = {"f32": 2e-6, "f64": 1e-12}
SIZES = (0, 1, 3, 17, 1000)

# Every instruction set that this machine has is tested, not only the best.
each_target = pytest.mark.parametrize("target", kernels.targets())
each_real = pytest.mark.parametrize("kind", ("f32", "f64"))


def draw(*shape: int, kind: str = "f32", seed: int = 0, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Numbers uniform on [low, high)."""
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return np.ascontiguousarray(values, TYPES[kind])


def blank(*shape: int, kind: str = "f32") -> np.ndarray:
    """An output full of rubbish, so that elements a kernel forgets are noticed."""
    return np.full(shape, 77, TYPES[kind])


def near(got: np.ndarray, want: np.ndarray, kind: str, times: float = 1.0) -> None:
    """Compare with a tolerance in units of the type's precision."""
    bound = TOLERANCE[kind] * times
    np.testing.assert_allclose(got, want, rtol=bound, atol=bound)


def numeric(
    f: Callable[..., np.ndarray], arguments: Sequence[np.ndarray], which: int, weights: np.ndarray
) -> np.ndarray:
    """Central-difference gradient of sum(weights * f(*arguments)) in argument `which`, in double."""
    doubles = [np.array(a, np.float64) if a.dtype.kind == "f" else a for a in arguments]
    found = np.zeros_like(doubles[which])
    flat, step = doubles[which].reshape(-1), 1e-5
    for k in range(flat.size):
        kept = flat[k]
        flat[k] = kept + step
        up = (weights * f(*doubles)).sum()
        flat[k] = kept - step
        down = (weights * f(*doubles)).sum()
        flat[k] = kept
        found.reshape(-1)[k] = (up - down) / (2 * step)
    return found
