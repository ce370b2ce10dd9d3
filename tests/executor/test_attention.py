"""Attention fused to one call, forward and backward: results are those of single operators."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers

from .test_native_fusion import both, instructions

RANDOM = np.random.RandomState(0)
WIDTH, HEADS = 12, 3
SIZE = WIDTH // HEADS
MANY = 130
"""Keys for which gradients are made by one call."""


def heads(x, perm=(0, 2, 1, 3)):
    x = layers.fc(x, WIDTH, num_flatten_dims=2)
    return layers.transpose(layers.reshape(x, [0, 0, HEADS, SIZE]), list(perm))


def attended(x, of, mask=None, form="alpha", dropout=None):
    """As programs of transformers write it: with the factor in the product, on the queries, or on the scores."""
    q, v = heads(x), heads(of)
    if form == "across":
        scores = layers.matmul(q, heads(of, (0, 2, 3, 1)), alpha=SIZE**-0.5)
    else:
        q = layers.scale(q, SIZE**-0.5) if form == "queries" else q
        scores = layers.matmul(q, heads(of), transpose_y=True, alpha=SIZE**-0.5 if form == "alpha" else 1.0)
        scores = layers.scale(scores, SIZE**-0.5) if form == "scores" else scores
    weights = layers.softmax(scores if mask is None else scores + mask)
    if dropout:
        weights = layers.dropout(weights, 0.4, **dropout)
    out = layers.transpose(layers.matmul(weights, v), [0, 2, 1, 3])
    return layers.reshape(out, [0, 0, WIDTH]), weights


def prepared(loss):
    grads = [g.name for _, g in fluid.backward.append_backward(loss)]
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe, grads


def batch(n, length, keys):
    return {
        "x": RANDOM.randn(n, length, 5).astype("float32"),
        "y": RANDOM.randn(n, keys, 5).astype("float32"),
        "mask": np.where(RANDOM.rand(n, 1, 1, keys) < 0.3, -1e4, 0).astype("float32"),
    }


def inputs():
    return [fluid.data(name, [None, None, 5]) for name in "xy"], fluid.data("mask", [None, 1, 1, None])


@pytest.mark.parametrize("form", ["alpha", "queries", "scores", "across"])
@pytest.mark.parametrize("masked", [False, True])
def test_inference(form, masked):
    (x, y), mask = inputs()
    out, _ = attended(x, y, mask if masked else None, form)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for sizes in ((2, 7, 5), (3, 2, 9), (1, 1, 1), (2, 150, 40), (2, 1, 6)):
        both(exe, batch(*sizes), [out])
    plan = instructions(exe)
    assert not any(each in ("softmax", "matmul", "transpose2", "scale") for each in plan)
    joined = next(each for each in plan if "softmax" in each)
    assert joined.count("transpose2") == 1 and "4 transpose2" in joined and "2 matmul" in joined
    assert f"attention {6 + masked + (form in ('queries', 'scores'))}" in exe.describe()


@pytest.mark.parametrize("form", ["alpha", "queries", "scores", "across"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dropout", [None, "upscale_in_train", "downgrade_in_infer"])
def test_gradients(form, masked, dropout):
    (x, y), mask = inputs()
    how = dropout and {"dropout_implementation": dropout, "seed": 7}
    out, _ = attended(x, y, mask if masked else None, form, how)
    loss = layers.reduce_mean(layers.square(layers.fc(out, 3, num_flatten_dims=2)))
    exe, grads = prepared(loss)
    for sizes in ((2, 7, MANY), (3, 150, 9)):
        both(exe, batch(*sizes), [loss, *grads])
    plan = instructions(exe)
    assert not any(each.startswith("softmax") or "transpose2_grad" == each for each in plan)
    assert sum("softmax_grad" in each for each in plan) == exe.describe().count(" on the CPU for ")
    assert ("dropout" in plan) == bool(dropout)  # which draws the mask alone


def test_masks_are_drawn_anew_and_those_of_a_seed_stay():
    fluid.default_main_program().random_seed = 0
    (x, y), _ = inputs()
    fresh, _ = attended(x, y, dropout={"dropout_implementation": "upscale_in_train"})
    seeded, _ = attended(x, y, dropout={"dropout_implementation": "upscale_in_train", "seed": 3})
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = batch(2, 9, 8)
    first, second = (exe.run(feed=feed, fetch_list=[fresh, seeded]) for _ in range(2))
    assert not np.array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


def test_results_are_those_without_the_pass(monkeypatch):
    (x, y), mask = inputs()
    out, _ = attended(x, y, mask, dropout={"dropout_implementation": "upscale_in_train", "seed": 7})
    loss = layers.reduce_mean(layers.square(out))
    exe, grads = prepared(loss)
    feed = batch(2, 11, MANY)
    joined = exe.run(feed=feed, fetch_list=[loss, *grads])
    monkeypatch.setenv("FLUIDLITE_WITHOUT_PASSES", "attention")
    single = exe.run(feed=feed, fetch_list=[*grads, loss])  # another order, another plan
    assert "softmax" in instructions(exe)
    for one, two in zip(joined, [single[-1], *single[:-1]], strict=True):
        np.testing.assert_allclose(one, two, rtol=2e-5, atol=2e-6)


def test_heads_of_paddle_and_one_head():
    x, y = fluid.data("x", [None, 6, WIDTH]), fluid.data("y", [None, 9, WIDTH])
    exe = fluid.Executor()
    outs = [fluid.nets.scaled_dot_product_attention(x, y, y, num_heads=count) for count in (1, HEADS)]
    exe.run(fluid.default_startup_program())
    feed = {name: RANDOM.randn(2, n, WIDTH).astype("float32") for name, n in (("x", 6), ("y", 9))}
    both(exe, feed, outs)
    assert "softmax" not in instructions(exe)


@pytest.mark.parametrize("form", ["bhmn", "b1mn", "1h1n", "mn", "n", "1", "m1"])
def test_biases(form):
    sizes = {"b": 2, "h": HEADS, "m": 4, "n": 6, "1": 1}
    (x, y), _ = inputs()
    bias = fluid.data("bias", [sizes[letter] for letter in form])
    out, _ = attended(x, y, bias)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    both(exe, {**batch(2, 4, 6), "bias": RANDOM.randn(*bias.shape).astype("float32")}, [out])
    assert "softmax" not in instructions(exe)


@pytest.mark.parametrize("kind", ["few", "fetched", "read", "bias", "axis", "keys"])
def test_what_stays(kind):
    (x, y), mask = inputs()
    if kind == "bias":
        mask = layers.create_parameter(
            [HEADS, 1, MANY], "float32", default_initializer=fluid.initializer.Constant(0.1)
        )
    out, weights = attended(x, y, mask)
    if kind == "axis":
        weights = layers.softmax(layers.matmul(heads(x), heads(y), transpose_y=True), axis=2)
        out = layers.matmul(weights, heads(y))
    if kind == "keys":
        shared = layers.create_parameter([MANY, SIZE], "float32")
        weights = layers.softmax(layers.matmul(heads(x), shared, transpose_y=True))
        out = layers.matmul(weights, heads(y))
    loss = layers.reduce_mean(layers.square(out))
    if kind == "read":
        loss = loss + layers.reduce_mean(layers.square(weights))
    exe, grads = prepared(loss)
    both(
        exe,
        batch(2, 5, 5 if kind == "few" else MANY),
        [loss, *grads, *([weights] if kind == "fetched" else [])],
    )
    assert "attention" not in exe.describe()


def test_values_that_change_on_the_way():
    (x, y), _ = inputs()
    state = layers.create_global_var([2, 6, 4], 1.0, "float32", persistable=True)
    q = layers.fc(x, 4, num_flatten_dims=2)
    weights = layers.softmax(layers.matmul(q, state, transpose_y=True))
    layers.assign(state * 2.0, state)
    out = layers.matmul(weights, layers.fc(y, 4, num_flatten_dims=2))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = batch(2, 3, 6)
    first = exe.run(feed=feed, fetch_list=[out])[0]
    fluid.global_scope().find_var(state.name).get_tensor().set(
        np.ones((2, 6, 4), "float32"), fluid.CPUPlace()
    )
    np.testing.assert_allclose(both(exe, feed, [out])[0], first, rtol=1e-5)
    assert "softmax" in instructions(exe)


def test_what_gradients_recompute():
    (x, y), mask = inputs()
    first, _ = attended(x, y, mask)
    kept = layers.fc(first, 5, num_flatten_dims=2)
    second, _ = attended(kept, kept, mask)
    loss = layers.reduce_mean(layers.square(second))
    optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.1))
    optimizer._set_checkpoints([kept])
    optimizer.minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    before = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
    value = np.array(before)
    feed = batch(2, MANY, MANY)
    planned = exe.run(feed=feed, fetch_list=[loss])[0]
    moved = np.array(before)
    assert sum("softmax_grad" in each for each in instructions(exe)) == 2
    assert np.isfinite(planned).all() and not np.array_equal(value, moved)
