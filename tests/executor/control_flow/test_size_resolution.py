"""Sizes that only the data know: beam search over arrays, and how the engine resolves sizes."""

import warnings

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite._ext.engine import UNFIT, Engine, KernelFailure, Sizes

from ...refusals import refuses
from .agreement import compare, default, run

layers = fluid.layers
WORDS, STATE, STEPS, END = 4, 5, 7, 1


def decoder(width, accumulated=True):
    """Counter, words and scores of a search that ends with its hypotheses, after STEPS words at most."""
    ids = fluid.data("ids", [None, 1], "int64", lod_level=2)
    scores = fluid.data("scores", [None, 1], "float32", lod_level=2)
    start = fluid.data("start", [None, STATE], "float32")
    limit = layers.fill_constant([1], "int64", STEPS)
    at = layers.zeros([1], "int64")
    arrays = [layers.array_write(each, at) for each in (ids, scores, start)]
    going = layers.less_than(at, limit)
    with layers.While(going).block():
        before, sums, state = (layers.array_read(array, at) for array in arrays)
        word = layers.embedding(before, [WORDS, STATE], param_attr="words")
        new = layers.fc([layers.sequence_expand(state, sums), word], STATE, act="tanh", bias_attr=False)
        likely = layers.fc(layers.lod_reset(new, sums), WORDS, act="softmax", bias_attr=False)
        best, tokens = layers.topk(likely, k=width)
        if accumulated:
            best = layers.elementwise_add(layers.log(best), layers.reshape(sums, [-1]), axis=0)
        chosen, values = layers.beam_search(
            before, sums, tokens, best, width, END, is_accumulated=accumulated
        )
        layers.increment(at)
        for array, value in zip(arrays, (chosen, values, new), strict=True):
            layers.array_write(value, at, array)
        layers.logical_and(
            layers.less_than(at, limit), layers.logical_not(layers.is_empty(chosen)), out=going
        )
    return [at, *layers.beam_search_decode(arrays[0], arrays[1], width, END)]


def fed(random, rows):
    lengths, place = [[1] * rows] * 2, fluid.CPUPlace()
    return {
        "start": random.uniform(-1, 1, (rows, STATE)).astype("float32"),
        "ids": fluid.create_lod_tensor(np.zeros((rows, 1), "int64"), lengths, place),
        "scores": fluid.create_lod_tensor(np.zeros((rows, 1), "float32"), lengths, place),
    }


@pytest.mark.parametrize(("width", "accumulated"), [(3, True), (1, True), (4, False)])
def test_beam_search_over_arrays(width, accumulated):
    fetched = decoder(width, accumulated)
    random = np.random.RandomState(3)
    feeds = [fed(random, rows) for rows in (3, 1, 4, 1, 2, 5)]
    expected, found = (run(default(fetched), feeds, engine, 2.0)[0] for engine in ("interpret", "plan"))
    compare(expected, found, 1e-5, 1e-6)
    trips = [np.array(each[0]).item() for each in found[:-1]]
    assert min(trips) < STEPS or width == 4, "a search ends when all its hypotheses have"


def test_an_error_in_an_iteration_leaves_the_next_step_as_it_was():
    """A word that is not in the table: the error names the operator, and the next search is right."""
    fetched = decoder(2)
    exe, scope, random = fluid.Executor(), fluid.Scope(), np.random.RandomState(0)
    exe.run(fluid.default_startup_program(), scope=scope)
    good = fed(random, 3)
    (first,) = exe.run(feed=good, fetch_list=fetched[1:2], scope=scope, return_numpy=False)
    wrong = dict(good, ids=fluid.create_lod_tensor(np.full((3, 1), WORDS), [[1] * 3] * 2, fluid.CPUPlace()))
    with pytest.raises(fluid.core.EnforceNotMet, match="lookup_table"):
        exe.run(feed=wrong, fetch_list=fetched, scope=scope)
    (repeated,) = exe.run(feed=good, fetch_list=fetched[1:2], scope=scope, return_numpy=False)
    assert np.array_equal(np.array(first), np.array(repeated))
    assert first.lod() == repeated.lod()


def ragged(x):
    """Elements of one, two, three... rows, each computed from the previous one."""
    at, limit = layers.zeros([1], "int64"), layers.fill_constant([1], "float32", 20.0)
    array = layers.array_write(x, at)
    total = layers.fill_constant([1], "float32", 0.0)
    going = layers.less_than(total, limit)
    with layers.While(going).block():
        last = layers.array_read(array, at)
        longer = layers.concat([last, layers.scale(x, 2.0)], 0)
        layers.increment(at)
        layers.array_write(longer, at, array)
        layers.assign(layers.elementwise_add(total, layers.reduce_sum(longer)), total)
        layers.less_than(total, limit, cond=going)
    return [total, at, layers.array_read(array, at)]


def test_elements_grow_with_each_iteration():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fetched = ragged(fluid.data("x", [None, 2], "float32"))
    exe = fluid.Executor()
    for rows in (1, 2, 4):
        total, at, last = exe.run(feed={"x": np.full((rows, 2), 0.5, "float32")}, fetch_list=fetched)
        sums = np.cumsum([rows * (1 + 2 * k) for k in range(1, 20)])
        trips = int(np.argmax(sums >= 20)) + 1
        assert int(at[0]) == trips
        assert float(total[0]) == sums[trips - 1]
        assert last.shape == (rows * (trips + 1), 2)


# The engine's part of it.


@pytest.fixture
def finding():
    """Copies as many bytes of slot 1 to slot 2, a temporary, and from there to slot 3, as stands in slot 0."""
    sizes = Sizes()
    zero, bytes_ = sizes.add(Sizes.CONST, 0), sizes.add(Sizes.ROOT, 4, 1)
    sizes.guard(Sizes.LE, sizes.add(Sizes.CONST, 4), bytes_)
    engine = Engine(4, sizes)
    assert engine.add_find(0, [(zero, bytes_)]) == 0
    for operands in ([1, 2], [2, 3]):
        engine.vary(engine.add("copy", operands, [4]), 0, bytes_)
    engine.add_storage(1, 2, bytes_, [2])
    source, target = np.arange(1 << 18, dtype="float32"), np.zeros(1 << 18, "float32")
    count = np.array([4])
    for slot, array in ((0, count), (1, source), (3, target)):
        engine.bind(slot, array)
    assert engine.settle()
    return engine, count, source, target


def test_what_comes_after_is_evaluated_with_the_size_that_is_found(finding):
    engine, count, source, target = finding
    for elements in (1, 100, 7, 1 << 18):
        target[:] = -1
        count[0] = 4 * elements
        engine.run()
        assert np.array_equal(target[:elements], source[:elements])
        assert (target[elements:] == -1).all()


def test_memory_of_data_dependent_sizes_is_freed_after_unused_steps(finding):
    engine, count, *_ = finding
    count[0] = 1 << 20
    engine.run()
    large = engine.found_bytes
    assert large >= 1 << 20
    count[0] = 24
    for _ in range(600):
        engine.run()
    assert 24 <= engine.found_bytes < large // 100


def test_a_size_that_no_guard_admits_stops_the_run(finding):
    engine, count, source, target = finding
    count[0] = 3
    for _ in range(2):
        with pytest.raises(KernelFailure, match="not for the sizes") as failure:
            engine.run()
        assert (failure.value.code, failure.value.index, failure.value.err[0]) == (UNFIT, 0, 3)
    assert not target.any()
    count[0] = 8
    engine.run()
    assert target[:3].tolist() == [0.0, 1.0, 0.0]


def test_a_found_number_may_have_to_be_a_certain_one():
    sizes = Sizes()
    zero, three = sizes.add(Sizes.CONST, 0), sizes.add(Sizes.CONST, 3)
    engine, found = Engine(1, sizes), np.array([3])
    engine.add_find(0, [(zero, three)])
    engine.bind(0, found)
    engine.run()
    found[0] = 4
    refuses(engine.run, KernelFailure, "not for the sizes")


def test_a_size_belongs_to_the_stage_that_it_is_found_for():
    sizes = Sizes()
    zero, late = sizes.add(Sizes.CONST, 0), sizes.add(Sizes.ROOT, 4, 2)
    engine = Engine(1, sizes)
    refuses(lambda: engine.add_find(0, [(zero, late)]), ValueError, "another stage")
    refuses(lambda: engine.add_find(0, [(zero, 9)]), IndexError)
    engine.add_find(0, [])
    engine.add_python(lambda: None)
    refuses(lambda: engine.add_storage(1, 1, late, [0]), ValueError, "before its size is found")
