"""Tensors on GPUs: where `set` puts them, what reads them on the host, saving and loading."""

import io

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.backend import on_device
from fluidlite.backend.cupy_.pools import is_pinned
from fluidlite.executor.tensor_files import read_tensors, write_tensor

from .programs import Net, batches
from .test_steps import TOLERANCE

VALUES = np.arange(6, dtype="float32").reshape(2, 3)


@pytest.fixture
def tensor(gpu):
    made = fluid.LoDTensor()
    made.set(VALUES, gpu)
    return made


def test_set_puts_elements_at_the_given_place(gpu):
    tensor = fluid.LoDTensor()
    for place, array in ((gpu, VALUES), (fluid.CPUPlace(), VALUES[:1]), (fluid.CUDAPinnedPlace(), VALUES)):
        tensor.set(array, place)
        assert tensor._place() == place
        np.testing.assert_array_equal(tensor.numpy(), array)
    assert is_pinned(tensor.array)
    tensor.set(VALUES + 1, gpu)
    assert on_device(tensor.array)
    tensor.set((VALUES + 1) * 2, fluid.CPUPlace())
    assert on_device(tensor.array), "the layout is the same, so that the memory is kept"
    np.testing.assert_array_equal(tensor.numpy(), (VALUES + 1) * 2)


def test_set_keeps_the_address_where_shape_and_dtype_stay(gpu, tensor):
    address = tensor.array.data.ptr
    for place in (gpu, None, fluid.CPUPlace()):
        tensor.set(VALUES * 2, place)
        assert tensor.array.data.ptr == address
    np.testing.assert_array_equal(tensor.numpy(), VALUES * 2)
    tensor.set(VALUES.astype("float64"), gpu)
    assert tensor.array.dtype == np.float64


def test_set_copies_arrays_of_a_device(gpu, cuda, tensor):
    given = cuda.asarray(VALUES + 5)
    for place in (gpu, fluid.CUDAPinnedPlace(), None):
        tensor.set(given, place)
        np.testing.assert_array_equal(tensor.numpy(), VALUES + 5)
    given[...] = 0
    assert tensor.numpy()[0, 0] == 5


def test_the_host_reads_copies(tensor):
    np.testing.assert_array_equal(np.array(tensor), VALUES)
    np.testing.assert_array_equal(np.asarray(tensor, "float64"), VALUES)
    assert tensor.shape() == [2, 3]
    assert len(tensor) == 2
    assert "place=CUDAPlace(0)" in repr(tensor)
    assert "[3. 4. 5.]" in repr(tensor)
    with pytest.raises(ValueError, match="without a copy"):
        np.array(tensor, copy=False)


def test_files_hold_the_same_bytes(tensor):
    here = fluid.LoDTensor()
    here.set(VALUES, fluid.CPUPlace())
    files = []
    for each in (tensor, here):
        each.set_lod([[0, 1, 2]])
        file = io.BytesIO()
        write_tensor(file, each)
        files.append(file.getvalue())
    assert files[0] == files[1]
    found = read_tensors(io.BytesIO(files[0]), ["a"], "bytes")["a"]
    np.testing.assert_array_equal(found.array, VALUES)


@pytest.mark.parametrize("saved_on", ["cpu", "gpu"])
def test_training_goes_on_from_files_on_the_other_place(gpu, tmp_path, saved_on):
    places = {"cpu": fluid.CPUPlace(), "gpu": gpu}
    other = places["gpu" if saved_on == "cpu" else "cpu"]
    net, plain = Net(places[saved_on]), Net(fluid.CPUPlace())
    for batch in batches(3):
        for each in (net, plain):
            each.step(batch)
    with fluid.scope_guard(net.scope):
        fluid.io.save_persistables(net.executor, str(tmp_path / "folder"), net.main)
        fluid.save(net.main, str(tmp_path / "model"))
    for load in ("load_persistables", "load"):
        resumed = Net(other, seed=99)
        resumed.step(batches(1)[0])
        with fluid.scope_guard(resumed.scope):
            if load == "load":
                fluid.load(resumed.main, str(tmp_path / "model"), resumed.executor)
            else:
                fluid.io.load_persistables(resumed.executor, str(tmp_path / "folder"), resumed.main)
        follow = Net(fluid.CPUPlace())
        for batch in [*batches(3), *batches(4, seed=5)]:
            expected = follow.step(batch)[0]
        for batch in batches(4, seed=5):
            found = resumed.step(batch)[0]
        np.testing.assert_allclose(found, expected, **TOLERANCE)


def test_inference_models(gpu, tmp_path):
    net = Net(gpu)
    net.losses(3)
    scores = net.test.global_block().ops[-3].input_arg_names
    target = [net.test.global_block().var(name) for name in scores if "softmax" in name or "tmp" in name][-1]
    with fluid.scope_guard(net.scope):
        fluid.io.save_inference_model(str(tmp_path), ["x"], [target], net.executor, net.test)
    batch = {"x": batches(1)[0]["x"]}
    results = []
    for place in (gpu, fluid.CPUPlace()):
        with fluid.scope_guard(fluid.Scope()):
            executor = fluid.Executor(place)
            program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path), executor)
            assert feeds == ["x"]
            for _ in range(3):
                found = executor.run(program, batch, fetches)
            results.append(found[0])
    np.testing.assert_allclose(results[0], results[1], **TOLERANCE)


def test_sequences_are_run_by_the_interpreter_on_the_device(gpu):
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = 3
    with fluid.program_guard(main, startup):
        words = fluid.data("words", [None, 1], "int64", lod_level=1)
        rows = layers.embedding(words, [10, 4])
        pooled = layers.sequence_pool(rows, "average")
        loss = layers.mean(layers.fc(pooled, 2))
        fluid.optimizer.SGD(0.1).minimize(loss)
    found = {}
    for place in (fluid.CPUPlace(), gpu):
        with fluid.scope_guard(fluid.Scope()):
            executor = fluid.Executor(place)
            executor.run(startup)
            batch = fluid.create_lod_tensor(np.array([[1], [2], [7]], "int64"), [[2, 1]], place)
            values = [executor.run(main, {"words": batch}, [loss])[0].item() for _ in range(4)]
            (sequences,) = executor.run(main, {"words": batch}, [rows], return_numpy=False)
            assert sequences.lod() == [[0, 2, 3]]
            found[place] = values
    np.testing.assert_allclose(found[gpu], found[fluid.CPUPlace()], **TOLERANCE)


@pytest.mark.parametrize("sparse_by", ["SGD", "Adam", "Adagrad"])
def test_sparse_gradients(gpu, sparse_by):
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = 3
    with fluid.program_guard(main, startup):
        words = fluid.data("words", [None], "int64")
        label = fluid.data("label", [None, 1], "float32")
        rows = fluid.embedding(words, [50, 4], is_sparse=True)
        loss = layers.mean(layers.square_error_cost(layers.fc(rows, 1), label))
        getattr(fluid.optimizer, sparse_by)(learning_rate=0.1).minimize(loss)
    rng = np.random.RandomState(0)
    feeds = [
        {"words": rng.randint(0, 9, 6).astype("int64"), "label": rng.randn(6, 1).astype("float32")}
        for _ in range(5)
    ]
    found = []
    for place in (fluid.CPUPlace(), gpu):
        with fluid.scope_guard(fluid.Scope()):
            executor = fluid.Executor(place)
            executor.run(startup)
            found.append([executor.run(main, feed, [loss])[0].item() for feed in feeds])
    np.testing.assert_allclose(found[1], found[0], **TOLERANCE)


def test_selected_gpus(monkeypatch, gpu):
    assert fluid.is_compiled_with_cuda()
    assert fluid.core.get_cuda_device_count() >= 1
    monkeypatch.setenv("FLAGS_selected_gpus", "0")
    assert fluid.cuda_places() == [fluid.CUDAPlace(0)]
    for text in ("zero", "0,1000"):
        monkeypatch.setenv("FLAGS_selected_gpus", text)
        with pytest.raises(ValueError, match="FLAGS_selected_gpus must be"):
            fluid.cuda_places()
