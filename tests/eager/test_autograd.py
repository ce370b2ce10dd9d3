"""Gradients through the tape: sums, sharing, hooks, `grad`, second derivatives, and what is let go."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import eager
from fluidlite.base.errors import EnforceNotMet, OperatorError
from fluidlite.eager import Parameter, Tensor, apply, grad, no_grad
from fluidlite.framework import mode

from ..refusals import refuses


def leaf(values, dtype="float32"):
    return Tensor(np.array(values, dtype), stop_gradient=False)


def total(x):
    return apply("reduce_sum", {"X": x}, attrs={"reduce_all": True})


def test_what_is_stopped_after_its_use_gets_zeros():
    """As in Fluid, so that an optimizer leaves it as it is."""
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    out = total(apply("elementwise_mul", {"X": x, "Y": w}))
    w.stop_gradient = True
    out.backward()
    assert (w.gradient().tolist(), x.gradient().tolist()) == ([0, 0], [3, 4])


def test_gradients_of_a_recorded_graph_go_on():
    x = leaf([1.0, 2.0])
    for outputs in (x, apply("scale", {"X": x}, attrs={"scale": 3.0}), apply("square", {"X": x})):
        for recorded in (False, True):
            (dx,) = grad(outputs, x, create_graph=recorded, retain_graph=True)
            assert dx.stop_gradient is not recorded


@pytest.mark.parametrize("recorded", [False, True])
def test_gradients_for_inner_tensors_keep_the_graph_below_them(recorded):
    x = leaf([1.0, 2.0])
    y = x * x
    z = y * y
    (dy,) = grad(z, y, create_graph=recorded, retain_graph=False)
    assert dy.numpy().tolist() == [2, 8]
    refuses(lambda: grad(z, y), OperatorError, "do not depend")
    (dx,) = grad([y, x], x, create_graph=recorded, retain_graph=False)
    assert dx.numpy().tolist() == [3, 5]


def test_a_graph_that_was_used_up_in_part_has_no_gradients():
    x = leaf([1.0, 2.0])
    y = x * x
    z = y * 2.0
    w = z + x
    z.backward()
    refuses(w.backward, OperatorError, "retain_graph=True")
    assert x.gradient().tolist() == [4, 8]
    z.backward()
    (z + x).backward()
    assert x.gradient().tolist() == [5, 9], "what was used up before is a number"


@pytest.mark.parametrize("wrong", [[1.0, 2.0, 3.0], [None, None], [1]])
def test_gradients_to_start_from_are_tensors_one_for_each_output(wrong):
    x = leaf([1.0, 2.0])
    y = x * x
    refuses(lambda: grad(y, x, grad_outputs=wrong), AssertionError, "grad_outputs")
    assert grad(y, x, grad_outputs=[])[0].numpy().tolist() == [2, 4]


def test_results_that_nothing_was_computed_from_have_zeros():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    first, second = fluid.layers.unstack(x * 2.0, axis=0)
    y = x * 3.0
    assert second.gradient() is None
    total(first).backward()
    assert (first.gradient().tolist(), second.gradient().tolist()) == ([1, 1], [0, 0])
    assert y.gradient() is None


def test_cleared_gradients_of_rows_are_gone():
    with mode.guard(True):
        table = fluid.dygraph.Embedding([5, 2], is_sparse=True)
        for _ in range(2):
            total(table(Tensor(np.array([[1], [3]])))).backward()
            assert table.weight.gradient()[1].tolist() == [1, 3]
            table.clear_gradients()
            assert table.weight.gradient() is None


def test_rows_of_several_uses_are_merged():
    with mode.guard(True):
        table = fluid.dygraph.Embedding([6, 2], is_sparse=True)
        ids = [Tensor(np.array(part).reshape(-1, 1)) for part in ([5, 1], [4], [1, 1])]
        sums = [total(table(part)) * float(k + 1) for k, part in enumerate(ids)]
        (sums[0] + sums[1] + sums[2]).backward()
        values, rows = table.weight.gradient()
        assert rows.tolist() == [1, 4, 5] and values.tolist() == [[7, 7], [2, 2], [1, 1]]  # as in Fluid


def test_gradients_add_up_over_uses_and_calls():
    x = leaf([1.0, 2.0])
    y = x * x + x * 3.0 + x
    total(y).backward()
    np.testing.assert_allclose(x.gradient(), 2 * x.numpy() + 4)
    total(x * 2.0).backward()
    np.testing.assert_allclose(x.gradient(), 2 * x.numpy() + 6)
    np.testing.assert_allclose(y.gradient(), [1, 1])
    x.clear_gradient()
    assert x.gradient().tolist() == [0, 0]
    total(x).backward()
    assert x.gradient().tolist() == [1, 1]


def test_fluids_dygraph_mode_replaces_gradients():
    x = leaf([1.0])
    with mode.guard(True):
        for factor in (1.0, 2.0, 3.0):
            (x * factor + x * factor).backward()
            assert x.gradient().tolist() == [2 * factor]


def test_nothing_before_backward():
    x = leaf([1.0])
    assert x.gradient() is None and x.grad is None
    x.clear_gradient()
    assert x.gradient() is None


def test_diamonds_are_differentiated_once():
    x = leaf([2.0])
    h = x
    for _ in range(30):
        h = h + h  # 2 ** 30 paths
    h.backward()
    assert x.gradient().tolist() == [2.0**30]


def test_stop_gradient_and_detach():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    w.stop_gradient = True
    y = x * w
    cut = y.detach()
    total(y + cut * cut).backward()
    assert x.gradient().tolist() == [3.0, 4.0]
    assert w.gradient() is None and cut.gradient() is None and cut.stop_gradient


def test_a_result_whose_gradient_is_stopped_by_hand():
    x = leaf([1.0])
    h = x * 2.0
    h.stop_gradient = True
    z = h * 3.0 + x
    z.backward()
    assert x.gradient().tolist() == [1.0]


def test_unused_outputs_count_as_zeros():
    x = leaf(np.arange(6).reshape(2, 3))
    _, right = apply("split", {"X": x}, [("Out", 2)], {"num": 2, "axis": 0})
    total(right * 2.0).backward()
    np.testing.assert_array_equal(x.gradient(), [[0, 0, 0], [2, 2, 2]])


def test_no_grad_in_every_form():
    x = leaf([1.0])

    @no_grad
    def plain(v):
        return v * 2.0

    @no_grad()
    def called(v):
        return v * 2.0

    @no_grad
    def several(v):
        for _ in range(2):
            yield v * 2.0

    with no_grad():
        assert (x * 2.0).stop_gradient
    assert plain(x).stop_gradient and called(x).stop_gradient
    for item in several(x):
        assert item.stop_gradient and not (x * 2.0).stop_gradient
    assert not (x * 2.0).stop_gradient


def test_no_grad_ends_with_an_error_and_in_its_thread():
    x = leaf([1.0])
    with pytest.raises(ZeroDivisionError), no_grad():
        raise ZeroDivisionError
    assert not (x * 2.0).stop_gradient
    seen = []
    with no_grad():
        thread = threading.Thread(target=lambda: seen.append((x * 2.0).stop_gradient))
        thread.start()
        thread.join()
    assert seen == [False]


def test_backward_double_grad():
    x = leaf([3.0])
    y = x * x
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    assert x.gradient().tolist() == [12.0]
    y.backward()
    y.backward()  # the tape is gone: as in Fluid, nothing happens
    assert x.gradient().tolist() == [18.0]


def test_start_of_a_backward_pass():
    x = leaf([1.0, 2.0])
    (x * x).backward(Tensor(np.array([1.0, 10.0], "float32")))
    assert x.gradient().tolist() == [2.0, 40.0]
    with pytest.raises(ValueError, match=r"shape of tensor .* \[2\], got \[3\]"):
        (x * x).backward(Tensor(np.ones(3, "float32")))


def test_increment_in_place_passes_gradients_on():
    with fluid.dygraph.guard():
        x = fluid.dygraph.to_variable(np.array([2.0], "float32"))
        x.stop_gradient = False
        h = x * x
        assert fluid.layers.increment(h) is h
        (h * h).backward()
        np.testing.assert_array_equal([h.numpy(), x.gradient()], [[5], [40]])
        fluid.layers.increment(x)
        (x * x).backward()
        np.testing.assert_array_equal([x.numpy(), x.gradient()], [[3], [6]])


def test_hooks():
    x = leaf([1.0, 2.0])
    seen = []
    h = x * 2.0
    kept = h.register_hook(lambda g: seen.append(g.numpy().tolist()))
    x.register_hook(lambda g: g * 10.0)
    total(h * h).backward(retain_graph=True)
    assert seen == [[4.0, 8.0]]
    assert x.gradient().tolist() == [80.0, 160.0]
    assert kept.remove() and not kept.remove()
    total(h).backward()
    assert len(seen) == 1
    refuses(lambda: Tensor(np.ones(1, "float32")).register_hook(print), RuntimeError, "stop_gradient=True")


def test_a_failing_pass_leaves_gradients_as_they_were():
    x = leaf([1.0])
    y = x * 2.0
    y.register_hook(lambda g: 1 / 0)
    refuses(lambda: (x * 5.0 + y).backward(), ZeroDivisionError)
    assert x.gradient() is None


def test_grad_leaves_no_trace():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    h = x * w
    y = total(h * h)
    dx, dh = grad(y, [x, h], retain_graph=True)
    np.testing.assert_allclose(dx.numpy(), 2 * x.numpy() * w.numpy() ** 2)
    np.testing.assert_allclose(dh.numpy(), 2 * h.numpy())
    assert x.gradient() is None and h.gradient() is None and dx.stop_gradient
    y.backward()
    np.testing.assert_allclose(w.gradient(), 2 * w.numpy() * x.numpy() ** 2)


def test_grad_of_what_is_not_used():
    x, other = leaf([1.0]), leaf([1.0])
    y = x * 2.0
    with pytest.raises(ValueError, match="do not depend on tensor .*allow_unused=True"):
        grad(y, other, retain_graph=True)
    assert grad(y, [x, other], allow_unused=True)[1] is None
    for wrong, kind in ((np.ones(1), AssertionError), ([], AssertionError)):
        with pytest.raises(kind):
            grad(x * 2.0, wrong)
    with pytest.raises(AssertionError, match="one gradient for each of 1 outputs, got 2"):
        grad(x * 2.0, x, grad_outputs=[None, None])


def test_grad_outputs_and_no_grad_vars():
    x = leaf([1.0, 2.0])
    h = x * x
    y = h * 3.0 + x
    seed = Tensor(np.array([1.0, 10.0], "float32"))
    assert grad(y, x, grad_outputs=seed, retain_graph=True)[0].numpy().tolist() == [7.0, 130.0]
    assert grad(y, x, no_grad_vars=[h])[0].numpy().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("op_type", ["tanh", "square", "sqrt"])
def test_second_derivatives(op_type):
    values = np.array([0.3, 0.7, 1.9])
    x = leaf(values, "float64")
    first = grad(apply(op_type, {"X": x}), x, create_graph=True)[0]
    assert not first.stop_gradient
    total(first).backward()
    want = {
        "tanh": -2 * np.tanh(values) * (1 - np.tanh(values) ** 2),
        "square": np.full(3, 2.0),
        "sqrt": -0.25 * values**-1.5,
    }[op_type]
    np.testing.assert_allclose(x.gradient(), want, rtol=1e-9)


def test_a_gradient_penalty():
    rng = np.random.default_rng(0)
    x, w = leaf(rng.normal(size=(3, 4)), "float64"), leaf(rng.normal(size=(4, 2)), "float64")

    def penalty():
        y = apply("tanh", {"X": x @ w})
        dx = grad(y, x, create_graph=True)[0]
        return total(apply("square", {"X": dx}))

    penalty().backward()
    got, step = w.gradient(), 1e-6
    for at in np.ndindex(4, 2):
        sides = []
        for delta in (step, -step):
            w.array[at] += delta
            sides.append(float(penalty()))
            w.array[at] -= delta
        assert got[at] == pytest.approx((sides[0] - sides[1]) / (2 * step), rel=1e-5)


def test_no_gradient_of_evaluation_but_a_clear_error():
    x = leaf([1.0, 2.0])
    out = apply("dropout", {"X": x}, attrs={"is_test": True, "dropout_prob": 0.5})
    assert out.numpy().tolist() == [0.5, 1.0]
    refuses(lambda: total(out).backward(), EnforceNotMet, "no gradient with is_test=True")


def test_the_tape_is_let_go_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        x = Parameter(np.ones(1000, "float32"), "w")
        h = x * 2.0
        node, middle = weakref.ref(h), weakref.ref(h * 3.0)
        loss = total(h * h)
        loss.backward()
        del h
        assert node() is None and middle() is None
        unused = x * 5.0
        for _ in range(10):
            unused = unused * 2.0
        probe = weakref.ref(unused)
        del unused
        assert probe() is None
    finally:
        gc.enable()


def test_a_long_chain_neither_recurses_nor_is_quadratic():
    x = leaf([1.0])
    h = x
    for _ in range(20_000):
        h = h + 1.0
    h.backward()
    assert x.gradient().tolist() == [1.0]
    del h


def test_random_operators_draw_anew_unless_they_have_a_seed():
    x = leaf(np.ones(1000))
    attrs = {"dropout_prob": 0.5}
    masks = [apply("dropout", {"X": x}, attrs=attrs).numpy() for _ in range(3)]
    assert not np.array_equal(masks[0], masks[1]) and not np.array_equal(masks[1], masks[2])
    seeded = {**attrs, "seed": 7, "fix_seed": True}
    masks = [apply("dropout", {"X": x}, ("Out", "Mask"), seeded)[0].numpy() for _ in range(3)]
    np.testing.assert_array_equal(masks[0], masks[1])
    np.testing.assert_array_equal(masks[1], masks[2])


def test_variants_are_bounded_and_follow_the_shapes():
    form = eager.form("relu", (("X", 1),), (("Out", 1),))
    for n in range(1, form.LIMIT + 20):
        assert form(leaf(np.full(n, -1.0))).shape == [n]
    assert form(leaf([[-1.0, 2.0]], "float64")).numpy().tolist() == [[0.0, 2.0]]


def test_shapes_that_depend_on_values():
    x = leaf(np.arange(6))
    for shape in ([2, 3], [3, 2], [6, 1]):
        wanted = Tensor(np.array(shape, "int32"))
        out, _ = apply("reshape2", {"X": x, "Shape": wanted}, ("Out", "XShape"))
        assert out.shape == shape
        total(out * out).backward()
    np.testing.assert_allclose(x.gradient(), 6 * np.arange(6))


def test_threads_train_side_by_side():
    errors = []

    def work(seed):
        try:
            rng = np.random.default_rng(seed)
            w = leaf(rng.normal(size=(64, 64)))
            x = Tensor(rng.normal(size=(256, 64)).astype("float32"))
            for _ in range(30):
                w.clear_gradient()
                total(apply("relu", {"X": x @ w})).backward()
                want = x.array.T @ (x.array @ w.array > 0).astype("float32")
                np.testing.assert_allclose(w.gradient(), want, rtol=1e-3, atol=1e-2)
        except BaseException as error:
            errors.append(error)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert not errors


def test_threads_share_a_model_without_getting_mixed_up():
    """The same operators on the same shapes at the same time, large enough to run without the GIL."""
    rng = np.random.default_rng(1)
    w = Parameter(rng.normal(size=(256, 256)).astype("float32"), "w")
    inputs = [rng.normal(size=(256, 256)).astype("float32") for _ in range(4)]
    wrong = []

    def serve(x):
        want = np.maximum(x @ w.array, 0)
        for _ in range(40):
            got = apply("relu", {"X": Tensor(x) @ w}).array
            if not np.allclose(got, want, rtol=1e-3, atol=1e-3):
                wrong.append(np.abs(got - want).max())

    with no_grad():
        with ThreadPoolExecutor(len(inputs)) as pool:
            list(pool.map(serve, inputs))
    assert not wrong


def test_arrays_that_are_not_contiguous():
    values = np.arange(6, dtype="float32").reshape(2, 3)
    x = Tensor(values.T, stop_gradient=False)
    assert apply("relu", {"X": x}).numpy().tolist() == values.T.tolist()
    (x * 2.0).backward(Tensor(values.T))
    assert x.gradient().tolist() == (2 * values.T).tolist()
