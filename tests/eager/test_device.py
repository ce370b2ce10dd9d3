"""Eager tensors on a GPU: where they are made, that operators follow them, and what reaches the host."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph, eager, layers
from fluidlite.backend import on_device
from fluidlite.base import flags
from fluidlite.base.errors import OperatorError
from fluidlite.base.selected_rows import SelectedRows
from fluidlite.dygraph import to_variable
from fluidlite.eager import Tensor

from ..simulated_cuda import simulated

GPU, CPU = fluid.CUDAPlace(0), fluid.CPUPlace()


@pytest.fixture
def gpu(cuda):
    """Dygraph mode whose tensors are made on the GPU."""
    with dygraph.guard(GPU):
        yield cuda


def made(values, dtype="float32", grad=True, place=None):
    tensor = to_variable(np.array(values, dtype))
    if place is not None:
        tensor = tensor._copy_to(place, True)
    tensor.stop_gradient = not grad
    return tensor


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).random(shape, "float32") + 0.5


def test_tensors_are_made_where_the_guard_says(gpu):
    made_there = [
        to_variable(np.ones(3, "float32")),
        eager.to_variable(np.ones(3, "float32")),
        layers.fill_constant([2, 3], "float32", 1.5),
        layers.assign(np.arange(4, dtype="int32")),
        layers.uniform_random([5], seed=3),
        layers.create_parameter([2, 2], "float32"),
        layers.create_global_var([1], 2.0, "float32", persistable=True),
        *dygraph.Linear(2, 3).parameters(),
    ]
    assert {tensor.place for tensor in made_there} == {GPU}
    assert all(on_device(tensor.array) for tensor in made_there)
    assert fluid.framework._current_expected_place() == GPU
    with dygraph.guard(CPU):
        assert to_variable(np.ones(1)).place == CPU and layers.zeros([1], "float32").place == CPU
    with dygraph.guard():  # goes on with what was chosen
        assert to_variable(np.ones(1)).place == GPU


def test_place_ends_with_the_guard(cuda):
    for place, expected in ((GPU, GPU), (CPU, CPU)):
        fluid.enable_dygraph(place)
        try:
            assert to_variable(np.ones(1)).place == expected
        finally:
            fluid.disable_dygraph()
    with dygraph.guard():
        assert to_variable(np.ones(1)).place == CPU
    with (
        pytest.raises(ValueError, match=r"CUDAPlace\(77\) does not exist"),
        dygraph.guard(fluid.CUDAPlace(77)),
    ):
        pass


def test_device_policy_says_where_things_are_without_a_place(cuda, monkeypatch):
    monkeypatch.setattr(flags, "_device", "gpu")
    with dygraph.guard():
        assert made([1.0]).place == GPU and dygraph.Linear(1, 1).weight.place == GPU
    assert fluid.Executor().place == GPU
    monkeypatch.setattr(flags, "_device", "cpu")
    with dygraph.guard(GPU):
        assert made([1.0]).place == CPU
    assert fluid.Executor().place == CPU


def test_same_seed_same_initial_values_as_on_the_cpu(cuda):
    found = {}
    for place in (CPU, GPU):
        with dygraph.guard(place):
            fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 7
            tensors = [
                *dygraph.Conv2D(2, 3, 3).parameters(),
                dygraph.Linear(
                    4, 3, param_attr=fluid.ParamAttr(initializer=fluid.initializer.Normal(0.0, 2.0, seed=5))
                ).weight,
                layers.gaussian_random([6], seed=11),
                layers.uniform_random([2, 3], seed=4),
            ]
            found[place] = [tensor.numpy() for tensor in tensors]
    for here, there in zip(found[CPU], found[GPU], strict=True):
        np.testing.assert_array_equal(here, there)


def computed(place):
    """Results and gradients of several operators, as arrays."""
    with dygraph.guard(place):
        x, w, b = made(numbers(4, 6)), made(numbers(6, 3, seed=1)), made(numbers(3, seed=2))
        hidden = layers.tanh(layers.matmul(x, w) + b)
        parts = layers.split(layers.concat([hidden, x], 1), 3, dim=1)
        last = layers.reshape(layers.transpose(parts[1], [1, 0]), [-1])
        loss = layers.mean(layers.exp(last) * 0.5 + layers.reduce_sum(layers.sqrt(parts[0]), dim=[0, 1]))
        dx = fluid.dygraph.grad(loss, x, create_graph=True)[0]
        total = loss + layers.reduce_sum(layers.square(dx))
        total.backward()
        assert {t.place for t in (hidden, last, loss, dx, total, x.grad)} == {place}
        return [t.numpy() for t in (hidden, last, loss, dx, total)] + [t.gradient() for t in (x, w, b)]


def test_results_and_gradients_are_those_of_the_cpu(cuda):
    for here, there in zip(computed(CPU), computed(GPU), strict=True):
        assert type(there) is type(here) and there.dtype == here.dtype
        np.testing.assert_allclose(there, here, rtol=2e-5, atol=1e-6)


def test_forms_serve_host_and_device_alike(gpu):
    there, here = made([[1.0, 2.0]]), made([[3.0, 4.0]], place=CPU)
    for _ in range(3):
        for tensor, place, expected in ((there, GPU, [[2, 4]]), (here, CPU, [[6, 8]])):
            out = tensor + tensor
            assert out.place == place and out.numpy().tolist() == expected


def test_operators_follow_the_device_and_gradients_go_back(gpu):
    there, here = made([[1.0, 2.0], [3.0, 4.0]]), made([[5.0], [6.0]], place=CPU)
    scaled = here * 2.0
    out = layers.matmul(there, scaled)
    assert (scaled.place, out.place) == (CPU, GPU)
    out.backward()
    assert here.grad.place == CPU and here.gradient().tolist() == [[8], [12]]
    assert there.grad.place == GPU and there.gradient().tolist() == [[10, 12], [10, 12]]
    # Several uses, some here and some there.
    x = made([1.0, 2.0], place=CPU)
    (layers.reduce_sum(x * made([3.0, 4.0])) + layers.reduce_sum(x * x)).backward()
    assert x.gradient().tolist() == [5, 8]
    assert (there * np.ones((2, 2), "float32")).place == GPU


def test_two_gpus_are_named():
    with simulated(devices=2), dygraph.guard(fluid.CUDAPlace(1)):
        first, second = made([1.0], place=GPU), made([2.0])
        assert (first.place, second.place) == (GPU, fluid.CUDAPlace(1))
        with pytest.raises(
            OperatorError, match=r"elementwise_add: X is on CUDAPlace\(0\) and Y on CUDAPlace\(1\)"
        ):
            first + second
        total = first.cuda(1) + second
        assert total.place == fluid.CUDAPlace(1) and total.tolist() == [3]
        total.backward()
        assert first.grad.place == GPU and first.gradient().tolist() == [1]


def test_moving_between_places(gpu):
    x = made([1.0, 2.0])
    assert x.cuda() is x and x.cuda(0) is x
    here = x.cpu()
    assert here.place == CPU and here.cpu() is here and not here.stop_gradient
    back = (here * here).cuda()
    assert back.place == GPU
    layers.reduce_sum(back).backward()
    assert x.gradient().tolist() == [2, 4] and x.grad.place == GPU
    pinned = x.pin_memory()
    assert pinned.place == fluid.CUDAPinnedPlace() and pinned.numpy().tolist() == [1, 2]
    assert (pinned + pinned).place != GPU and pinned.pin_memory() is pinned and pinned.cuda().place == GPU


def test_copy_to_as_fluid_names_it(gpu):
    x = to_variable(np.ones(2, "float32"))
    x.stop_gradient = False
    copies = [x._copy_to(CPU, True), x.detach(), x._copy_to(GPU, False)]
    assert [c.name for c in copies] == [f"{x.name}{k}" for k in range(3)]
    assert [c.place for c in copies] == [CPU, GPU, GPU] and all(c.stop_gradient for c in copies)
    copies[2].set_value(np.zeros(2, "float32"))
    assert x.numpy().tolist() == [1, 1]
    with pytest.raises(TypeError, match="a place is"):
        x._copy_to("cpu", True)


def test_elements_on_the_host(gpu):
    x = made([[1.5, -2.0], [3.0, 4.0]])
    assert isinstance(x.numpy(), np.ndarray) and x.tolist() == [[1.5, -2], [3, 4]]
    assert np.array(x).tolist() == x.tolist() and np.asarray(x, "float64").dtype == np.float64
    one = made([7.0])
    assert (float(one), int(one), bool(one), one.item(), float(one.numpy())) == (7, 7, True, 7, 7)
    assert x.item(1, 0) == 3 and len(x) == 2 and [row.tolist() for row in x] == x.tolist()
    assert [10, 20, 30][made([1], "int64", False)] == 20
    assert "place=CUDAPlace(0)" in repr(x) and "data: [1.5 -2 3 4]" in str(x)
    assert (x.shape, x.dtype, x.ndim, x.size) == ([2, 2], fluid.core.VarDesc.VarType.FP32, 2, 4)
    # What is read is a copy.
    x.numpy()[0, 0] = 9
    assert x.item(0, 0) == 1.5


def test_source_may_change_once_the_tensor_is_made(gpu):
    source = np.arange(1000, dtype="float32")
    x = to_variable(source)
    source[:] = -1
    assert x.numpy().tolist() == list(range(1000))


def test_set_value_keeps_the_memory(gpu):
    x = made([1.0, 2.0])
    before, place = x.array, x.array.data.ptr
    x.set_value(np.array([3, 4], "float32"))
    assert x.tolist() == [3, 4]
    x.set_value(made([5.0, 6.0]))
    assert x.tolist() == [5, 6]
    x.set_value(made([7.0, 8.0], place=CPU))
    assert x.tolist() == [7, 8] and x.array is before and x.array.data.ptr == place
    here = made([0.0, 0.0], place=CPU)
    here.set_value(x)
    assert here.place == CPU and here.tolist() == [7, 8]
    for wrong in (np.zeros(3, "float32"), np.zeros(2, "float64")):
        with pytest.raises(AssertionError, match="not match"):
            x.set_value(wrong)
    assert x.tolist() == [7, 8]


def test_views_and_copies(gpu):
    x = made([[1.0, 2.0], [3.0, 4.0]])
    flat = layers.reshape(x, [4])
    assert flat.array.data.ptr == x.array.data.ptr
    x.persistable = True
    copied = layers.reshape(x, [4])
    assert copied.array.data.ptr != x.array.data.ptr
    twin, same = copy.deepcopy(x), flat.detach()
    x.set_value(np.zeros((2, 2), "float32"))
    assert twin.tolist() == [[1, 2], [3, 4]] and twin.place == GPU and same.tolist() == [0] * 4
    assert copied.tolist() == [1, 2, 3, 4]
    parameter = dygraph.Linear(2, 2).weight
    assert parameter.detach().array.data.ptr != parameter.array.data.ptr


def test_gradients_that_are_cleared_set_and_hooked(gpu):
    x = made([1.0, 2.0])
    seen = []
    x.register_hook(lambda gradient: seen.append(gradient.place) or gradient * 2.0)
    between = x * x
    between.register_hook(lambda gradient: seen.append(gradient.tolist()))
    layers.reduce_sum(between * 3.0).backward()
    assert seen == [[3, 3], GPU] and x.gradient().tolist() == [12, 24]
    x.clear_gradient()
    assert x.gradient().tolist() == [0, 0] and x.grad.place == GPU
    x.grad = np.array([1, 2], "float32")
    assert x.grad.place == GPU and x.gradient().tolist() == [1, 2]
    with pytest.raises(ValueError, match="must have shape"):
        x.grad = np.zeros(3, "float32")


def test_gradients_add_up_across_places(gpu):
    x = made([1.0, 2.0])
    weights = [made([1.0, 1.0], place=place, grad=False) for place in (GPU, CPU)]
    sum((layers.reduce_sum(x * weight) for weight in weights), made([0.0], grad=False)).backward()
    assert x.gradient().tolist() == [2, 2]


def test_sparse_gradients_stay_on_the_device(gpu):
    table = dygraph.Embedding([6, 2], is_sparse=True)
    ids = [made([[1], [3]], "int64", False), made([[3], [5]], "int64", False, place=CPU)]
    layers.reduce_sum(table(ids[0]) * 2.0 + table(ids[1])).backward()
    found = table.weight.grad_array
    assert isinstance(found, SelectedRows) and on_device(found.values) and on_device(found.rows)
    values, rows = table.weight.gradient()
    dense = np.zeros((6, 2), "float32")
    np.add.at(dense, rows, values)
    assert dense[:, 0].tolist() == [0, 2, 0, 3, 0, 1]
    np.testing.assert_array_equal(table.weight.grad.numpy(), dense)
    # Rows and a whole table.
    layers.reduce_sum(table.weight * 1.0 + 0.0 * layers.reduce_sum(table(ids[0]))).backward()
    assert table.weight.gradient()[2].tolist() == [1, 1]


@pytest.mark.parametrize(
    "read",
    [Tensor.numpy, Tensor.cpu, Tensor.pin_memory, lambda tensor: tensor._copy_to(CPU)],
    ids=["numpy", "cpu", "pin_memory", "_copy_to"],
)
def test_ids_out_of_range_are_reported_when_something_is_read(gpu, read):
    logits = made(numbers(2, 3))
    loss = layers.softmax_with_cross_entropy(logits, made([[1], [3]], "int64", False))
    with pytest.raises(OperatorError, match=r"Label must be in \[0, 3\).*got 3 at position 1"):
        read(loss)
    assert layers.softmax(logits).numpy().shape == (2, 3)  # said once


def test_operators_that_ask_for_values_get_them(gpu):
    shape = made([3, 2], "int32", False)
    assert layers.reshape(made(numbers(6)), shape).shape == [3, 2]
    assert layers.fill_constant(shape, "float32", 2.0).tolist() == [[2, 2]] * 3
    assert layers.where(made([[True, False], [True, True]], "bool", False)).tolist() == [
        [0, 0],
        [1, 0],
        [1, 1],
    ]


def test_random_operators_with_inputs_draw_on_the_device(gpu):
    x = made(np.ones((50, 40)))
    out = layers.dropout(x, 0.25, dropout_implementation="upscale_in_train")
    kept = out.numpy() != 0
    assert out.place == GPU and 0.65 < kept.mean() < 0.85
    layers.reduce_sum(out).backward()
    np.testing.assert_allclose(x.gradient(), np.where(kept, 1 / 0.75, 0), rtol=1e-6)
    assert not np.array_equal(layers.dropout(x, 0.25).numpy() != 0, kept)


def test_arrays_of_cupy_become_tensors(gpu):
    array = gpu.arange(6, dtype="float32").reshape(2, 3)
    x = eager.to_variable(array)
    array[...] = 0
    assert x.place == GPU and x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert dygraph.to_variable(array).tolist() == [[0, 0, 0]] * 2


def test_pylayers_and_lists_of_tensors(gpu):
    outs = layers.unstack(made(numbers(3, 2)), axis=0)
    layers.sums(outs).backward()
    assert [out.place for out in outs] == [GPU] * 3


def test_threads_share_a_device(gpu):
    def work(seed):
        with dygraph.guard(GPU):
            x = made(numbers(5, 5, seed=seed))
            for _ in range(5):
                x = layers.tanh(layers.matmul(x, x))
            return x.numpy()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(8)))
    for seed, there in enumerate(found):
        np.testing.assert_allclose(there, work(seed), rtol=1e-6)


def test_steps_bring_nothing_to_the_host_until_something_is_read(simulation):
    with dygraph.guard(GPU):
        net = dygraph.Sequential(dygraph.Linear(4, 5, act="relu"), dygraph.Linear(5, 2))
        update = fluid.optimizer.Adam(0.1, parameter_list=net.parameters())
        x = to_variable(numbers(3, 4))
        for step in range(4):
            if step == 2:  # the accumulators are made
                simulation.counters.reset()
            loss = layers.mean(layers.square(net(x)))
            loss.backward()
            update.minimize(loss)
            net.clear_gradients()
        # Updates wait for the last but one before them, so that the host does not run away; nothing else waits.
        assert simulation.counters.syncs <= 2 and not simulation.counters.copies
        assert np.isfinite(float(loss))
        assert simulation.counters.copies["d2h"] == 1


def test_a_full_gpu_is_a_memory_error_and_harms_nothing():
    with simulated(memory=1 << 20), dygraph.guard(GPU):
        x = made(np.ones((100, 100)))
        with pytest.raises(MemoryError, match=r"operator expand on GPU 0.*MiB free"):
            layers.expand(x, [20, 20])
        with pytest.raises(MemoryError, match=r"GPU 0.*4,000,000 bytes.*MiB free"):
            to_variable(np.ones((1000, 1000), "float32"))
        layers.reduce_sum(x * 2.0).backward()
        assert x.gradient().mean() == 2


def test_without_a_gpu_places_mean_the_cpu(monkeypatch):
    from fluidlite.base import place

    monkeypatch.setattr(place, "_count", lambda: 0)
    monkeypatch.setattr(place, "_warned", True)
    with dygraph.guard(GPU):
        x = made([1.0])
        assert x.place == CPU and x.cuda().place == CPU and x.pin_memory().place == CPU
        assert type((x + x).array) is np.ndarray
        assert isinstance(x.cuda(), Tensor)
