"""Dropout and the optimizers."""

import numpy as np
import pytest

from fluidlite._ext import kernels, rng
from fluidlite._ext.engine import Engine

from .native import TYPES, blank, draw, each_real, each_target, near


@each_target
@each_real
@pytest.mark.parametrize("upscale", (0, 1))
def test_seeded_dropout_is_fluids(kind, upscale, target):
    x, out, mask = draw(1000, kind=kind), blank(1000, kind=kind), blank(1000, kind="u8")
    kernels.call(f"dropout.{kind}", [x, out, mask], [1000, upscale, 90], [0.3], target=target)
    np.testing.assert_array_equal(mask, rng.dropout_mask(90, 0.3, 1000))
    scale = 1 / 0.7 if upscale else 1.0
    near(out, x * mask * scale, kind)
    dx = blank(1000, kind=kind)
    kernels.call(f"dropout_grad.{kind}", [x, mask, dx], [1000, upscale], [0.3], target=target)
    np.testing.assert_array_equal(dx, out)
    kernels.call(f"dropout.{kind}", [x, x, mask], [1000, upscale, 90], [0.3], target=target)
    np.testing.assert_array_equal(x, out)


@each_target
@pytest.mark.parametrize("upscale", (0, 1))
@pytest.mark.parametrize("seed", (0, 7))
def test_dropout_with_certain_outcomes(seed, upscale, target):
    x, out, mask = draw(50, low=1), blank(50), blank(50, kind="u8")
    kernels.call("dropout.f32", [x, out, mask], [50, upscale, seed], [1.0], target=target)
    assert not mask.any() and not out.any()
    kernels.call("dropout.f32", [x, out, mask], [50, upscale, seed], [0.0], target=target)
    assert mask.all()
    np.testing.assert_array_equal(out, x)
    kernels.call("dropout.f32", [x[:0], out[:0], mask[:0]], [0, upscale, seed], [0.5], target=target)


def masks(seed: int, runs: int = 2, n: int = 100_000, prob: float = 0.3) -> list[np.ndarray]:
    plan = Engine(2)
    plan.add("dropout.f32", [0, 0, 1], [n, 0, seed], [prob])
    found, mask = [], np.empty(n, np.uint8)
    plan.bind(0, np.ones(n, np.float32))
    plan.bind(1, mask)
    for _ in range(runs):
        plan.run()
        found.append(mask.copy())
    return found


def test_a_seed_gives_the_same_mask_in_every_run():
    first, second = masks(5)
    np.testing.assert_array_equal(first, second)


def test_fresh_seeds_may_follow_from_a_number():
    drawn = []
    for number in (3, 3, 4, 0, 0):
        kernels.seeds_from(number)
        drawn += [mask.tobytes() for mask in masks(0) + masks(0)]
    assert drawn[:4] == drawn[4:8]
    assert len(set(drawn)) == len(drawn) - 4


def test_without_a_seed_masks_are_fresh_and_have_the_right_share():
    first, second = masks(0)
    other, _ = masks(0)
    for a, b in ((first, second), (first, other)):
        # Independent masks agree in 0.7^2 + 0.3^2 of the places.
        assert abs((a == b).mean() - 0.58) < 0.01
    for mask in (first, second):
        assert abs(mask.mean() - 0.7) < 0.01
        assert abs((mask[1:] == mask[:-1]).mean() - 0.58) < 0.01


SIZES = (1, 0, 17, 64, 1000)


def tensors(kind: str, seed: int, low: float = -2.0) -> list[np.ndarray]:
    return [draw(n, kind=kind, seed=seed + k, low=low) for k, n in enumerate(SIZES)]


def run(name: str, kind: str, groups: list, ints: tuple, floats: tuple, target: str) -> None:
    """Run an optimizer kernel over all tensors; `groups` holds the operands, each a list over tensors."""
    rate = np.array([0.1], TYPES[kind])
    operands = [array for tensor in zip(*groups, strict=True) for array in tensor]
    kernels.call(f"{name}.{kind}", [rate, *operands], [*ints, *SIZES], floats, target=target)


@each_target
@each_real
def test_sgd(kind, target):
    param, grad = tensors(kind, 0), tensors(kind, 50)
    want = [p - 0.1 * g for p, g in zip(param, grad, strict=True)]
    run("sgd", kind, [param, grad], (), (), target)
    for p, w in zip(param, want, strict=True):
        near(p, w, kind)


@each_target
@each_real
@pytest.mark.parametrize("nesterov", (0, 1))
def test_momentum(kind, nesterov, target):
    param, grad, velocity = tensors(kind, 0), tensors(kind, 50), tensors(kind, 100)
    moved = [0.9 * v + g for v, g in zip(velocity, grad, strict=True)]
    steps = [g + 0.9 * v if nesterov else v for g, v in zip(grad, moved, strict=True)]
    want = [p - 0.1 * s for p, s in zip(param, steps, strict=True)]
    run("momentum", kind, [param, grad, velocity], (nesterov,), (0.9,), target)
    for p, w, v, m in zip(param, want, velocity, moved, strict=True):
        near(p, w, kind)
        near(v, m, kind)


@each_target
@each_real
def test_adagrad(kind, target):
    param, grad, moment = tensors(kind, 0), tensors(kind, 50), tensors(kind, 100, low=0.1)
    sums = [m + g * g for m, g in zip(moment, grad, strict=True)]
    want = [p - 0.1 * g / (np.sqrt(s) + 1e-6) for p, g, s in zip(param, grad, sums, strict=True)]
    run("adagrad", kind, [param, grad, moment], (), (1e-6,), target)
    for p, w, m, s in zip(param, want, moment, sums, strict=True):
        near(p, w, kind, 2)
        near(m, s, kind)


@each_target
@each_real
@pytest.mark.parametrize("centered", (0, 1))
def test_rmsprop(kind, centered, target):
    param, grad, moment = tensors(kind, 0), tensors(kind, 50), tensors(kind, 100)
    square, mean = tensors(kind, 150, low=0.5), [0.1 * m for m in tensors(kind, 200)]
    squares = [0.9 * s + 0.1 * g * g for s, g in zip(square, grad, strict=True)]
    means = [0.9 * m + 0.1 * g if centered else m.copy() for m, g in zip(mean, grad, strict=True)]
    spread = [s - m * m if centered else s for s, m in zip(squares, means, strict=True)]
    steps = [0.5 * v + 0.1 * g / np.sqrt(d + 1e-6) for v, g, d in zip(moment, grad, spread, strict=True)]
    want = [p - s for p, s in zip(param, steps, strict=True)]
    run("rmsprop", kind, [param, grad, moment, square, mean], (centered,), (0.9, 0.5, 1e-6), target)
    for got, expected in ((param, want), (moment, steps), (square, squares), (mean, means)):
        for g, w in zip(got, expected, strict=True):
            near(g, w, kind, 4)


@each_target
@each_real
def test_adam_over_several_steps(kind, target):
    param, first, second = tensors(kind, 0), tensors(kind, 50), tensors(kind, 100, low=0.1)
    powers = [[np.array([beta], TYPES[kind]) for _ in SIZES] for beta in (0.9, 0.99)]
    state = [[a.astype(np.float64) for a in group] for group in (param, first, second)]
    for step in range(1, 4):
        grad = tensors(kind, 200 + step)
        run("adam", kind, [param, grad, first, second, *powers], (), (0.9, 0.99, 1e-3), target)
        rate = 0.1 * np.sqrt(1 - 0.99**step) / (1 - 0.9**step)
        for k, g in enumerate(grad):
            state[1][k] = 0.9 * state[1][k] + 0.1 * g
            state[2][k] = 0.99 * state[2][k] + 0.01 * np.square(g, dtype=np.float64)
            state[0][k] -= rate * state[1][k] / (np.sqrt(state[2][k]) + 1e-3)
        for group, want in zip((param, first, second), state, strict=True):
            for got, expected in zip(group, want, strict=True):
                near(got, expected, kind, 10)
        near(powers[0][0], np.array([0.9 ** (step + 1)]), kind)
        near(powers[1][4], np.array([0.99 ** (step + 1)]), kind)


@each_target
def test_adam_gives_fluids_figures(target):
    """One step of Fluid 1.8.5 with the same inputs."""
    arrays = [[0.1], [1, 2], [0.3, -2], [0.5, 0.6], [0.7, 0.8], [0.9], [0.99]]
    operands = [np.array(values, np.float32) for values in arrays]
    kernels.call("adam.f32", operands, [2], [0.9, 0.99, 1e-3], target=target)
    want = [[0.94244653, 1.9627659], [0.48, 0.33999997], [0.6939, 0.83199996], [0.80999994], [0.98010004]]
    for got, expected in zip([operands[1], *operands[3:]], want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-7)
