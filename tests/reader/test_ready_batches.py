"""Batches that generators make: arrays that are filled again, and what `layers.data` and `fluid.data` take."""

from __future__ import annotations

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.errors import EnforceNotMet
from fluidlite.paddle import io as paddle_io

PLACE = fluid.CPUPlace()


pytestmark = pytest.mark.usefixtures("alone")


def refilled(arrays: int, batches: int = 20):
    """Batches 0, 1, 2, ... in a few arrays that are filled in turn."""

    def reader():
        memory = [np.zeros((4, 3), "float32") for _ in range(arrays)]
        for number in range(batches):
            memory[number % arrays][...] = number
            yield [memory[number % arrays]]

    return reader


def numbers(batches) -> list[float]:
    return [float(np.array(batch).reshape(-1)[0]) for batch in batches]


@pytest.mark.parametrize("process", [False, True])
@pytest.mark.parametrize("arrays", [1, 2, 3, 5])
def test_arrays_that_are_refilled(arrays: int, process: bool) -> None:
    x = fluid.layers.data("x", [3])
    loader = fluid.io.DataLoader.from_generator([x], capacity=20, use_multiprocess=process)
    loader.set_batch_generator(refilled(arrays), PLACE)
    kept = [feed["x"] for (feed,) in loader]
    assert numbers(kept) == list(range(20))


@pytest.mark.parametrize("arrays", [1, 3])
def test_arrays_that_are_refilled_in_dygraph_mode_and_for_programs(arrays: int) -> None:
    with fluid.dygraph.guard():
        loader = fluid.io.DataLoader.from_generator(capacity=20)
        loader.set_batch_generator(refilled(arrays), PLACE)
        assert numbers([x.numpy() for (x,) in list(loader)]) == list(range(20))
    x = fluid.layers.data("x", [3])
    loader = fluid.io.DataLoader.from_generator([x], capacity=20, iterable=False)
    loader.set_batch_generator(refilled(arrays))
    exe = fluid.Executor(PLACE)
    loader.start()
    got = [exe.run(fetch_list=[x])[0] for _ in range(20)]
    loader.reset()
    assert numbers(got) == list(range(20))


class Refilling(fluid.io.Dataset):
    """Samples and batches in memory that is used again."""

    def __init__(self) -> None:
        self.sample = np.zeros(3, "float32")
        self.batch = np.zeros((2, 3), "float32")
        self.tensor = fluid.LoDTensor()

    def __len__(self) -> int:
        return 12

    def __getitem__(self, number: int) -> np.ndarray:
        self.sample[:] = number
        return self.sample

    def collate(self, samples):
        self.batch[:] = samples[-1]
        self.tensor.set(self.batch, PLACE)
        return [self.batch, self.tensor]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("fed", [False, True])
def test_a_collate_fn_that_reuses_its_memory(workers: int, fed: bool) -> None:
    dataset = Refilling()
    feed_list = [fluid.data("x", [None, 3]), fluid.data("y", [None, 3])] if fed else None
    loader = fluid.io.DataLoader(
        dataset,
        feed_list=feed_list,
        return_list=not fed,
        batch_size=2,
        collate_fn=dataset.collate,
        num_workers=workers,
        places=PLACE,
    )
    batches = [list(batch.values()) if fed else batch for (batch,) in loader]
    dataset.sample[:] = dataset.batch[:] = -1
    assert [numbers(batch) for batch in batches] == [[k, k] for k in range(1, 12, 2)]


def test_samples_that_are_passed_on_alone() -> None:
    loader = paddle_io.DataLoader(Refilling(), batch_size=None, return_list=True, places=PLACE)
    assert numbers([np.array(x) for x in list(loader)]) == list(range(12))


def loaded(items, var):
    loader = fluid.io.DataLoader.from_generator([var], capacity=2)
    loader.set_batch_generator(lambda: iter([items]), PLACE)
    return next(iter(loader))[0][var.name].array


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(3, "float32"),
        np.zeros((3, 2), "float32"),
        np.zeros((3, 1, 1), "float32"),
        np.zeros((3, 1)),
        np.zeros((3, 1), "int32"),
    ],
)
def test_variables_of_layers_data_take_any_type_and_shape(array: np.ndarray) -> None:
    got = loaded([array], fluid.layers.data("x", [1]))
    assert got.dtype == array.dtype and got.shape == array.shape


def test_variables_of_data_take_what_can_be_converted_and_lower_ranks() -> None:
    x = fluid.data("x", [None, 1])
    assert loaded([np.zeros(3)], x).dtype == np.float32 and loaded([np.zeros(3)], x).shape == (3,)
    for array, error in ((np.zeros((3, 2)), ValueError), (np.zeros((3, 1, 1)), ValueError)):
        with pytest.raises(error, match="batch 0 of the reader .*'x': expected shape"):
            loaded([array], x)
    with pytest.raises(TypeError, match="expected dtype int64, got float32"):
        loaded([np.zeros((3, 1), "float32")], fluid.data("y", [None, 1], "int64"))


def test_an_array_stands_for_its_rows_and_lists_for_arrays() -> None:
    x = fluid.layers.data("x", [2])
    assert loaded(np.ones((1, 3, 2), "float32"), x).shape == (3, 2)
    assert loaded([[[1.5, 2.5]]], x).tolist() == [[1.5, 2.5]]
    for wrong in (np.ones((3, 2)), [np.ones(2)] * 2):
        with pytest.raises(EnforceNotMet, match="feed_list has 1: 'x'") as caught:
            loaded(wrong, x)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (["1", "2"], "int64", [1, 2]),
        (np.array(["1", "2"]), "int64", [1, 2]),
        ([b"1", b"2"], "int64", [1, 2]),
        (["1", "2.5"], "float32", [1, 2.5]),
        ([1.5, None], "float64", [1.5, np.nan]),
    ],
)
def test_samples_may_be_digits(value, dtype: str, expected: list[float]) -> None:
    x = fluid.data("x", [None, 2], dtype)
    (got,) = fluid.DataFeeder([x], PLACE).feed([(value,)]).values()
    assert got.array.dtype == dtype and np.array_equal(got.array, [expected], equal_nan=dtype != "int64")


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (["1.5", "2"], ValueError),
        (["a", "b"], ValueError),
        ([None, 1], TypeError),
        ([{}, 1], TypeError),
        (["9" * 30, "1"], ValueError),  # OverflowError in Fluid
    ],
)
def test_samples_that_are_no_integers(value, error) -> None:
    feeder = fluid.DataFeeder([fluid.data("x", [None, 2], "int64")], PLACE)
    with pytest.raises(error, match="sample 0 of the batch, variable 'x': expected int64 numbers"):
        feeder.feed([(value,)])


def test_samples_of_another_width() -> None:
    loose = fluid.DataFeeder([fluid.layers.data("x", [2])], PLACE)
    for width in (3, 2, 5):
        (got,) = loose.feed([(np.full(width, k),) for k in range(4)]).values()
        assert got.array.tolist() == [[k] * width for k in range(4)] and got.array.dtype == np.float32
    (rows,) = loose.feed([(np.arange(4.0).reshape(1, 4),)]).values()
    assert rows.array.tolist() == [[0, 1], [2, 3]]
    for samples in ([[0.0] * 3, [0.0] * 2], [[0.0] * 2, [0.0] * 3]):
        with pytest.raises(ValueError, match="'x': expected shape"):
            loose.feed([(sample,) for sample in samples])
    transposed = np.arange(6.0).reshape(3, 2)
    (kept,) = fluid.DataFeeder([fluid.layers.data("t", [2, 3])], PLACE).feed([(transposed,)]).values()
    assert kept.array.tolist() == [transposed.tolist()]
    with pytest.raises(ValueError, match=r"'z': expected shape \[2, 3\], got \[3, 2\]"):
        fluid.DataFeeder([fluid.data("z", [None, 2, 3])], PLACE).feed([(transposed,)])
    with pytest.raises(ValueError, match=r"'y': expected shape \[2\], got \[3\]"):
        fluid.DataFeeder([fluid.data("y", [None, 2])], PLACE).feed([([0.0] * 3,)])


@pytest.mark.parametrize("size", [2, 2.0, np.float32(2), np.int64(2)])
def test_sizes_of_batches(size) -> None:
    loader = fluid.io.DataLoader.from_generator([fluid.data("x", [None, 1])], capacity=2)
    loader.set_sample_generator(lambda: ((k,) for k in range(5)), size, places=PLACE)
    assert [feed["x"].shape() for (feed,) in loader] == [[2, 1], [2, 1]]


@pytest.mark.parametrize(
    ("size", "error"), [(0, AssertionError), (-1, ValueError), (2.5, TypeError), ("2", TypeError)]
)
def test_wrong_sizes_of_batches(size, error: type[Exception]) -> None:
    loader = fluid.io.DataLoader.from_generator([fluid.data("x", [None, 1])], capacity=2)
    with pytest.raises(error, match="batch_size must be"):
        loader.set_sample_generator(lambda: iter([]), size, places=PLACE)


def test_an_epoch_is_given_up() -> None:
    x = fluid.layers.data("x", [3])
    loader = fluid.io.DataLoader.from_generator([x], capacity=2)
    loader.set_batch_generator(refilled(2), PLACE)
    epoch = iter(loader)
    next(epoch)
    assert loader._queue is loader.queue is not None
    loader._reset()
    assert loader.queue is None and numbers([feed["x"] for (feed,) in loader]) == list(range(20))


def test_the_queue_of_a_reader_variable() -> None:
    reader = fluid.layers.py_reader(4, [(-1, 3)], ["float32"])
    out = fluid.layers.scale(fluid.layers.read_file(reader), 1.0)
    reader.decorate_tensor_provider(
        lambda: iter([[np.ones((2, 3), "float32")], [np.ones((2, 5), "float32")]])
    )
    assert (reader.queue.size(), reader.queue.capacity()) == (0, 4)
    reader.start()
    got = [fluid.Executor(PLACE).run(fetch_list=[out])[0].shape for _ in range(2)]
    assert got == [(2, 3), (2, 5)] and reader.queue.size() == 0
    reader.queue.close()
    assert reader.queue.size() == 0


@pytest.mark.parametrize("way", ["fed", "tensor", "iterable", "program", "collated"])
def test_what_has_no_dimension_gets_one(way: str) -> None:
    """Paddle 1.8.5 refuses it, or calls its shape None."""
    value = fluid.LoDTensor() if way == "tensor" else np.array(1.5, "float32")
    if way == "tensor":
        value.set(np.array(1.5, "float32"), PLACE)
    x = fluid.data("x", [1])
    feed = {"x": value}
    if way == "collated":
        data_set = paddle_io.TensorDataset([np.zeros(1, "float32")])
        loader = fluid.io.DataLoader(data_set, feed_list=[x], places=PLACE, collate_fn=lambda batch: [value])
        [[feed]] = loader
    elif way in ("iterable", "program"):
        loader = fluid.io.DataLoader.from_generator([x], capacity=2, iterable=way == "iterable")
        loader.set_batch_generator(lambda: iter([[value]]), PLACE)
        if way == "program":
            loader.start()
        feed = next(iter(loader()))[0] if way == "iterable" else None
    y = fluid.layers.concat([fluid.layers.shape(x), fluid.layers.shape(x * 2.0)])
    shapes, same = fluid.Executor(PLACE).run(feed=feed, fetch_list=[y, x])
    assert (shapes.tolist(), same.tolist()) == ([1, 1], [1.5])
    if way == "program":
        loader.reset()
