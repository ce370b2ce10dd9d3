"""What is wrong with sequences, arrays, loops and branches is told with the operator and the user's line."""

import numpy as np
import pytest

import fluidlite as fluid

layers = fluid.layers


def number(value):
    return layers.fill_constant([1], "int64", value)


def ones(size):
    return layers.fill_constant([size], "float32", 1.0)


def run(out, **feed):
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=out)


def sequences(rows, *levels):
    tensor = fluid.LoDTensor()
    tensor.set(np.ones((rows, 4), "float32"), fluid.CPUPlace())
    tensor.set_lod([list(level) for level in levels])
    return tensor


def rows(levels=1, name="x"):
    return fluid.data(name, [None, 4], "float32", lod_level=levels)


def recurrent():
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, before = rnn.step_input(rows()), rnn.memory(shape=[4], value=0.0)
        state = layers.elementwise_add(word, before)
        rnn.update_memory(before, state)
        rnn.output(state)
    return rnn()


def raises(*parts):
    """EnforceNotMet with these parts in its message, and the line of this file that built the operator."""
    return pytest.raises(
        fluid.core.EnforceNotMet, match=r"(.|\n)*".join([*parts, "built at .*test_control_flow_errors.py"])
    )


@pytest.mark.parametrize("lod", [[[0, 2, 4]], [[0, 4, 2, 5]], [[1, 5]], [[0, 3], [0, 3, 5]], [[0]]])
def test_offsets_that_do_not_add_up(lod):
    with pytest.raises(fluid.core.EnforceNotMet, match="invalid LoD"):
        sequences(5, *lod)


def test_offsets_for_other_rows_than_are_fed():
    out, tensor = layers.sequence_pool(rows(), "sum"), sequences(4, [0, 2, 4])
    tensor.set(np.ones((5, 4), "float32"), fluid.CPUPlace())
    with pytest.raises(fluid.core.EnforceNotMet, match="'x' has 5 rows, but its sequences end at 4"):
        run([out], x=tensor)


@pytest.mark.parametrize(
    "build",
    [
        lambda: layers.sequence_pool(rows(), "sum"),
        lambda: layers.sequence_conv(rows(), 3),
        lambda: layers.sequence_softmax(layers.reduce_sum(rows(), 1, keep_dim=True)),
        lambda: layers.sequence_reverse(rows()),
        recurrent,
    ],
)
def test_an_empty_batch(build):
    """Sequences without rows are a batch like others; no sequences at all are none."""
    out = build()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    (found,) = exe.run(feed={"x": sequences(0, [0, 0, 0])}, fetch_list=[out], return_numpy=False)
    assert np.asarray(found).size in (0, 8)
    with raises("operator (sequence_|lod_rank_table)", "sequences|LoD"):
        exe.run(feed={"x": np.ones((0, 4), "float32")}, fetch_list=[out])


def test_a_level_that_is_not_there():
    out = layers.sequence_expand(rows(), rows(name="y"), ref_level=1)
    with raises("operator sequence_expand", "ref_level"):
        run([out], x=sequences(2, [0, 1, 2]), y=sequences(5, [0, 2, 5]))
    with raises("operator sequence_expand", "Y"):
        run([out], x=sequences(2, [0, 1, 2]), y=np.ones((5, 4), "float32"))


def test_an_index_beyond_the_end_of_an_array():
    at = fluid.data("at", [1], "int64")
    read = layers.array_read(layers.array_write(ones(2), number(0)), at)
    out = layers.scale(read, 2.0)
    assert run([out], at=np.array([0]))[0].tolist() == [2, 2]
    with raises("operator scale", read.name, "beyond the end of array"):
        run([out], at=np.array([5]))
    (nothing,) = fluid.Executor().run(feed={"at": np.array([5])}, fetch_list=[read], return_numpy=False)
    assert not nothing._is_initialized()
    with raises("operator read_from_array", "must not be negative, got -1"):
        run([out], at=np.array([-1]))


def test_an_index_beyond_the_end_in_a_loop():
    turns, array = fluid.data("turns", [1], "int64"), layers.array_write(ones(2), number(0))
    layers.array_write(ones(2), number(1), array)
    add = lambda i, total: (i + 1, total + layers.array_read(array, i))  # noqa: E731
    out = layers.while_loop(lambda i, total: i < turns, add, [number(0), ones(2)])[1]
    assert run([out], turns=np.array([2]))[0].tolist() == [3, 3]
    with raises("operator elementwise_add", "array_read_0.tmp_0", "beyond the end of array"):
        run([out], turns=np.array([3]))


@pytest.mark.parametrize("wrong", [-2, [0, 0]])
def test_an_index_that_is_none(wrong):
    at = fluid.data("at", [None], "int64")
    out = layers.array_length(layers.array_write(ones(2), at))
    with raises("operator write_to_array", "index"):
        run([out], at=np.array(wrong).reshape(-1))


def test_a_loop_variable_that_changes_its_type():
    with raises("operator assign", "before the loop", "after a turn"):
        layers.while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, layers.cast(x, "int64")), [number(0), ones(2)]
        )


@pytest.mark.parametrize("size", [0, 2])
def test_a_condition_of_several_elements(size):
    x = fluid.data("x", [None], "float32")
    out = layers.cond(x > 0, lambda: x + 1, lambda: x - 1)
    assert run([out], x=np.ones(1, "float32"))[0].tolist() == [2]
    with raises("operator conditional_block", "must have one element"):
        run([out], x=np.ones(size, "float32"))


def test_a_loops_condition_of_several_elements():
    x = fluid.data("x", [2], "float32")
    with pytest.raises(TypeError, match="one element"):
        layers.while_loop(lambda x: x < 3, lambda x: [x + 1], [x])


@pytest.mark.parametrize(
    "other", [lambda x: None, lambda x: (x, x), lambda x: [x]], ids=["none", "two", "list"]
)
def test_branches_that_return_different_things(other):
    x = fluid.data("x", [1], "float32")
    with pytest.raises(ValueError, match="Incompatible return values of true_fn and false_fn in cond"):
        layers.cond(x > 0, lambda: x, lambda: other(x))
