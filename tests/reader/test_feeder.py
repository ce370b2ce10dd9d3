"""`DataFeeder`: samples to feeds, as real Paddle 1.8.5 gives them."""

from __future__ import annotations

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.place import CPUPlace
from fluidlite.data import data
from fluidlite.executor.lod_tensor import LoDTensor
from fluidlite.reader import DataFeeder

from ..refusals import refuses

pytestmark = pytest.mark.usefixtures("programs")


def show(tensor: LoDTensor) -> tuple:
    array = np.array(tensor)
    return array.shape, str(array.dtype), array.ravel().tolist(), tensor.recursive_sequence_lengths()


def test_dense_and_ragged_rows() -> None:
    img = data("img", [None, 1, 2, 2], "float32")
    label = data("label", [None, 1], "int64")
    words = data("words", [None, 1], "int64", lod_level=1)
    feeder = DataFeeder([img, label, words], CPUPlace())
    rows = [([1, 2, 3, 4], 1, [1, 2]), ([5, 6, 7, 8], 0, [3]), (np.arange(4, dtype="float32"), 2, [4, 5, 6])]
    got = feeder.feed(rows)
    assert list(got) == ["img", "label", "words"] == feeder.feed_names
    assert show(got["img"]) == ((3, 1, 2, 2), "float32", [1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3], [])
    assert show(got["label"]) == ((3, 1), "int64", [1, 0, 2], [])
    assert show(got["words"]) == ((6, 1), "int64", [1, 2, 3, 4, 5, 6], [[2, 1, 3]])


def test_two_levels_and_names() -> None:
    data("nested", [None, 1], "int64", lod_level=2)
    data("vectors", [None, 2], "float32", lod_level=1)
    feeder = DataFeeder(["nested", "vectors"], CPUPlace())
    got = feeder.feed([([[1, 2], [3]], [[1.0, 2.0], [3.0, 4.0]]), ([[4, 5, 6]], [[5.0, 6.0]])])
    assert show(got["nested"]) == ((6, 1), "int64", [1, 2, 3, 4, 5, 6], [[2, 1], [2, 1, 3]])
    assert show(got["vectors"]) == ((3, 2), "float32", [1, 2, 3, 4, 5, 6], [[2, 1]])


def test_samples_of_several_rows(programs) -> None:
    """As in Fluid, samples of other ranks are reshaped to the shape of the variable."""
    x = fluid.layers.data("x", [3])
    y = fluid.layers.data("y", [2, 2])
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    rows = np.arange(6, dtype="float32").reshape(2, 3)
    square = np.ones((2, 2), "float32")
    batch = DataFeeder([x, words, y], CPUPlace()).feed([(rows, [1, 2], square), (rows + 6, [3], square)])
    assert np.array_equal(batch["x"], np.arange(12, dtype="float32").reshape(4, 3))
    assert np.array(batch["y"]).shape == (2, 2, 2)
    assert batch["words"].recursive_sequence_lengths() == [[2, 1]]
    for samples in ([(rows[:, :2],)], [(rows,), (rows[:1],)]):
        with pytest.raises(ValueError, match="variable 'x': expected shape"):
            DataFeeder([x], CPUPlace()).feed(samples)


@pytest.mark.parametrize("kind", ["lists", "samples"])
def test_samples_of_several_rows_for_loaders(programs, kind: str) -> None:
    """Sizes of several sequences in one sample, for a variable of one dimension."""
    sizes, x = fluid.data("sizes", [None], "int64"), fluid.data("x", [None, 2])
    samples = [([k, 5, 6], np.full((1, 2), k)) for k in range(4)]
    loader = fluid.io.DataLoader.from_generator([sizes, x], 2)
    if kind == "lists":
        loader.set_sample_list_generator(fluid.io.batch(lambda: iter(samples), 2), CPUPlace())
    else:
        loader.set_sample_generator(lambda: iter(samples), 2, places=CPUPlace())
    got = [next(iter(batch.values())) for [batch] in loader()]
    wide = [batch["x"] for [batch] in loader()]
    assert [np.array(t).tolist() for t in got] == [[0, 5, 6, 1, 5, 6], [2, 5, 6, 3, 5, 6]]
    assert [np.array(t).tolist() for t in wide] == [[[0, 0], [1, 1]], [[2, 2], [3, 3]]]
    loader.set_sample_list_generator(lambda: iter([[([1, 2], [0, 0]), ([1], [0, 0])]]), CPUPlace())
    refuses(lambda: list(loader()), ValueError, "sample 1 .*'sizes': expected shape")


def test_errors() -> None:
    x, y = data("x", [None, 4], "float32"), data("y", [None, 1], "int64")
    feeder = DataFeeder([x, y], CPUPlace())
    for sample, message in (([1, 2, 3], r"\[4\], got \[3\]"), ([[1, 2], [3]], "got a ragged list")):
        with pytest.raises(ValueError, match=rf"sample 1 .* 'x': expected .*{message}|'x': {message}"):
            feeder.feed([([1, 2, 3, 4], 1), (sample, 1)])
    with pytest.raises(
        AssertionError,
        match=r"fields \(1\) in sample 0 of the batch does not match len\(feed_list\) \(2: 'x', 'y'\)",
    ):
        feeder.feed([([1, 2, 3, 4],)])
    with pytest.raises(AssertionError, match=r"if it is the only item, write it as a tuple, \(item,\)"):
        DataFeeder([x], CPUPlace()).feed([[1, 1, 1], [2, 2, 2], [3, 3, 3]])
    refuses(lambda: DataFeeder(["nope"], CPUPlace()), ValueError, "nope")
    refuses(lambda: DataFeeder([3], CPUPlace()), TypeError, "feed_list should contain Variables")


WAYS = ["feeder", "list", "sample", "py_reader"]

ROWS = [
    # declared (dtype, lod_level) of each variable; samples; batch of each variable
    (["int64"] * 2, [[1, 2], [3, 4]], [[1, 3], [2, 4]]),
    (["int64", "int64", "float32"], [[1, 2, 0.5], [3, 4, 1.5]], [[1, 3], [2, 4], [0.5, 1.5]]),
    (["int64"] * 2, np.arange(6).reshape(3, 2), [[0, 2, 4], [1, 3, 5]]),
    (["int64"] * 3, list(np.arange(6).reshape(2, 3)), [[0, 3], [1, 4], [2, 5]]),
    (["int64", "float32"], np.array([[1.0, 2.5], [3.0, 4.5]]), [[1, 3], [2.5, 4.5]]),
    (["float32", "int64"], [[np.float64(0.5), np.int32(1)], [np.float32(1.5), 2]], [[0.5, 1.5], [1, 2]]),
    (["int64", "float32"], [["1", "2.5"], ["3", "4"]], [[1, 3], [2.5, 4]]),
    (["int64"] * 2, ["12", "34"], [[1, 3], [2, 4]]),
    (["int64"] * 2, [range(2), range(2, 4)], [[0, 2], [1, 3]]),
    (["int64"] * 2, [[True, False]], [[1], [0]]),
    (["int64"], [[1], [2]], [[1, 2]]),
]


@pytest.mark.parametrize("way", WAYS)
def test_samples_are_lists_and_rows_of_arrays(way: str) -> None:
    for dtypes, samples, expected in ROWS:
        assert [np.array(t).tolist() for t in through(way, dtypes, samples)] == [
            [[n] for n in column] for column in expected
        ]


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_number_of_items_is_an_assertion_error(way: str) -> None:
    for samples in ([[1, 2, 3]], [(1, 2), (1,)], np.ones((2, 3)), ["abc"]):
        with pytest.raises(AssertionError, match=r"does not match len\(feed_list\) \(2: "):
            through(way, ["int64"] * 2, samples)
    refuses(lambda: through(way, ["int64"] * 2, [5]), TypeError, "one item for each variable")


def through(way: str, dtypes: list[str], samples: object) -> list[LoDTensor]:
    """The batch of samples, as it comes through a door for samples."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        place = CPUPlace()
        if way == "py_reader":
            reader = fluid.layers.py_reader(2, [[-1, 1]] * len(dtypes), dtypes)
            reader.decorate_paddle_reader(lambda: iter([samples]))
            read = fluid.layers.read_file(reader)
            reader.start()
            try:
                return fluid.Executor(place).run(
                    fetch_list=read if isinstance(read, list) else [read], return_numpy=False
                )
            finally:
                reader.reset()
        variables = [data(f"x{i}", [None, 1], dtype) for i, dtype in enumerate(dtypes)]
        if way == "feeder":
            return list(DataFeeder(variables, place).feed(samples).values())
        loader = fluid.io.DataLoader.from_generator(variables, 2)
        if way == "list":
            loader.set_sample_list_generator(lambda: iter([samples]), place)
        else:
            loader.set_sample_generator(lambda: iter(samples), len(samples), places=place)
        [[batch]] = loader()
        return list(batch.values())


def test_several_devices() -> None:
    x = data("x", [None, 2], "float32")
    feeder = DataFeeder([x], CPUPlace())
    batch = [([1, 2],)]
    assert [part["x"].shape() for part in feeder.feed_parallel([batch, batch * 2], 2)] == [[1, 2], [2, 2]]
    with pytest.raises(ValueError, match="one batch for each of 2 devices, got 1"):
        list(feeder.feed_parallel([batch], 2))
    one = feeder.decorate_reader(lambda: iter([batch] * 3), multi_devices=False)
    assert [feed["x"].shape() for feed in one()] == [[1, 2]] * 3
    two = feeder.decorate_reader(lambda: iter([batch] * 3), multi_devices=True, num_places=2)
    assert [len(feeds) for feeds in two()] == [2]
    with pytest.raises(ValueError, match="the last 1 batches are too few for 2 devices"):
        list(feeder.decorate_reader(lambda: iter([batch] * 3), True, 2, drop_last=False)())


def test_checks_for_layers_of_ones_own():
    checks = fluid.data_feeder
    x = fluid.data("x", [2], "int64")
    checks.check_variable_and_dtype(x, "x", ["int64"], "mine")
    checks.check_type([], "x", (list, tuple), "mine")
    for wrong, message in (
        (
            lambda: checks.check_type(3, "x", list, "mine", "More."),
            r"type of 'x' in mine must be .*list.*int.* More\.",
        ),
        (
            lambda: checks.check_dtype("int64", "x", ["float32"], "mine"),
            r"data type of 'x' in mine must be \['float32'\]",
        ),
        (lambda: checks.check_variable_and_dtype(x, "x", ["bool"], "mine"), "but received int64"),
        (lambda: checks.check_variable_and_dtype(3, "x", ["bool"], "mine"), "but received .*int"),
    ):
        with pytest.raises(TypeError, match=message):
            wrong()
    refuses(lambda: checks.check_dtype("foo", "x", ["bool"], "mine"), ValueError, "unknown data type 'foo'")
    with fluid.dygraph.guard():
        checks.check_type(3, "x", list, "mine")
        checks.check_dtype("int64", "x", ["float32"], "mine")
