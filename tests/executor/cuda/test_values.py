"""Variables in steps on a GPU: views, variables written twice, constants, sparse, empty and unused ones."""

import gc

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.backend import device_at, on_device
from fluidlite.base import unique_name
from fluidlite.base.selected_rows import SelectedRows
from fluidlite.executor.compile import compile_plan
from fluidlite.executor.ir.request import Request

from .programs import Net, batches
from .test_steps import TOLERANCE

STEPS = 4


def on_both(gpu, build, feeds, return_numpy=True):
    """The fetched values of `STEPS` steps on the CPU and on the GPU, and the description of the plan there."""
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = 11
    with fluid.program_guard(main, startup), unique_name.guard():
        fetches = build()
    found = []
    for place in (fluid.CPUPlace(), gpu):
        with fluid.scope_guard(fluid.Scope()):
            executor = fluid.Executor(place)
            executor.run(startup)
            steps = [executor.run(main, feeds, fetches, return_numpy=return_numpy) for _ in range(STEPS)]
            found.append([[np.array(value) for value in step] for step in steps])
            text = executor.describe(main)
    return found, text


def assert_same(found):
    cpu, device = found
    for expected, step in zip(cpu, device, strict=True):
        for left, right in zip(expected, step, strict=True):
            assert (left.shape, left.dtype) == (right.shape, right.dtype)
            np.testing.assert_allclose(right, left, **TOLERANCE)


X = np.arange(12, dtype="float32").reshape(3, 4) / 7


def test_views_and_copies_of_a_parameter_keep_its_value_from_before_the_update(gpu):
    def build():
        x = fluid.data("x", [None, 4])
        w = layers.create_parameter([4, 2], "float32", name="w")
        flat, same = layers.reshape(w, [-1]), layers.assign(w)
        loss = layers.mean(layers.mul(x, w))
        fluid.optimizer.SGD(0.5).minimize(loss)
        after = layers.scale(w, 1.0)
        return [loss, flat, same, layers.reduce_sum(flat), after, w]

    found, text = on_both(gpu, build, {"x": X})
    assert_same(found)
    assert "one CUDA graph" in text


def test_counters_and_variables_written_several_times(gpu):
    def build():
        x = fluid.data("x", [None, 4])
        counter = layers.create_global_var([1], 0.0, "float32", persistable=True)
        layers.increment(counter, 2.0)
        total = layers.fill_constant([1], "float32", 1.0)
        layers.increment(total)
        layers.sums([total, counter], out=total)
        return [counter, total, layers.elementwise_mul(x, total)]

    found, text = on_both(gpu, build, {"x": X})
    assert_same(found)
    assert [step[0].item() for step in found[1]] == [2, 4, 6, 8]
    assert "one CUDA graph" in text


def test_constants_dtypes_and_shapes_are_kept(gpu):
    def build():
        x = fluid.data("x", [None, 4])
        constant = layers.fill_constant([2, 3], "int64", 7)
        shape = layers.shape(x)
        big = layers.greater_than(x, layers.fill_constant([1], "float32", 0.5))
        return [constant, shape, big, layers.cast(x, "float64"), layers.transpose(x, [1, 0]), x]

    assert_same(on_both(gpu, build, {"x": X})[0])


def test_large_results_and_feeds_of_one_element(gpu):
    def build():
        x = fluid.data("x", [None, 1])
        return [layers.expand(x, [3, 200_000]), x]

    assert_same(on_both(gpu, build, {"x": X[:2, :1]})[0])


def test_unused_feeds_and_empty_batches(gpu):
    def build():
        x = fluid.data("x", [None, 4])
        fluid.data("unused", [None, 2])
        return [layers.relu(x), layers.concat([x, x], axis=1)]

    assert_same(on_both(gpu, build, {"x": X, "unused": X[:, :2]})[0])
    assert_same(on_both(gpu, build, {"x": X[:0], "unused": X[:0, :2]})[0])


def test_sparse_gradients_can_be_fetched_and_fed(gpu):
    def build():
        ids = fluid.data("ids", [None], "int64")
        rows = fluid.embedding(ids, [6, 2], is_sparse=True, param_attr="table")
        loss = layers.mean(layers.square(rows))
        fluid.optimizer.SGD(0.5).minimize(loss)
        return [loss, "table@GRAD", "table"]

    found, _ = on_both(gpu, build, {"ids": np.array([1, 4, 1], "int64")})
    assert_same(found)

    def fed():
        block = fluid.default_main_program().global_block()
        gradient = block.create_var(
            name="g",
            shape=[6, 2],
            dtype="float32",
            type=fluid.core.VarDesc.VarType.SELECTED_ROWS,
            is_data=True,
        )
        table = layers.create_parameter([6, 2], "float32", name="table")
        rate = layers.fill_constant([1], "float32", 0.5)
        block.append_op(
            type="sgd",
            inputs={"Param": [table], "Grad": [gradient], "LearningRate": [rate]},
            outputs={"ParamOut": [table]},
        )
        return [table]

    rows = SelectedRows(np.array([2, 5], "int64"), np.ones((2, 2), "float32"), 6)
    assert_same(on_both(gpu, fed, {"g": rows})[0])


def test_memory_is_freed_with_the_scope(simulation):
    gpu = fluid.CUDAPlace(0)
    pool = simulation.cupy.get_default_memory_pool()
    Net(gpu).losses(3)  # what is made once
    gc.collect()
    before = pool.used_bytes()
    net = Net(gpu)
    net.losses(3)
    assert pool.used_bytes() > before
    net.scope = None
    assert pool.used_bytes() == before


class TestTwoPhases:
    """A forward and a backward part, with gradients that come in between."""

    def plan(self, gpu):
        main, scope = fluid.Program(), fluid.Scope()
        with fluid.program_guard(main), unique_name.guard():
            x = fluid.data("x", [3, 4], "float32")
            x.stop_gradient = False
            w = main.global_block().create_var(name="w", shape=[4, 2], dtype="float32", persistable=True)
            w.stop_gradient = False
            out = layers.tanh(layers.mul(x, w))
            weight = main.global_block().create_var(name="late", shape=[3, 2], dtype="float32")
            gradients = fluid.gradients([out], [x, w], [weight])
        device = device_at(gpu)
        scope.var("w").get_tensor().set(W, gpu)
        feed = {"x": X}
        names = [var.name for var in gradients]
        late = {"late": out.name}
        request = Request(
            main, scope, feed, [out.name, *names], device=device, fixed=True, late=late, early=1, held=["w"]
        )
        return compile_plan(request), device

    def test_results_and_gradients(self, gpu):
        plan, device = self.plan(gpu)
        assert plan.feed_names == ["x", "w"]
        assert not plan.accepts([X[:2], W])
        late = np.arange(6, dtype="float32").reshape(3, 2)
        for k in (1, 2):
            assert plan.accepts([device.put(X * k), device.put(W)])
            (out,) = plan.run_first()
            assert on_device(out)
            expected = np.tanh(X * k @ W)
            np.testing.assert_allclose(device.get(out), expected, **TOLERANCE)
            before = plan.snapshot()
            for _ in range(2):
                found = [device.get(array) for array in plan.run_second([device.put(late)])]
                inner = late * (1 - expected**2)
                np.testing.assert_allclose(found[0], inner @ W.T, rtol=1e-4, atol=1e-5)
                np.testing.assert_allclose(found[1], (X * k).T @ inner, rtol=1e-4, atol=1e-5)
                plan.restore(before)
        assert "its feeds are used where they are" in plan.describe()


W = np.linspace(-1, 1, 8, dtype="float32").reshape(4, 2)


def test_feeds_are_checked_as_on_the_cpu(gpu):
    net = Net(gpu)
    for batch, message in [
        ({"x": np.zeros((4, 5), "float32"), "y": batches(1)[0]["y"]}, "should have dimensions"),
        ({"x": np.zeros((4, 6)), "y": batches(1)[0]["y"]}, "must be 'float32'"),
        ({"x": device_at(gpu).put(np.zeros((4, 5), "float32")), "y": batches(1)[0]["y"]}, "dimensions"),
    ]:
        for _ in range(2):
            with pytest.raises(ValueError, match=message):
                net.step(batch)
            net.step(batches(1)[0])


class Foreign:
    """A tensor of another library, on a GPU."""

    def __init__(self, array):
        self.array = array

    def __array__(self, *args, **kwargs):
        raise TypeError("cannot convert it to numpy")

    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_tensors_of_other_libraries_are_fed_by_dlpack(gpu):
    net, plain = Net(gpu), Net(fluid.CPUPlace())
    batch = batches(1)[0]
    foreign = Foreign(device_at(gpu).put(batch["x"]))
    with pytest.raises(TypeError, match=r"'x' with a .*Foreign of a GPU: feed fluid.core.from_dlpack"):
        net.step({**batch, "x": foreign})
    got = net.step({**batch, "x": fluid.core.from_dlpack(foreign)})
    np.testing.assert_allclose(got, plain.step(batch), **TOLERANCE)
