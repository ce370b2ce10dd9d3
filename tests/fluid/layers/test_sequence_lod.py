"""Sequence layers in programs, with their gradients."""

import numpy as np
import pytest

from fluidlite import layers
from fluidlite.base.place import CPUPlace
from fluidlite.data import data
from fluidlite.executor import Executor, Scope, create_lod_tensor, scope_guard
from fluidlite.framework.gradients.backward import gradients

X = np.arange(10, dtype="float32").reshape(5, 2) / 10
LENGTHS = [2, 3]


@pytest.fixture
def rows(programs):
    var = data("rows", [None, 2], "float32", lod_level=1)
    var.stop_gradient = False
    return var


def run(programs, fetch, **feed):
    with scope_guard(Scope()):
        executor = Executor(CPUPlace())
        executor.run(programs[1])
        feed = {"rows": create_lod_tensor(X, [LENGTHS], CPUPlace()), **feed}
        return executor.run(programs[0], feed=feed, fetch_list=fetch, return_numpy=False)


def test_pooling_and_its_gradient(programs, rows):
    out = layers.sequence_pool(rows, "average")
    assert out.name == "sequence_pool_0.tmp_0" and out.lod_level == 0
    (slope,) = gradients(out, rows)
    pooled, dx = run(programs, [out, slope])
    np.testing.assert_allclose(np.array(pooled), [X[:2].mean(0), X[2:].mean(0)], rtol=1e-6)
    np.testing.assert_allclose(np.array(dx), [[1 / 2] * 2] * 2 + [[1 / 3] * 2] * 3, rtol=1e-6)
    assert dx.recursive_sequence_lengths() == [LENGTHS]


def test_first_and_last_step(programs, rows):
    first, last = run(programs, [layers.sequence_first_step(rows), layers.sequence_last_step(rows)])
    np.testing.assert_array_equal(np.array(first), X[[0, 2]])
    np.testing.assert_array_equal(np.array(last), X[[1, 4]])


def test_reversing_twice_changes_nothing(programs, rows):
    once = layers.sequence_reverse(rows)
    twice = layers.sequence_reverse(once)
    (slope,) = gradients(twice * rows, rows)
    reversed_once, same, dx = run(programs, [once, twice, slope])
    np.testing.assert_array_equal(np.array(reversed_once), X[[1, 0, 4, 3, 2]])
    np.testing.assert_array_equal(np.array(same), X)
    np.testing.assert_allclose(np.array(dx), 2 * X, rtol=1e-6)
    assert same.recursive_sequence_lengths() == [LENGTHS]


def test_softmax_within_sequences(programs, rows):
    scores = data("scores", [None, 1], "float32", lod_level=1)
    out = layers.sequence_softmax(scores)
    assert out.lod_level == 1
    feed = create_lod_tensor(np.zeros((5, 1), "float32"), [LENGTHS], CPUPlace())
    (got,) = run(programs, [out], scores=feed)
    np.testing.assert_allclose(np.array(got)[:, 0], [1 / 2] * 2 + [1 / 3] * 3, rtol=1e-6)


def test_sequence_conv(programs, rows):
    out = layers.sequence_conv(rows, 6, filter_size=4, act="tanh")
    conv, bias, act = programs[0].global_block().ops
    assert (conv.type, bias.type, act.type) == ("sequence_conv", "elementwise_add", "tanh")
    assert (conv.attr("contextStart"), conv.attr("contextLength")) == (-2, 4)
    assert programs[0].all_parameters()[0].shape == (8, 6)
    assert out.lod_level == 1 and out.shape == (-1, 6)
    assert np.array(run(programs, [out])[0]).shape == (5, 6)


def test_expand_and_concat(programs, rows):
    pooled = layers.sequence_pool(rows, "sum")
    expanded = layers.sequence_expand(pooled, rows)
    joined = layers.sequence_concat([rows, rows])
    got = run(programs, [expanded, joined])
    sums = np.array([X[:2].sum(0), X[2:].sum(0)])
    np.testing.assert_allclose(np.array(got[0]), sums[[0, 0, 1, 1, 1]], rtol=1e-6)
    np.testing.assert_array_equal(np.array(got[1]), X[[0, 1, 0, 1, 2, 3, 4, 2, 3, 4]])
    assert got[1].recursive_sequence_lengths() == [[4, 6]]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: layers.sequence_pool(x, "median"), "'pool_type' of sequence_pool must be one of"),
        (lambda x: layers.sequence_concat([]), "must not be empty"),
        (
            lambda x: layers.sequence_conv(data("c", [None, 2, 2], "float32"), 2),
            r"must have shape \[rows, width\]",
        ),
    ],
)
def test_what_is_refused(rows, build, message):
    with pytest.raises(ValueError, match=message):
        build(rows)


def test_variables_say_which_sequences_they_have(programs, rows):
    ids = data("ids", [None, 1], "int64", lod_level=1)
    batch, lengths = layers.sequence_pad(layers.scale(rows, 2.0), layers.fill_constant([1], "float32", 0.0))
    assert batch.shape == (-1, 1, 2) and batch.lod_level == lengths.lod_level == 0
    back = layers.sequence_unpad(batch, lengths)
    assert back.shape == (-1, 2) and back.lod_level == 1
    assert layers.fc(layers.relu(rows), 3).lod_level == layers.embedding(ids, [9, 5]).lod_level == 1
    assert layers.mean(rows).lod_level == layers.gather(rows, ids).lod_level == 0
    assert layers.lod_append(layers.lod_reset(batch, y=rows), [0, 5]).lod_level == 2


def test_padding_and_back(programs, rows):
    batch, lengths = layers.sequence_pad(rows, layers.fill_constant([1], "float32", 0.0))
    back = layers.sequence_unpad(batch, lengths)
    padded, same = run(programs, [batch, back])
    np.testing.assert_array_equal(np.array(padded), [[*X[:2], [0, 0]], X[2:]])
    np.testing.assert_array_equal(np.array(same), X)
    assert same.recursive_sequence_lengths() == [LENGTHS]


def test_a_sum_over_a_batch_of_one_sequence_has_none(programs, rows):
    total = layers.reduce_sum(layers.sequence_slice(rows, *[data(n, [None, 1], "int64") for n in "on"]))
    one = {"rows": create_lod_tensor(X, [[5]], CPUPlace()), "o": np.array([[1]]), "n": np.array([[1]])}
    (result,) = run(programs, [total], **one)
    assert result.lod() == [] and np.array(result) == pytest.approx(X[1].sum())


def test_lod_reset_needs_to_know(programs, rows):
    with pytest.raises(ValueError, match="lod_reset needs y or target_lod"):
        layers.lod_reset(rows)
    with pytest.raises(ValueError, match="'level' of lod_append must be a list"):
        layers.lod_append(rows, 3)


@pytest.mark.parametrize(
    ("op_type", "slots", "out", "attrs", "level"),
    [
        ("sequence_pool", {"X": "rows"}, "Out", {"pooltype": "SUM"}, 0),
        ("sequence_pool", {"X": "deep"}, "Out", {"pooltype": "SUM"}, 1),
        ("sequence_pool", {"X": "deep"}, "MaxIndex", {"pooltype": "SUM"}, 0),
        ("sequence_reverse", {"X": "rows"}, "Y", {}, 1),
        ("sequence_expand", {"X": "plain", "Y": "rows"}, "Out", {}, 0),
        ("sequence_expand_as", {"X": "plain", "Y": "rows"}, "Out", {}, 1),
        ("sequence_concat", {"X": "rows"}, "Out", {}, 1),
        ("sequence_reshape", {"X": "rows"}, "Out", {"new_dim": 1}, 1),
        ("sequence_enumerate", {"X": "ids"}, "Out", {"win_size": 2}, 1),
        ("sequence_erase", {"X": "ids"}, "Out", {"tokens": [1]}, 1),
        ("hash", {"X": "ids"}, "Out", {"mod_by": 10}, 1),
        ("im2sequence", {"X": "images"}, "Out", {"kernels": [2, 2]}, 1),
        ("box_clip", {"Input": "boxes", "ImInfo": "info"}, "Output", {}, 1),
        ("add_position_encoding", {"X": "rows"}, "Out", {}, 1),
    ],
)
def test_what_operators_appended_by_hand_declare(programs, rows, op_type, slots, out, attrs, level):
    """The numbers are those of Paddle 1.8.5."""
    data("deep", [None, 2], "float32", lod_level=2)
    data("plain", [None, 2], "float32")
    data("ids", [None, 1], "int64", lod_level=1)
    data("images", [None, 1, 4, 4], "float32")
    data("boxes", [None, 4], "float32", lod_level=1)
    data("info", [None, 3], "float32")
    block = programs[0].current_block()
    results = {slot: block.create_var(name=slot) for slot in {out, *(["Out"] if out == "MaxIndex" else [])}}
    block.append_op(
        op_type,
        {slot: [block.var(name)] for slot, name in slots.items()},
        {slot: [var] for slot, var in results.items()},
        attrs,
    )
    assert results[out].lod_level == level
