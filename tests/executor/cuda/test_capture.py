"""Steps on a GPU as CUDA graphs: capture, new capture after changes, and errors."""

import dataclasses
import threading

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.backend import device_at
from fluidlite.backend.cupy_.recording import NotCapturable, Recording
from fluidlite.ops import host_fallback, registry

from ...refusals import refuses
from ...simulated_cuda import simulated
from .programs import Net, batches
from .test_steps import TOLERANCE


def described(net):
    return net.executor.describe(net.main, net.scope)


def test_description_before_and_after_recording(gpu):
    net = Net(gpu)
    assert described(net) == "this program has not run in this scope"
    net.step(batches(1)[0])
    assert "will be captured in its next step" in described(net)
    net.step(batches(1)[0])
    text = described(net)
    assert "launches on GPU 0 for x[4, 6], y[4, 1]; one CUDA graph" in text
    assert "cross_entropy" in text


def test_description_on_the_cpu_and_of_other_objects(gpu):
    net = Net(fluid.CPUPlace())
    net.step(batches(1)[0])
    assert "instructions on the CPU" in described(net)
    refuses(lambda: net.executor.describe(3), TypeError, "Program")


def test_variables_with_new_memory_are_captured_anew(simulation):
    net, plain = Net(fluid.CUDAPlace(0)), Net(fluid.CPUPlace())
    for number, batch in enumerate(batches(8)):
        if number == 4:
            value = np.full((6, 8), 0.1, "float32")
            for each in (net, plain):
                each.scope.find_var("fc_0.w_0").set(fluid.core.LoDTensor())
                each.tensor("fc_0.w_0").set(value)
        np.testing.assert_allclose(net.step(batch)[0], plain.step(batch)[0], **TOLERANCE)
    assert simulation.counters.captures == 2


def test_values_set_into_a_variable_keep_its_memory_and_the_graph(simulation):
    net, plain = Net(fluid.CUDAPlace(0)), Net(fluid.CPUPlace())
    for number, batch in enumerate(batches(6)):
        if number == 4:
            for each in (net, plain):
                address = each.tensor("fc_0.w_0").array
                each.tensor("fc_0.w_0").set(np.full((6, 8), 0.1, "float32"), each.executor.place)
                assert each.tensor("fc_0.w_0").array is address
        np.testing.assert_allclose(net.step(batch)[0], plain.step(batch)[0], **TOLERANCE)
    assert simulation.counters.captures == 1


def test_places_may_alternate(gpu):
    net, plain = Net(gpu), Net(fluid.CPUPlace())
    host = fluid.Executor(fluid.CPUPlace())
    for number, batch in enumerate(batches(10)):
        expected = plain.step(batch)[0]
        executor = host if number in (3, 4, 7) else net.executor
        found = executor.run(net.main, batch, [net.loss], scope=net.scope)[0]
        np.testing.assert_allclose(found, expected, **TOLERANCE)
    host.run(net.test, batches(1)[0], [net.loss.name], scope=net.scope)
    assert type(net.tensor("fc_0.w_0").array) is np.ndarray


def test_graphs_can_be_switched_off(gpu, monkeypatch):
    monkeypatch.setenv("FLUIDLITE_CUDA_GRAPHS", "0")
    net, plain = Net(gpu), Net(fluid.CPUPlace())
    np.testing.assert_allclose(net.losses(4), plain.losses(4), **TOLERANCE)
    assert "not captured: FLUIDLITE_CUDA_GRAPHS=0" in described(net)


def test_initial_values_drawn_in_a_step_come_from_the_host(gpu):
    def noise(hidden):
        return hidden + layers.create_parameter([8], "float32", name="noise")

    net, plain = Net(gpu, before_loss=noise), Net(fluid.CPUPlace(), before_loss=noise)
    for each in (net, plain):
        block = each.main.global_block()
        block.append_op(
            type="uniform_random",
            outputs={"Out": [block.var("noise")]},
            attrs={"shape": [8], "seed": 3, "dtype": int(fluid.core.VarDesc.VarType.FP32)},
        )
    np.testing.assert_allclose(net.losses(3), plain.losses(3), **TOLERANCE)
    np.testing.assert_array_equal(net.parameters()["noise"], plain.parameters()["noise"])
    assert "not captured: operator uniform_random draws numbers on the host" in described(net)


def replace_kernel(monkeypatch, name, kernel):
    """Replace all kernels of operator `name` by `kernel`."""
    found = registry.find(name)
    dispatch = dataclasses.replace(found.dispatch, cuda=None)
    made = dataclasses.replace(found, kernel=kernel, dispatch=dispatch, native=None)
    monkeypatch.setitem(registry._OPS, name, made)


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (
            lambda xp, X: X + xp.asarray(np.full(X.shape, 0.5, "float32")),
            "copies numbers of the host to the GPU",
        ),
        (lambda xp, X: X + float(xp.abs(X).max()), "stream is capturing"),
        (lambda xp, X: X[X.sum(axis=1) != 0], "stream is capturing"),
    ],
    ids=["copies", "waits", "counts"],
)
def test_kernels_that_need_the_host_run_uncaptured(gpu, monkeypatch, kernel, reason):
    replace_kernel(monkeypatch, "tanh", kernel)
    net, plain = (Net(place, before_loss=layers.tanh) for place in (gpu, fluid.CPUPlace()))
    np.testing.assert_allclose(net.losses(4), plain.losses(4), **TOLERANCE)
    assert "not captured: operator tanh" in described(net)
    assert reason in described(net)
    other = Net(gpu)
    other.losses(3)
    assert "one CUDA graph" in described(other)


def test_operators_on_the_host_are_found_before_the_first_step(simulation, monkeypatch):
    replace_kernel(monkeypatch, "tanh", host_fallback.hosted(lambda xp, X: np.tanh(X)))
    net, plain = (Net(p, before_loss=layers.tanh) for p in (fluid.CUDAPlace(0), fluid.CPUPlace()))
    np.testing.assert_allclose(net.losses(3), plain.losses(3), **TOLERANCE)
    assert "not captured: operator tanh works on the host" in described(net)
    assert simulation.counters.captures == 0


def test_printing_programs_are_run_by_the_interpreter(gpu, capsys):
    net = Net(gpu, before_loss=lambda hidden: layers.Print(hidden, message="here"))
    plain = Net(fluid.CPUPlace())
    np.testing.assert_allclose(net.losses(3), plain.losses(3), **TOLERANCE)
    assert capsys.readouterr().out.count("here\tThe place is:CUDAPlace") >= 3
    assert "run by the interpreter: operator print" in described(net)


def test_a_step_without_memory_leaves_the_variables_unchanged():
    with simulated(memory=1 << 20):
        net = Net(fluid.CUDAPlace(0))
        for batch in batches(3):
            net.step(batch)
        before = net.parameters()
        big = batches(1, rows=50_000)[0]
        refuses(lambda: net.step(big), MemoryError, "GPU has")
        for name, value in net.parameters().items():
            np.testing.assert_array_equal(value, before[name])
        plain = Net(fluid.CPUPlace())
        for batch in batches(3):
            plain.step(batch)
        after = batches(1, seed=9)[0]
        np.testing.assert_allclose(net.step(after)[0], plain.step(after)[0], **TOLERANCE)


def test_idle_plans_free_their_memory():
    taken = []
    with simulated(memory=1 << 28) as simulation:
        net = Net(fluid.CUDAPlace(0))
        for rows in (400, 401):
            for _ in range(3):
                net.step(batches(1, rows)[0])
            free, total = simulation.cupy.cuda.runtime.memGetInfo()
            taken.append(total - free)
    plain = Net(fluid.CPUPlace())
    with simulated(memory=sum(taken) // 2):  # enough for one and a half
        net = Net(fluid.CUDAPlace(0))
        for rows in (400, 401, 400):
            for _ in range(3):
                batch = batches(1, rows)[0]
                np.testing.assert_allclose(net.step(batch)[0], plain.step(batch)[0], rtol=1e-4)
        assert described(net).count("one CUDA graph") == 1


def test_memory_limits(monkeypatch):
    monkeypatch.setenv("FLAGS_gpu_memory_limit_mb", "1")
    with simulated():
        net = Net(fluid.CUDAPlace(0))
        net.step(batches(1)[0])
        refuses(lambda: net.step(batches(1, rows=50_000)[0]), MemoryError)
    monkeypatch.setenv("FLAGS_gpu_memory_limit_mb", "a lot")
    with simulated(), pytest.raises(ValueError, match="FLAGS_gpu_memory_limit_mb must be"):
        fluid.Executor(fluid.CUDAPlace(0))


@pytest.mark.parametrize("version", ["13.6.0", "14.2.0"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_any_order_of_streams_gives_the_same_losses(version, seed):
    plain = Net(fluid.CPUPlace())
    with simulated(cupy_version=version, seed=seed):
        np.testing.assert_allclose(Net(fluid.CUDAPlace(0)).losses(6), plain.losses(6), **TOLERANCE)


def test_each_gpu_has_its_own_plans():
    with simulated(devices=2):
        net, plain = Net(fluid.CUDAPlace(1)), Net(fluid.CPUPlace())
        second = fluid.Executor(fluid.CUDAPlace(0))
        for number, batch in enumerate(batches(7)):
            executor = second if number == 4 else net.executor
            found = executor.run(net.main, batch, [net.loss], scope=net.scope)[0]
            np.testing.assert_allclose(found, plain.step(batch)[0], **TOLERANCE)
        assert "on GPU 0" in described(net)
        assert "on GPU 1" in described(net)
        with pytest.raises(ValueError, match=r"CUDAPlace\(2\) does not exist: there are CUDAPlace"):
            fluid.Executor(fluid.CUDAPlace(2))


def test_a_compiled_program_runs_on_the_place_it_was_compiled_for(gpu):
    net, plain = Net(gpu), Net(fluid.CPUPlace())
    compiled = fluid.CompiledProgram(net.main).with_data_parallel(loss_name=net.loss.name, places=[gpu])
    for executor in (net.executor, fluid.Executor(fluid.CPUPlace()), net.executor):
        batch = batches(1)[0]
        found = executor.run(compiled, batch, [net.loss], scope=net.scope)[0]
        np.testing.assert_allclose(found, plain.step(batch)[0], **TOLERANCE)
    assert "instructions on the CPU" not in described(net)


def test_dropped_plans_free_their_memory(simulation):
    device = device_at(fluid.CUDAPlace(0))
    net = Net(fluid.CUDAPlace(0))
    for rows in range(1, 56):
        for _ in range(2):
            net.step(batches(1, rows)[0])
        if rows == 36:
            settled = device.xp.cuda.runtime.memGetInfo()[0]
    assert device.xp.cuda.runtime.memGetInfo()[0] > settled - (1 << 20)


class TestRecording:
    def test_it_ends_when_the_work_fails_and_nothing_is_computed(self, gpu):
        device = device_at(gpu)
        array = device.put(np.zeros(3, "float32"))
        stream = device.xp.cuda.Stream(non_blocking=True)

        def work():
            array[...] = 1
            raise KeyError("x")

        refuses(lambda: Recording(device, work, stream), KeyError)
        assert device.recording is None
        np.testing.assert_array_equal(device.get(array), np.zeros(3))

        def fill():
            array[...] = 2

        recording = Recording(device, fill, stream)
        np.testing.assert_array_equal(device.get(array), np.zeros(3))
        with device.active():
            recording.launch()
        np.testing.assert_array_equal(device.get(array), np.full(3, 2))

    def test_values_cannot_be_had_and_constants_can(self, gpu):
        device = device_at(gpu)
        array = device.put(np.ones(3, "float32"))
        stream = device.xp.cuda.Stream(non_blocking=True)
        for wait in (lambda: device.get(array), device.synchronize):
            with pytest.raises(NotCapturable, match="on the host"):
                Recording(device, wait, stream)

        def add():
            array[...] = array + device.put(np.array([1, 2, 3], "float32"))

        recording = Recording(device, add, stream)
        device.put(np.zeros(3, "float32"))
        for _ in range(2):
            with device.active():
                recording.launch()
        np.testing.assert_array_equal(device.get(array), [3, 5, 7])

    def test_work_of_other_threads_is_not_recorded(self, gpu):
        device = device_at(gpu)
        mine, other = (device.put(np.zeros(2, "float32")) for _ in range(2))

        def elsewhere():
            device.overwrite(other, np.ones(2, "float32"))
            device.synchronize()

        def work():
            mine[...] = 1
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()

        recording = Recording(device, work, device.xp.cuda.Stream(non_blocking=True))
        np.testing.assert_array_equal(device.get(other), np.ones(2))
        device.overwrite(other, np.zeros(2, "float32"))
        with device.active():
            recording.launch()
        np.testing.assert_array_equal(device.get(mine), np.ones(2))
        np.testing.assert_array_equal(device.get(other), np.zeros(2))
