"""Matrix products by the kernels' own loops, and by BLAS."""

import numpy as np
import pytest

from fluidlite._ext import kernels

from .native import blank, draw, each_real, each_target, near

SIZES = [
    (1, 1, 1), (4, 8, 8), (4, 8, 64), (3, 5, 7), (5, 17, 9), (6, 31, 3), (2, 3, 100), (33, 65, 40),
    (130, 10, 300), (25, 64, 257), (37, 49, 530), (2, 40, 30), (1, 40, 300), (300, 5, 140), (35, 4, 129),
    (70, 12, 261), (67, 9, 128),
]  # fmt: skip
LARGE = [
    (33, 301, 700), (20, 1100, 130), (1030, 530, 70), (400, 200, 500), (150, 300, 800), (1100, 10, 300),
    (784, 12, 512), (1024, 7, 160), (1030, 11, 784), (520, 500, 520), (3000, 3, 70), (101, 1203, 900),
    (450, 70, 1024), (1024, 130, 300), (30, 1024, 1100), (250, 260, 600), (128, 1, 9000), (150, 2, 4000),
    (33, 3, 11000),
]  # fmt: skip
"""Products that some instruction sets leave to BLAS, blocked products of many or few rows, and products whose rows
are whole pages apart and therefore copied."""
TRANSPOSES = [(0, 0), (1, 0), (0, 1), (1, 1)]


def stored(matrix: np.ndarray, transposed: int) -> np.ndarray:
    return np.ascontiguousarray(np.swapaxes(matrix, -1, -2)) if transposed else matrix


@each_target
@each_real
@pytest.mark.parametrize("m, n, k", SIZES)
def test_products(m, n, k, kind, target):
    a, b, c = draw(m, k, kind=kind), draw(k, n, kind=kind, seed=1), draw(m, n, kind=kind, seed=2)
    product = a.astype(np.float64) @ b
    for ta, tb in TRANSPOSES:
        for alpha, beta in ((1.0, 0.0), (0.5, 0.0), (1.0, 1.0), (-2.0, 0.5)):
            out = c.copy() if beta else np.full_like(c, np.nan)
            operands = [stored(a, ta), stored(b, tb), out, None]
            kernels.call(f"gemm.{kind}", operands, [m, n, k, ta, tb], [alpha, beta], target=target)
            near(out, alpha * product + beta * c, kind, 3 + k / 4)


@each_target
@each_real
@pytest.mark.parametrize("m, n, k", LARGE)
def test_large_products(m, n, k, kind, target):
    a, b, c = draw(m, k, kind=kind), draw(k, n, kind=kind, seed=1), draw(m, n, kind=kind, seed=2)
    product = a.astype(np.float64) @ b
    for ta, tb in TRANSPOSES:
        out = c.copy()
        operands = [stored(a, ta), stored(b, tb), out, None]
        kernels.call(f"gemm.{kind}", operands, [m, n, k, ta, tb], [-2.0, 0.5], target=target)
        near(out, -2 * product + 0.5 * c, kind, 3 + k / 4)


@each_target
@each_real
@pytest.mark.parametrize("m, n, k", [(4, 8, 8), (5, 19, 3), (64, 40, 30)])
def test_bias_and_activation(m, n, k, kind, target):
    a, b, bias = draw(m, k, kind=kind), draw(k, n, kind=kind, seed=1), draw(n, kind=kind, seed=2)
    plain = a.astype(np.float64) @ b
    activations = [lambda v: v, lambda v: np.maximum(v, 0), lambda v: 1 / (1 + np.exp(-v)), np.tanh]
    for act, function in enumerate(activations):
        out = blank(m, n, kind=kind)
        kernels.call(f"gemm.{kind}", [a, b, out, bias], [m, n, k, 0, 0, act], [1, 0], target=target)
        near(out, function(plain + bias), kind, 3 + k / 4)
        kernels.call(f"gemm.{kind}", [a, b, out, None], [m, n, k, 0, 0, act], [1, 0], target=target)
        near(out, function(plain), kind, 3 + k / 4)


@each_target
@each_real
def test_empty_products(kind, target):
    none = blank(0, kind=kind)
    kernels.call(
        f"gemm.{kind}", [none, draw(3, 2, kind=kind), none, None], [0, 2, 3, 0, 0], [1, 0], target=target
    )
    out = blank(2, 3, kind=kind)
    kernels.call(f"gemm.{kind}", [none, none, out, None], [2, 3, 0, 0, 0], [1, 0], target=target)
    assert not out.any()


@each_target
@each_real
@pytest.mark.parametrize("m, n, k", [(3, 4, 5), (20, 30, 40)])
def test_batches(m, n, k, kind, target):
    a, b = draw(6, m, k, kind=kind), draw(6, k, n, kind=kind, seed=1)
    for ta, tb in TRANSPOSES:
        operands = [stored(a, ta), stored(b, tb), out := blank(6, m, n, kind=kind)]
        ints = [m, n, k, ta, tb, 6, m * k, k * n, m * n]
        kernels.call(f"gemm_batched.{kind}", operands, ints, [2, 0], target=target)
        near(out, 2 * (a.astype(np.float64) @ b), kind, 3 + k / 4)
        kernels.call(f"gemm_batched.{kind}", operands, [*ints[:7], 0, m * n], [1, 0], target=target)
        near(out, a.astype(np.float64) @ b[0], kind, 3 + k / 4)


@each_target
@each_real
@pytest.mark.parametrize("m, n, k", [*SIZES, (70, 1100, 300), (1, 33, 600), (1030, 530, 70), (3, 40, 0)])
def test_products_by_packed_matrices(m, n, k, kind, target):
    a, b, c = draw(m, k, kind=kind), draw(k, n, kind=kind, seed=1), draw(m, n, kind=kind, seed=2)
    bias = draw(n, kind=kind, seed=3)
    product = a.astype(np.float64) @ b
    for transposed in (0, 1):
        room = np.full(k * (n + 32) + 3, 7, c.dtype)
        packed = room[: k * (n + 32)]
        kernels.call(f"gemm_pack.{kind}", [stored(b, transposed), packed], [k, n, transposed], target=target)
        assert (room[len(packed) :] == 7).all()
        for beta in (0.0, 1.0):
            out = c.copy() if beta else np.full_like(c, np.nan)
            kernels.call(f"gemm_packed.{kind}", [a, packed, out, None], [m, n, k], [beta], target=target)
            near(out, product + beta * c, kind, 3 + k / 4)
        kernels.call(f"gemm_packed.{kind}", [a, packed, out, bias], [m, n, k, 1], [0.0], target=target)
        near(out, np.maximum(product + bias, 0), kind, 3 + k / 4)


@each_target
def test_products_by_packed_matrices_have_the_same_bits(target):
    for m, n, k in [(20, 100, 70), (32, 200, 300), (5, 48, 64)]:
        a, b = draw(m, k, kind="f32"), draw(k, n, kind="f32", seed=1)
        packed, out, other = (
            np.empty(k * (n + 32), "float32"),
            np.empty((m, n), "float32"),
            np.empty((m, n), "float32"),
        )
        kernels.call("gemm_pack.f32", [b, packed], [k, n, 0], target=target)
        kernels.call("gemm_packed.f32", [a, packed, out, None], [m, n, k], [0.0], target=target)
        kernels.call("gemm.f32", [a, b, other, None], [m, n, k, 0, 0], [1.0, 0.0], target=target)
        np.testing.assert_array_equal(out, other)
