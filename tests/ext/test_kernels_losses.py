"""Softmax, cross entropies and their gradients."""

import numpy as np
import pytest

from fluidlite._ext import engine, kernels
from fluidlite._ext.engine import KernelFailure

from .native import blank, draw, each_real, each_target, near, numeric

SHAPES = [(0, 3), (1, 1), (5, 3), (4, 17), (3, 1000)]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True)) if x.size else x
    return e / e.sum(-1, keepdims=True)


def probabilities(rows, n, kind, seed=0):
    return softmax(draw(rows, n, kind=kind, seed=seed))


def labels(rows, n):
    return np.random.default_rng(3).integers(0, n, (rows, 1))


def one_hot(label, n, kind):
    return np.eye(n, dtype=kind.replace("f32", "f4").replace("f64", "f8"))[label[:, 0]]


@each_target
@each_real
def test_softmax_and_its_gradient(kind, target):
    for rows, n in SHAPES:
        x, out = draw(rows, n, kind=kind, low=-20, high=20), blank(rows, n, kind=kind)
        kernels.call(f"softmax.{kind}", [x, out], [rows, n], target=target)
        near(out, softmax(x.astype(np.float64)), kind)
        g, dx = draw(rows, n, kind=kind, seed=1), blank(rows, n, kind=kind)
        kernels.call(f"softmax_grad.{kind}", [out, g, dx], [rows, n], target=target)
        near(dx, out * (g - (g * out).sum(-1, keepdims=True)), kind, 3)
        for shared in (0, 1):
            operands = [out.copy(), g.copy()]
            kernels.call(f"softmax_grad.{kind}", [*operands, operands[shared]], [rows, n], target=target)
            np.testing.assert_array_equal(operands[shared], dx)
        kernels.call(f"softmax.{kind}", [x, x], [rows, n], target=target)
        np.testing.assert_array_equal(x, out)


@each_target
@each_real
def test_log_softmax_is_the_logarithm_of_softmax(kind, target):
    for rows, n in SHAPES:
        x, out, made = (
            draw(rows, n, kind=kind, low=-90, high=20),
            blank(rows, n, kind=kind),
            blank(rows, n, kind=kind),
        )
        kernels.call(f"log_softmax.{kind}", [x, out], [rows, n], target=target)
        kernels.call(f"softmax.{kind}", [x, made], [rows, n], target=target)
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(out, np.log(made.astype(np.float64)), rtol=1e-6, atol=1e-6)
        kernels.call(f"log_softmax.{kind}", [x, x], [rows, n], target=target)
        np.testing.assert_array_equal(x, out)
    inf, nan = np.inf, np.nan
    x = np.array([[-inf, 1, 2], [inf, 1, 2], [nan, 1, 2], [-inf, -inf, -inf]], blank(1, kind=kind).dtype)
    out, made = np.empty_like(x), np.empty_like(x)
    kernels.call(f"log_softmax.{kind}", [x, out], [4, 3], target=target)
    kernels.call(f"softmax.{kind}", [x, made], [4, 3], target=target)
    np.testing.assert_allclose(out, np.log(made), rtol=1e-6, atol=1e-6)


@each_target
def test_softmax_counts_far_smaller_logits_as_64_below_the_largest(target):
    x, out = np.array([[0, 1000], [0, 70], [0, 60]], np.float32), blank(3, 2)
    kernels.call("softmax.f32", [x, out], [3, 2], target=target)
    np.testing.assert_allclose(out[:, 0], [1.6038109e-28, 1.6038109e-28, 8.7565109e-27], rtol=1e-5)
    loss = blank(3, 1)
    kernels.call(
        "softmax_with_cross_entropy.f32",
        [x, np.zeros((3, 1), np.int64), out, loss],
        [3, 2, -100],
        target=target,
    )
    assert loss.ravel().tolist() == [64, 64, 60]


@each_target
@each_real
def test_hard_cross_entropy(kind, target):
    for rows, n in SHAPES:
        x, label = probabilities(rows, n, kind), labels(rows, n)
        y, match = blank(rows, 1, kind=kind), blank(rows, 1, kind=kind)
        kernels.call(f"cross_entropy.{kind}", [x, label, y, match], [rows, n, -100], target=target)
        np.testing.assert_array_equal(match, np.take_along_axis(x, label, 1))
        near(y, -np.log(match), kind)
        g, dx = draw(rows, 1, kind=kind, seed=1), blank(rows, n, kind=kind)
        want = -one_hot(label, n, kind) * g / match
        for operands in ([x, None, label, g, dx], [None, match, label, g, dx], [x, None, label, g, x]):
            kernels.call(f"cross_entropy_grad.{kind}", operands, [rows, n, -100], target=target)
            near(operands[4], want, kind)


@each_target
def test_losses_at_the_edges_are_those_of_fluid(target):
    """Figures of Fluid 1.8.5: the logarithm of zero is bounded, an ignored label costs nothing."""
    x = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0, 0.5, 0.5]], np.float32)
    label, y, match = np.array([[2], [-100], [0]]), blank(3, 1), blank(3, 1)
    kernels.call("cross_entropy.f32", [x, label, y, match], [3, 3, -100], target=target)
    np.testing.assert_allclose(y.ravel(), [0.35667497, 0, 1e20], rtol=1e-6)
    np.testing.assert_allclose(match.ravel(), [0.7, 0, 0], rtol=1e-6)
    dx = blank(3, 3)
    g = np.ones((3, 1), np.float32)
    kernels.call("cross_entropy_grad.f32", [None, match, label, g, dx], [3, 3, -100], target=target)
    np.testing.assert_allclose(dx, [[0, 0, -1.4285715], [0, 0, 0], [-np.inf, 0, 0]], rtol=1e-6)
    soft = np.array([[0.1, 0.2, 0.7], [0, 0.5, 0.5], [1, 0, 0]], np.float32)
    kernels.call("cross_entropy_soft.f32", [x, soft, y], [3, 3], target=target)
    np.testing.assert_allclose(y.ravel(), [0.80181855, 1.0601318, 1e20], rtol=1e-6)


@each_target
@each_real
def test_soft_cross_entropy(kind, target):
    for rows, n in SHAPES[1:]:
        x, label = probabilities(rows, n, kind), probabilities(rows, n, kind, seed=5)
        y = blank(rows, 1, kind=kind)
        kernels.call(f"cross_entropy_soft.{kind}", [x, label, y], [rows, n], target=target)
        near(y, -(label * np.log(x)).sum(1, keepdims=True), kind, 5)
        g, dx = draw(rows, 1, kind=kind, seed=1), blank(rows, n, kind=kind)
        kernels.call(f"cross_entropy_soft_grad.{kind}", [x, label, g, dx], [rows, n], target=target)
        near(dx, -g * label / x, kind)


@each_target
@each_real
def test_softmax_with_hard_labels(kind, target):
    for rows, n in SHAPES:
        x, label = draw(rows, n, kind=kind, low=-9, high=9), labels(rows, n)
        probability, loss = blank(rows, n, kind=kind), blank(rows, 1, kind=kind)
        kernels.call(
            f"softmax_with_cross_entropy.{kind}",
            [x, label, probability, loss],
            [rows, n, -100],
            target=target,
        )
        want = softmax(x.astype(np.float64))
        near(probability, want, kind)
        near(loss, -np.log(np.take_along_axis(want, label, 1)), kind, 3)
        in_place = blank(rows, 1, kind=kind)
        kernels.call(
            f"softmax_with_cross_entropy.{kind}", [x, label, x, in_place], [rows, n, -100], target=target
        )
        np.testing.assert_array_equal(x, probability)
        np.testing.assert_array_equal(in_place, loss)
        g, dx = draw(rows, 1, kind=kind, seed=1), blank(rows, n, kind=kind)
        gradient = (want - one_hot(label, n, "f64")) * g
        for name in ("softmax_with_cross_entropy_grad", "softmax_cross_entropy_grad"):
            kernels.call(f"{name}.{kind}", [probability, label, g, dx], [rows, n, -100], target=target)
            near(dx, gradient, kind)
        kernels.call(
            f"softmax_with_cross_entropy_grad.{kind}", [x, label, g, x], [rows, n, -100], target=target
        )
        np.testing.assert_array_equal(x, dx)


@each_target
@each_real
def test_softmax_with_soft_labels(kind, target):
    for rows, n in SHAPES[1:]:
        x, label = draw(rows, n, kind=kind, low=-9, high=9), probabilities(rows, n, kind, seed=5)
        probability, loss = blank(rows, n, kind=kind), blank(rows, 1, kind=kind)
        operands = [x, label, probability, loss]
        kernels.call(f"softmax_with_cross_entropy_soft.{kind}", operands, [rows, n], target=target)
        want = softmax(x.astype(np.float64))
        near(probability, want, kind)
        near(loss, -(label * np.log(want)).sum(1, keepdims=True), kind, 8)
        g, dx = draw(rows, 1, kind=kind, seed=1), blank(rows, n, kind=kind)
        name = f"softmax_with_cross_entropy_soft_grad.{kind}"
        kernels.call(name, [probability, label, g, dx], [rows, n], target=target)
        near(dx, (want - label) * g, kind)


@each_target
def test_ignored_rows_cost_nothing_and_have_no_gradient(target):
    x, label = draw(3, 4), np.array([[1], [7], [3]])
    probability, loss, dx = blank(3, 4), blank(3, 1), blank(3, 4)
    kernels.call("softmax_with_cross_entropy.f32", [x, label, probability, loss], [3, 4, 7], target=target)
    kernels.call(
        "softmax_with_cross_entropy_grad.f32", [probability, label, loss, dx], [3, 4, 7], target=target
    )
    assert loss[1] == 0 and loss[0] > 0 and loss[2] > 0
    assert not dx[1].any() and dx[0].any() and dx[2].any()


@each_target
@pytest.mark.parametrize("bad", (-1, 3, 1 << 40))
@pytest.mark.parametrize("name", ("cross_entropy", "softmax_with_cross_entropy"))
def test_labels_out_of_range_are_refused_before_anything_is_written(name, bad, target):
    x, label = probabilities(4, 3, "f32"), np.array([[0], [2], [bad], [1]])
    first, second = blank(4, 3), blank(4, 3)
    with pytest.raises(KernelFailure) as info:
        kernels.call(f"{name}.f32", [x, label, first, second], [4, 3, -100], target=target)
    assert info.value.code == engine.OUT_OF_RANGE
    assert info.value.err[:3] == (bad, 2, 3)
    assert (first == 77).all() and (second == 77).all()


@each_target
@each_real
@pytest.mark.parametrize("normalize", (0, 1))
def test_sigmoid_cross_entropy(kind, normalize, target):
    x, label = draw(20, kind=kind, low=-6, high=6), draw(20, kind=kind, seed=1, low=0, high=1)
    label[[3, 11]] = -100
    kept = label != -100
    scale = 1 / kept.sum() if normalize else 1.0

    def loss(v):
        return np.where(kept, (np.maximum(v, 0) - v * label + np.log1p(np.exp(-np.abs(v)))) * scale, 0)

    out, g, dx = blank(20, kind=kind), draw(20, kind=kind, seed=2), blank(20, kind=kind)
    name, ints = "sigmoid_cross_entropy_with_logits", [20, -100, normalize]
    kernels.call(f"{name}.{kind}", [x, label, out], ints, target=target)
    near(out, loss(x), kind)
    kernels.call(f"{name}_grad.{kind}", [x, label, g, dx], ints, target=target)
    np.testing.assert_allclose(dx, numeric(loss, (x,), 0, g.astype(np.float64)), rtol=1e-5, atol=1e-6)
    kernels.call(f"{name}_grad.{kind}", [x, label, g, g], ints, target=target)
    np.testing.assert_array_equal(g, dx)
