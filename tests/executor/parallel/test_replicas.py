"""CompiledProgram.with_data_parallel over several GPUs."""

import warnings

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import unique_name
from tests.simulated_cuda import simulated

L = fluid.layers
NAMES = ["fc_0.w_0", "fc_0.b_0", "fc_1.w_0"]


@pytest.fixture
def two_gpus():
    with simulated(devices=2) as machine:
        yield machine


def batch(rows, seed=0):
    rng = np.random.RandomState(seed)
    return {
        "x": rng.uniform(-1, 1, (rows, 4)).astype("float32"),
        "y": rng.uniform(-1, 1, (rows, 1)).astype("float32"),
    }


def network(optimizer, sparse=False):
    x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 1], "float32")
    hidden = L.fc(x, 3, act="tanh")
    if sparse:
        ids = L.cast(L.slice(x, [1], [0], [1]) > 0, "int64")
        hidden = hidden + fluid.embedding(ids, [2, 3], is_sparse=True)[:, 0]
    loss = L.reduce_mean(L.square_error_cost(L.fc(hidden, 1), y))
    optimizer.minimize(loss)
    return loss


def trained(places, steps=4, sparse=False, scope=None):
    """Losses and parameters after some steps of 12 rows, from a seed."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), unique_name.guard(), fluid.scope_guard(scope or fluid.Scope()):
        loss = network(fluid.optimizer.Momentum(0.1, 0.9), sparse)
        exe = fluid.Executor(places[0])
        exe.run(startup)
        program = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, places=places)
        losses = [exe.run(program, feed=batch(12, k), fetch_list=[loss])[0] for k in range(steps)]
        found = fluid.global_scope()
        return losses, {name: np.array(found.find_var(name).get_tensor()) for name in NAMES}


@pytest.mark.parametrize("sparse", [False, True])
def test_gpus_train_like_cpu_places(two_gpus, sparse):
    ours = trained(fluid.cuda_places(), sparse=sparse)
    host = trained(fluid.cpu_places(2), sparse=sparse)
    np.testing.assert_allclose(ours[0], host[0], rtol=1e-5)
    for name in NAMES:
        np.testing.assert_allclose(ours[1][name], host[1][name], rtol=1e-5, atol=1e-7)


def test_replicas_stay_equal_and_follow_loaded_values(two_gpus, alone):
    loss = network(fluid.optimizer.Adam(0.01))
    places = fluid.cuda_places()
    exe = fluid.Executor(places[0])
    exe.run(fluid.default_startup_program())
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss_name=loss.name, places=places
    )
    scope = fluid.global_scope()

    def both():
        first, second = (s.find_var("fc_0.w_0").get_tensor() for s in program._runner.scopes)
        assert second is not first
        return np.array(first), np.array(second)

    for k in range(3):
        exe.run(program, feed=batch(8, k), fetch_list=[loss])
        np.testing.assert_array_equal(*both())
    scope.find_var("fc_0.w_0").get_tensor().set(np.full((4, 3), 0.5, "float32"), places[0])
    exe.run(program, feed=batch(8), fetch_list=[loss])
    np.testing.assert_array_equal(*both())
    assert abs(both()[0] - 0.5).max() < 0.02
    exe.run(fluid.default_startup_program())
    exe.run(program, feed=batch(8), fetch_list=[loss])
    np.testing.assert_array_equal(*both())


def test_gradients_are_summed_without_nccl_with_a_warning(two_gpus, monkeypatch):
    from fluidlite.backend.cupy_ import library

    wanted = trained(fluid.cuda_places())
    monkeypatch.setattr(library, "nccl", lambda: None)
    with pytest.warns(RuntimeWarning, match=r"libnccl.*added up on the first one"):
        found = trained(fluid.cuda_places())
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-6)


def test_a_test_program_reads_trained_parameters(two_gpus, alone):
    loss = network(fluid.optimizer.SGD(0.0))
    test = fluid.default_main_program().clone(for_test=True)._prune([loss.name], ["x", "y"])
    places = fluid.cuda_places()
    exe = fluid.Executor(places[0])
    exe.run(fluid.default_startup_program())
    train = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss_name=loss.name, places=places
    )
    evaluate = fluid.CompiledProgram(test).with_data_parallel(share_vars_from=train, places=places)
    wanted = exe.run(train, feed=batch(8), fetch_list=[loss])[0]
    np.testing.assert_allclose(exe.run(evaluate, feed=batch(8), fetch_list=[loss])[0], wanted, rtol=1e-6)
    tensor = fluid.global_scope().find_var("fc_1.w_0").get_tensor()
    tensor.set(np.array(tensor) * 2, places[0])
    after = exe.run(evaluate, feed=batch(8), fetch_list=[loss])[0]
    assert (abs(after - wanted) > 1e-4).all()
    np.testing.assert_allclose(exe.run(train, feed=batch(8), fetch_list=[loss])[0], after, rtol=1e-6)


def test_a_gpu_can_be_named_once(two_gpus, alone):
    loss = network(fluid.optimizer.SGD(0.1))
    places = [fluid.CUDAPlace(1), fluid.CUDAPlace(1)]
    exe = fluid.Executor(places[0])
    exe.run(fluid.default_startup_program())
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss_name=loss.name, places=places
    )
    with pytest.raises(ValueError, match=r"once, got \[1, 1\]"):
        exe.run(program, feed=batch(4), fetch_list=[loss])


def test_readers_give_each_gpu_its_batch(two_gpus, alone):
    x = fluid.data("x", [None, 2], "float32")
    loader = fluid.io.DataLoader.from_generator([x], capacity=4, iterable=False)
    out = L.scale(x, 2.0)
    loader.set_batch_generator(lambda: ([np.full((3, 2), k, "float32")] for k in range(7)))
    places = fluid.cuda_places()
    exe = fluid.Executor(places[0])
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(places=places)
    for _ in range(2):
        loader.start()
        seen = []
        with pytest.raises(fluid.core.EOFException):
            while True:
                seen.append(exe.run(program, fetch_list=[out])[0])
        loader.reset()
        assert [part[::3, 0].tolist() for part in seen] == [[0, 2], [4, 6], [8, 10]]


def test_a_missing_library_raises_one_warning(two_gpus, monkeypatch):
    from fluidlite.backend.cupy_ import library
    from fluidlite.backend.cupy_.collective import Group
    from fluidlite.backend.cupy_.device import device

    monkeypatch.setattr(library, "nccl", lambda: warnings.warn("of CuPy", stacklevel=2))
    with pytest.warns(RuntimeWarning) as found:
        group = Group([device(0), device(1)])
    assert not group.uses_nccl and len(found) == 1
