"""Errors of sequences, arrays, loops and branches name the operator and the user's line."""

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
    """Empty sequences are a valid batch; a batch without sequences is not."""
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
    trips, array = fluid.data("trips", [1], "int64"), layers.array_write(ones(2), number(0))
    layers.array_write(ones(2), number(1), array)
    add = lambda i, total: (i + 1, total + layers.array_read(array, i))  # noqa: E731
    out = layers.while_loop(lambda i, total: i < trips, add, [number(0), ones(2)])[1]
    assert run([out], trips=np.array([2]))[0].tolist() == [3, 3]
    with raises("operator elementwise_add", "array_read_0.tmp_0", "beyond the end of array"):
        run([out], trips=np.array([3]))


@pytest.mark.parametrize("wrong", [-2, [0, 0]])
def test_an_index_that_is_none(wrong):
    at = fluid.data("at", [None], "int64")
    out = layers.array_length(layers.array_write(ones(2), at))
    with raises("operator write_to_array", "index"):
        run([out], at=np.array(wrong).reshape(-1))


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


EAGER = {
    "a condition of several elements": (
        lambda x, at: layers.cond(x > 0, lambda: x, lambda: -x), AssertionError, "pred of cond has 2 elements"),
    "a loop's condition of several elements": (
        lambda x, at: layers.while_loop(lambda x: x < 3, lambda x: [x + 1], [x]), TypeError,
        "returned by cond in while_loop should have one element"),
    "one variable more after an iteration": (
        lambda x, at: layers.while_loop(lambda i: i < 3, lambda i: [i, x], [at(0)]), ValueError,
        "body in while_loop should return the same arity"),
    "an index beyond the end": (
        lambda x, at: layers.array_read(layers.array_write(x, at(0)), at(5)), IndexError,
        "i in array_read is 5, beyond the end of a list of 1"),
    "an index below zero": (
        lambda x, at: layers.array_read([x], at(-1)), IndexError, "i in array_read must not be negative, got -1"),
    "a gap in a list": (
        lambda x, at: layers.array_write(x, at(3)), AssertionError, "index 3 of a list of 0"),
    "several branches at once": (
        lambda x, at: layers.switch_case(layers.cast(x, "int32"), {0: lambda: x, 1: lambda: x}), AssertionError,
        "numel should be 1"),
    "no sequences": (
        lambda x, at: layers.sequence_pool(x, "sum"), fluid.core.EnforceNotMet,
        "operator sequence_pool: X has no LoD information"),
    "a level that is not there": (
        lambda x, at: layers.sequence_expand(x, x, ref_level=1), fluid.core.EnforceNotMet,
        "operator sequence_expand: Y has no LoD information"),
    "While": (
        lambda x, at: layers.While(at(0) < 3), AssertionError,
        "While is a layer of programs only; in dygraph mode use Python's if, for and while, or"),
    "Switch": (lambda x, at: layers.control_flow.Switch(), AssertionError, "Switch is a layer of programs only"),
    "IfElse": (lambda x, at: layers.IfElse(x > 0), AssertionError, "IfElse is a layer of programs only"),
    "StaticRNN": (lambda x, at: layers.StaticRNN(), AssertionError, "StaticRNN is a layer of programs only"),
    "DynamicRNN": (lambda x, at: layers.DynamicRNN(), AssertionError, "DynamicRNN is a layer of programs only"),
    "sequences for a tensor": (
        lambda x, at: layers.lod_reset(x, target_lod=[0, 2]), AssertionError,
        "lod_reset is a layer of programs only: eager tensors have no sequences"),
}  # fmt: skip


@pytest.mark.parametrize("what", EAGER)
def test_errors_in_dygraph_mode(what):
    call, error, message = EAGER[what]
    with fluid.dygraph.guard():
        x = fluid.dygraph.to_variable(np.ones(2, "float32"))
        with pytest.raises(error, match=message):
            call(x, lambda place: fluid.dygraph.to_variable(np.array([place])))


@pytest.mark.parametrize("saved", [False, True])
def test_ifelse_in_a_loop_has_the_rows_of_the_batch(saved, tmp_path):
    """Also if all rows of one iteration are on one side, and those of another iteration on the other."""
    x = fluid.data("x", [None, 2], "float32")
    i, last, state = number(0), number(3), layers.scale(x, 1.0)
    going = layers.less_than(i, last)
    with layers.While(going).block():
        sums = layers.reduce_sum(state, dim=1, keep_dim=True)
        limit = layers.fill_constant_batch_size_like(sums, [-1, 1], "float32", 0.6)
        choice = layers.IfElse(layers.less_than(sums, limit))
        with choice.true_block():
            choice.output(layers.scale(choice.input(state), 1.5))
        with choice.false_block():
            choice.output(layers.scale(choice.input(state), 0.5, bias=0.1))
        layers.assign(choice()[0], state)
        layers.increment(i)
        layers.less_than(i, last, cond=going)
    exe, main, fetched = fluid.Executor(), None, [state]
    exe.run(fluid.default_startup_program())
    if saved:
        fluid.io.save_inference_model(str(tmp_path), ["x"], [state], exe)
        main, _, fetched = fluid.io.load_inference_model(str(tmp_path), exe)
    for rows in ([[0.5, 0.2], [0.3, 0.3], [2, 3]], [[0.2, 0.2]], [[0.1, 0.2], [0.9, -0.4]]):
        expected = given = np.array(rows, "float32")
        for _ in range(3):
            less = expected.sum(1, keepdims=True) < 0.6
            expected = np.where(less, expected * 1.5, expected * 0.5 + 0.1)
        (found,) = exe.run(main, feed={"x": given}, fetch_list=fetched)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
