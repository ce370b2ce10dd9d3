"""Dynamic-shape specialisations: when they are made, guards, gradients, threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import eager
from fluidlite.eager import Tensor, dispatch, dynamic_shapes
from fluidlite.ops.registry import OperatorError

layers = fluid.layers
SIZES = (4, 7, 9, 30, 2, 1, 8, 64, 5, 300, 3)


@pytest.fixture(autouse=True)
def fresh_forms():
    dispatch._forms.clear()
    yield
    dispatch._forms.clear()


def rows(n, width=6, seed=0):
    return np.random.default_rng([n, seed]).uniform(-1, 1, (n, width)).astype("float32")


def form_of(op, **attrs):
    return eager.form(op, [("X", 1)], [("Out", 1)], attrs)


def at_every_size(step, monkeypatch, sizes=SIZES):
    """The results of `step(n)` at all sizes; asserts that static specialisations give the same bits."""
    got = [step(n) for n in sizes]
    assert any(form.opened for form in dispatch._forms.values())
    monkeypatch.setattr(dynamic_shapes, "EXACT_FIRST", 1 << 30)
    for n, have in zip(sizes, got, strict=True):
        dispatch._forms.clear()
        for a, b in zip(step(n), have, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"size {n}")
    return got


def test_the_third_size_makes_a_dynamic_specialisation():
    relu = form_of("relu")
    for n in (4, 5):
        relu(Tensor(rows(n)))
        assert not relu.opened
    for n in (6, 4, 70, 8, 5):
        np.testing.assert_array_equal(relu(Tensor(rows(n))).numpy(), np.maximum(rows(n), 0))
    (variant,) = relu.opened
    assert relu.variant([rows(1000)]) is variant
    assert relu.variant([rows(4)]) is not variant  # the exact one is still there
    for n in (1, 0):
        assert not relu.variant([rows(n)]).is_open
    assert relu.variant([rows(20, 7)]) is not variant  # this axis had one size only


def test_an_axis_that_varies_later_becomes_dynamic():
    relu = form_of("relu")
    for n, width in ((4, 6), (5, 6), (6, 6), (6, 7), (9, 8), (10, 11)):
        relu(Tensor(rows(n, width)))
    assert relu.variant([rows(33, 44)]).is_open


def test_types_and_ranks_are_distinguished():
    relu = form_of("relu")
    for n in (3, 4, 5, 6):
        for array in (rows(n), rows(n).astype("float64"), rows(n)[0], np.stack([rows(n)] * n)):
            found = relu(Tensor(array)).numpy()
            assert found.dtype == array.dtype
            np.testing.assert_array_equal(found, np.maximum(array, 0))
    assert len(relu.opened) == 3  # one vector has always the same size


def test_errors_show_the_sizes_of_the_call():
    product = eager.form("mul", [("X", 1), ("Y", 1)], [("Out", 1)])
    weight = Tensor(rows(6, 3))
    for n in (4, 5, 6, 7):
        product(Tensor(rows(n)), weight)
    assert product.opened
    with pytest.raises(OperatorError, match=r"\[8, 5\]"):
        product(Tensor(rows(8, 5)), weight)


def test_operators_that_read_values_stay_static():
    pick = eager.form("expand", [("X", 1), ("ExpandTimes", 1)], [("Out", 1)])
    for times in range(2, 8):
        out = pick(Tensor(rows(2)), Tensor(np.array([times, 1], "int32")))
        assert out.shape == [2 * times, 6]
    assert not pick.opened


def test_results_of_data_dependent_size_stay_static():
    chosen = eager.form("masked_select", [("X", 1), ("Mask", 1)], [("Y", 1)])
    for n in range(2, 9):
        array = rows(n)
        found = chosen(Tensor(array), Tensor(array > 0))
        np.testing.assert_array_equal(found.numpy(), array[array > 0])
    assert not chosen.opened


def test_training_at_every_size(monkeypatch):
    with fluid.dygraph.guard():
        conv = fluid.dygraph.Conv2D(1, 3, 3, act="relu")
        norm = fluid.dygraph.BatchNorm(3)
        linear = fluid.dygraph.Linear(12, 2)
        parameters = [*conv.parameters(), *norm.parameters(), *linear.parameters()]

        def step(n):
            images = fluid.dygraph.to_variable(rows(n, 36).reshape(n, 1, 6, 6))
            labels = fluid.dygraph.to_variable(np.arange(n).reshape(n, 1) % 2)
            hidden = layers.pool2d(norm(conv(images)), 2, pool_stride=2)
            out = linear(layers.reshape(hidden, [-1, 12]))
            loss = layers.mean(layers.softmax_with_cross_entropy(out, labels))
            loss.backward()
            found = [loss.numpy(), *[p.gradient() for p in parameters if not p.stop_gradient]]
            for p in parameters:
                p.clear_gradient()
            return found

        at_every_size(step, monkeypatch)


def test_second_derivatives_at_every_size(monkeypatch):
    with fluid.dygraph.guard():
        linear = fluid.dygraph.Linear(6, 6, act="tanh")

        def step(n):
            x = Tensor(rows(n), stop_gradient=False)
            a, b = layers.split(linear(x), 2, dim=1)
            y = layers.reduce_sum(layers.square(a) * layers.relu(a)) + layers.mean(
                layers.transpose(b, [1, 0])
            )
            (g,) = fluid.dygraph.grad(y, x, create_graph=True)
            layers.reduce_sum(g * g).backward()
            found = [g.numpy(), x.gradient(), linear.weight.gradient()]
            linear.clear_gradients()
            return found

        at_every_size(step, monkeypatch)


def test_unused_results_get_zero_gradients_of_their_size(monkeypatch):
    def step(n):
        x = Tensor(rows(n), stop_gradient=False)
        first, _ = layers.split(x, 2, dim=1)
        layers.reduce_sum(
            Tensor(rows(64))
        )  # another size goes through one of the variants before the gradients
        layers.split(Tensor(rows(n + 50)), 2, dim=1)
        layers.reduce_sum(first).backward()
        return [x.gradient()]

    for n, (gradient,) in zip(SIZES, at_every_size(step, monkeypatch), strict=True):
        np.testing.assert_array_equal(gradient, [[1, 1, 1, 0, 0, 0]] * n)


def test_gradients_use_the_sizes_of_their_call():
    relu = form_of("relu")
    waiting = []
    for n in SIZES:
        x = Tensor(rows(n), stop_gradient=False)
        waiting.append((x, relu(relu(x))))
    for x, out in reversed(waiting):
        eager.backward([out], None, False)
        np.testing.assert_array_equal(x.gradient(), x.numpy() > 0)


def test_gradient_shapes_follow_from_saved_arrays(monkeypatch):
    def step(n):
        x = Tensor(rows(n), stop_gradient=False)
        loss = layers.mean(layers.reduce_max(x, dim=[1])) + layers.reduce_mean(layers.reduce_sum(x, dim=[0]))
        loss.backward()
        return [x.gradient()]

    at_every_size(step, monkeypatch)


def test_seeded_dropout_is_the_same_at_every_size(monkeypatch):
    at_every_size(lambda n: [layers.dropout(Tensor(rows(n)), 0.5, seed=3).numpy()], monkeypatch)


def test_threads_share_a_dynamic_specialisation():
    tanh = form_of("tanh")
    for n in (3, 4, 5):
        tanh(Tensor(rows(n, 1024)))
    wrong = []

    def work(seed):
        for n in np.random.default_rng(seed).integers(70, 200, 40):
            x = rows(n, 1024, seed)
            if not np.allclose(tanh(Tensor(x)).numpy(), np.tanh(x), atol=1e-6):
                wrong.append(n)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    assert wrong == [] and len(tanh.opened) == 1


def test_threads_meet_a_size_at_the_same_time():
    """A thread's own copy, made while another thread computes, begins with the sizes of the first arrays."""
    wrong = []
    for _ in range(5):
        dispatch._forms.clear()
        product = eager.form("matmul", [("X", 1), ("Y", 1)], [("Out", 1)])
        for n in (3, 4, 5):
            product(Tensor(rows(n, n)), Tensor(rows(n, n)))
        x = rows(256, 256)
        want = x @ x

        def work(product=product, x=x, want=want):
            for _ in range(10):
                got = product(Tensor(x), Tensor(x)).numpy()
                if got.shape != want.shape or not np.allclose(got, want, rtol=1e-3, atol=1e-3):
                    wrong.append(got.shape)

        with ThreadPoolExecutor(4) as pool:
            [each.result() for each in [pool.submit(work) for _ in range(4)]]
    assert wrong == []
