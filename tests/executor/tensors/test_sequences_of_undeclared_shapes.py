"""Sequences follow the operators at run time, whatever shapes the program declares."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.core import AnalysisConfig, PaddleTensor, create_paddle_predictor

pytestmark = pytest.mark.usefixtures("alone")
ROWS = np.arange(8, dtype="float32").reshape(4, 2)


def tensor(array, lod):
    made = fluid.LoDTensor()
    made.set(array, fluid.CPUPlace())
    made.set_lod(lod)
    return made


def step(which, ids, scores, lod):
    """The feed of one step of a beam search."""
    return {
        f"ids{which}": tensor(np.array(ids, "int64").reshape(-1, 1), lod),
        f"scores{which}": tensor(np.array(scores, "float32").reshape(-1, 1), lod),
    }


BEAMS = {
    **step(0, [3, 4], [0.5, 0.25], [[0, 1, 2], [0, 1, 2]]),
    **step(1, [5, 6, 7, 1], [0.5, 0.25, 0.125, 0.0625], [[0, 1, 2], [0, 2, 4]]),
}
WORDS = [3, 5, 3, 6, 4, 7, 4, 1]
SCORES = [0.5, 0.5, 0.5, 0.25, 0.25, 0.125, 0.25, 0.0625]
SENTENCES = [[0, 2, 4], [0, 2, 4, 6, 8]]


def decoded():
    """Words and scores of the sentences that a beam search of two steps has found."""
    arrays = layers.create_array("int64"), layers.create_array("float32")
    for which in (0, 1):
        at = layers.fill_constant([1], "int64", which)
        for name, dtype, array in (("ids", "int64", arrays[0]), ("scores", "float32", arrays[1])):
            given = fluid.data(f"{name}{which}", [None, 1], dtype, lod_level=2)
            layers.array_write(given, at, array)
    return layers.beam_search_decode(*arrays, beam_size=2, end_id=1)


def values(results):
    return [(np.array(one).ravel().tolist(), one.lod()) for one in results]


def test_what_a_beam_search_found_stays_sentences(engine):
    words, scores = decoded()
    fetches = [words, layers.scale(scores, 2.0), layers.cast(words, "float32")]
    got = fluid.Executor(fluid.CPUPlace()).run(feed=BEAMS, fetch_list=fetches, return_numpy=False)
    assert values(got) == [(WORDS, SENTENCES), ([2 * n for n in SCORES], SENTENCES), (WORDS, SENTENCES)]


def test_so_it_does_in_a_saved_model(engine, tmp_path):
    executor = fluid.Executor(fluid.CPUPlace())
    fluid.io.save_inference_model(str(tmp_path), list(BEAMS), [*decoded()], executor)
    wanted = [(WORDS, SENTENCES), (SCORES, SENTENCES)]
    program, _, targets = fluid.io.load_inference_model(str(tmp_path), executor)
    assert values(executor.run(program, feed=BEAMS, fetch_list=targets, return_numpy=False)) == wanted
    config = AnalysisConfig(str(tmp_path))
    config.disable_gpu()
    found = create_paddle_predictor(config).run(
        [PaddleTensor(np.array(one), name, one.lod()) for name, one in BEAMS.items()]
    )
    assert [(one.as_ndarray().ravel().tolist(), one.lod) for one in found] == wanted


def misdeclared():
    """Results of `x`, of which the program says another shape."""
    x = fluid.data("x", [None, 2], "float32", lod_level=1)
    first = layers.scale(x, 2.0)
    first.desc.set_shape([7, 3])
    return [first, layers.relu(layers.scale(first, 3.0))]


def test_of_several_devices():
    fetches = misdeclared()
    executor = fluid.Executor(fluid.CPUPlace())
    compiled = fluid.CompiledProgram(fluid.default_main_program())
    compiled = compiled.with_data_parallel(places=fluid.cpu_places(2))
    feeds = [{"x": tensor(ROWS, [[0, 1, 4]])}, {"x": tensor(ROWS, [[0, 2, 2, 4]])}]
    got = executor.run(compiled, feed=feeds, fetch_list=fetches, return_numpy=False)
    both = np.concatenate([ROWS, ROWS]).ravel()
    lod = [[0, 1, 4, 6, 6, 8]]
    assert values(got) == [((both * 2).tolist(), lod), ((both * 6).tolist(), lod)]
    got = executor.run(compiled, feed=feeds, fetch_list=fetches, return_numpy=False, return_merged=False)
    assert [[one.lod() for one in each] for each in got] == [[[[0, 1, 4]], [[0, 2, 2, 4]]]] * 2


def test_of_a_segmented_program(engine):
    first, second = misdeclared()
    block = fluid.default_main_program().global_block()
    own = block.create_var(name="own", shape=[-1, 2], dtype="float32")
    layers.py_func(lambda rows: rows, second, own)
    joined = layers.concat([first, second], axis=0)
    fetches = [second, own, joined, layers.scale(joined, 0.5), layers.sequence_pool(joined, "sum")]
    feed = {"x": tensor(ROWS, [[0, 1, 4]])}
    got = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=fetches, return_numpy=False)
    assert [one.lod() for one in got] == [[[0, 1, 4]], [[0, 1, 4]], *[[[0, 1, 4, 5, 8]]] * 2, []]
    assert np.array(got[-1]).tolist() == [[0, 2], [24, 30], [0, 6], [72, 90]]


def test_rows_joined_along_an_axis_that_is_fed(engine):
    x = fluid.data("x", [None, 2], "float32", lod_level=1)
    axis = fluid.data("axis", [1], "int32")
    joined = layers.concat([x, layers.scale(x, 2.0)], axis=axis)
    executor = fluid.Executor(fluid.CPUPlace())
    feed = {"x": tensor(ROWS, [[0, 1, 4]])}
    for number, lod in ((0, [[0, 1, 4, 5, 8]]), (1, [[0, 1, 4]]), (0, [[0, 1, 4, 5, 8]])):
        feed["axis"] = np.array([number], "int32")
        (got,) = executor.run(feed=feed, fetch_list=[joined], return_numpy=False)
        assert got.lod() == lod
