"""DynamicRNN: what it appends, computes and refuses, and its gradients."""

import numpy as np
import pytest

from fluidlite import layers
from fluidlite.base.errors import EnforceNotMet
from fluidlite.base.place import CPUPlace
from fluidlite.data import data
from fluidlite.executor import Executor
from fluidlite.framework.gradients.backward import append_backward
from fluidlite.layer_helper import run_op
from fluidlite.optimizer import Adam
from fluidlite.param_attr import ParamAttr
from tests.fluid.layers.slopes import check_slopes, ragged, runner

LENGTHS = [[2, 4, 1], [3, 3], [5], [1, 0, 2], [0, 1], [0, 0]]


def fed(name, width, lod_level=0, dtype="float64"):
    var = data(name, [None, width], dtype, lod_level=lod_level)
    var.stop_gradient = False
    return var


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def test_whether_there_is_another_step_has_no_gradient(programs):
    simple(fed("x", 3, lod_level=1))
    condition = programs[0].global_block().var("dynamic_rnn_0.tmp_0")
    assert condition.stop_gradient


def split(x, lengths):
    return np.split(x, np.cumsum(lengths)[:-1])


def simple(x, **options):
    """tanh(x W + h U + b)."""
    rnn = layers.DynamicRNN(**options)
    with rnn.block():
        word = rnn.step_input(x)
        state = rnn.memory(shape=[4], value=0.25, dtype="float64")
        new = layers.fc([word, state], 4, act="tanh", param_attr=[ParamAttr("w"), ParamAttr("u")])
        rnn.update_memory(state, new)
        rnn.output(new)
    return rnn()


def pooled(x, kind):
    """`sequence_pool` of float64, which the layer refuses."""
    return run_op("sequence_pool", {"X": x}, attrs={"pooltype": kind}, any_type=True)


def values(run, *names):
    return [np.array(run.scope.find_var(name).get_tensor()) for name in names]


@pytest.mark.parametrize("lengths", LENGTHS)
def test_values_and_gradients(programs, lengths):
    x = fed("x", 3, 1)
    out = simple(x)
    assert (out.shape, out.lod_level, out.dtype) == ((-1, 4), 1, x.dtype)
    feed = {"x": ragged(numbers(sum(lengths), 3), lengths)}
    loss = layers.reduce_sum(layers.square(out)) if sum(lengths) else layers.reduce_sum(out)
    check_slopes(programs, loss, [x, *programs[0].all_parameters()], feed)
    run = runner(programs)
    (found,) = run(feed, [out])
    w, u, b = values(run, "w", "u", "fc_0.b_0")
    want = []
    for sequence in split(numbers(sum(lengths), 3), lengths):
        h = np.full(4, 0.25)
        for row in sequence:
            h = np.tanh(row @ w + h @ u + b)
            want.append(h)
    assert found.recursive_sequence_lengths() == [lengths]
    np.testing.assert_allclose(np.array(found), np.array(want).reshape(-1, 4), rtol=1e-6)


@pytest.mark.parametrize("lengths", [[2, 4, 1], [1, 0, 2], [3, 3]])
def test_inputs_that_stay_and_start(programs, lengths):
    """Two step inputs, static inputs with and without sequences, a start in fed order, two outputs."""
    x, z, start, row, memo = (
        fed("x", 3, 1), fed("z", 4, 1), fed("start", 4), fed("row", 4), fed("memo", 4, 1),
    )  # fmt: skip
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, other = rnn.step_input(x), rnn.step_input(z)
        fixed, note = rnn.static_input(row), rnn.static_input(memo)
        state = rnn.memory(init=start, need_reorder=True)
        inner = layers.sums([layers.fc(word, 4, param_attr="w", bias_attr=False), other, fixed])
        inner = layers.elementwise_add(inner, pooled(note, "AVERAGE"))
        new = layers.tanh(layers.elementwise_add(inner, layers.scale(state, 0.5)))
        rnn.update_memory(state, new)
        rnn.output(new, layers.elementwise_mul(new, fixed))
    outs = rnn()
    assert len(outs) == 2
    memos = [2, 1, 3][: len(lengths)]
    arrays = {
        "x": numbers(sum(lengths), 3), "z": numbers(sum(lengths), 4, seed=1), "memo": numbers(sum(memos), 4, seed=2),
        "start": numbers(len(lengths), 4, seed=3), "row": numbers(len(lengths), 4, seed=4),
    }  # fmt: skip
    feed = {**arrays}
    feed.update(
        x=ragged(arrays["x"], lengths), z=ragged(arrays["z"], lengths), memo=ragged(arrays["memo"], memos)
    )
    loss = layers.reduce_sum(layers.square(outs[0])) + layers.reduce_mean(outs[1])
    check_slopes(programs, loss, [x, z, start, row, memo, *programs[0].all_parameters()], feed)
    run = runner(programs)
    found = [np.array(value) for value in run(feed, outs)]
    (w,) = values(run, "w")
    want = []
    for k, (xs, zs) in enumerate(zip(split(arrays["x"], lengths), split(arrays["z"], lengths), strict=True)):
        h = arrays["start"][k]
        for one, two in zip(xs, zs, strict=True):
            h = np.tanh(one @ w + two + arrays["row"][k] + split(arrays["memo"], memos)[k].mean(0) + 0.5 * h)
            want.append((h, h * arrays["row"][k]))
    for k in range(2):
        np.testing.assert_allclose(found[k], [pair[k] for pair in want], rtol=1e-6)


def test_start_without_reordering_meets_the_longest_first(programs):
    x, start = fed("x", 2, 1), fed("start", 2)
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, state = rnn.step_input(x), rnn.memory(init=start)
        rnn.update_memory(state, layers.elementwise_add(word, state))
        rnn.output(state)
    out = rnn()
    feed = {"x": ragged(numbers(6, 2), [1, 3, 2]), "start": numbers(3, 2, seed=1)}
    check_slopes(programs, layers.reduce_sum(layers.square(out)), [x, start], feed)
    (found,) = runner(programs)(feed, [out])
    np.testing.assert_allclose(np.array(found)[[1, 4, 0]], feed["start"])


@pytest.mark.parametrize(
    "lengths", [([1, 2, 1], [2, 1, 2, 2]), ([2, 0, 1], [1, 0, 3]), ([1, 3], [0, 2, 1, 1])]
)
def test_steps_that_are_sequences(programs, lengths):
    """The upper of two levels is gone through: each step has the sequences of the lower one."""
    outer, inner = lengths
    x = fed("x", 2, 2)
    rnn = layers.DynamicRNN()
    with rnn.block():
        part = rnn.step_input(x)
        state = rnn.memory(shape=[2], dtype="float64")
        new = layers.elementwise_add(pooled(layers.square(part), "SUM"), layers.scale(state, 0.5))
        rnn.update_memory(state, new)
        rnn.output(new)
    out = rnn()
    feed = {"x": ragged(numbers(sum(inner), 2), outer, inner)}
    check_slopes(programs, layers.reduce_sum(layers.square(out)), [x], feed)
    (found,) = runner(programs)(feed, [out])
    want = []
    for group in split(np.arange(len(inner)), outer):
        h = np.zeros(2)
        for k in group:
            h = (split(numbers(sum(inner), 2), inner)[k] ** 2).sum(0) + 0.5 * h
            want.append(h)
    np.testing.assert_allclose(np.array(found), want, rtol=1e-6)
    assert found.recursive_sequence_lengths() == [outer]


def test_results_that_are_sequences(programs):
    x = fed("x", 1, 2)
    rnn = layers.DynamicRNN()
    with rnn.block():
        rnn.output(layers.square(rnn.step_input(x)))
    out = rnn()
    assert out.lod_level == 2
    feed = {"x": ragged(numbers(7, 1), [1, 2, 0], [2, 1, 4])}
    check_slopes(programs, layers.reduce_sum(out), [x], feed)
    (found,) = runner(programs)(feed, [out])
    np.testing.assert_allclose(np.array(found), numbers(7, 1) ** 2)
    assert found.recursive_sequence_lengths() == [[1, 2, 0], [2, 1, 4]]


def test_lower_level(programs):
    x = fed("x", 1, 2)
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, state = rnn.step_input(x, level=1), rnn.memory(shape=[1], dtype="float64")
        new = layers.elementwise_add(word, state)
        rnn.update_memory(state, new)
        rnn.output(new)
    out = rnn()
    feed = {"x": ragged(np.arange(7.0).reshape(7, 1), [1, 2, 0], [2, 1, 4])}
    check_slopes(programs, layers.reduce_sum(layers.square(out)), [x], feed)
    (found,) = runner(programs)(feed, [out])
    assert np.array(found).ravel().tolist() == [0, 1, 2, 3, 7, 12, 18]  # numbers of Fluid 1.8.5
    assert found.recursive_sequence_lengths() == [[1, 2, 0], [2, 1, 4]]


def test_longer_second_input(programs):
    x, y = fed("x", 1, 1), fed("y", 1, 1)
    rnn = layers.DynamicRNN()
    with rnn.block():
        rnn.output(layers.elementwise_add(rnn.step_input(x), rnn.step_input(y)))
    feed = {"x": ragged(np.zeros((3, 1)), [1, 2]), "y": ragged(np.arange(5.0).reshape(5, 1), [2, 3])}
    (found,) = runner(programs)(feed, [rnn()])
    assert np.array(found).ravel().tolist() == [0, 2, 3]


def test_what_is_appended(programs):
    simple(fed("x", 3, 1), name="net")
    block = programs[0].global_block()
    assert [op.type for op in block.ops] == [
        "fill_constant", "lod_rank_table", "max_sequence_len", "less_than", "lod_tensor_to_array", "fill_constant",
        "read_from_array", "fill_constant_batch_size_like", "write_to_array", "while", "array_to_lod_tensor",
    ]  # fmt: skip
    assert {
        "net.tmp_0", "lod_rank_table_0", "dynamic_rnn_max_seq_len_0", "dynamic_rnn_input_array_0", "zero_idx_0",
        "in0_0", "mem_init_0", "dynamic_rnn_mem_array_0", "net_output_array_fc_0.tmp_4_0",
    } <= set(block.vars)  # fmt: skip
    inside = block.ops[9].attr("sub_block")
    assert [op.type for op in inside.ops] == [
        "read_from_array", "read_from_array", "shrink_rnn_memory", "mul", "mul", "sum", "elementwise_add", "tanh",
        "write_to_array", "increment", "write_to_array", "less_than",
    ]  # fmt: skip


def test_gradient_that_is_appended(programs):
    x = fed("x", 3, 1)
    append_backward(layers.mean(simple(x)))
    types = [op.type for op in programs[0].global_block().ops]
    assert types[types.index("mean_grad") + 1 :] == [
        "lod_tensor_to_array", "while_grad", "read_from_array", "array_to_lod_tensor",
    ]  # fmt: skip
    inside = programs[0].blocks[2]
    assert inside.forward_block_idx == 1
    assert [op.type for op in inside.ops] == [
        "read_from_array", "increment", "read_from_array", "sum", "tanh_grad", "elementwise_add_grad", "scale", "scale",
        "mul_grad", "mul_grad", "shrink_rnn_memory_grad", "write_to_array", "write_to_array",
    ]  # fmt: skip


def test_it_learns(programs):
    """Whether the sum of a sequence is positive."""
    x, y = data("x", [None, 1], "float32", lod_level=1), data("y", [None, 1], "int64")
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, state = rnn.step_input(x), rnn.memory(shape=[8])
        new = layers.fc([word, state], 8, act="tanh")
        rnn.update_memory(state, new)
        rnn.output(new)
    logits = layers.fc(layers.sequence_last_step(rnn()), 2)
    loss = layers.mean(layers.softmax_with_cross_entropy(logits, y))
    Adam(0.02).minimize(loss)
    run, random, losses = runner(programs), np.random.default_rng(0), []
    for _ in range(60):
        lengths = random.integers(1, 6, 16)
        rows = random.normal(size=(lengths.sum(), 1)).astype("float32")
        signs = [int(sequence_rows.sum() > 0) for sequence_rows in split(rows, lengths)]
        feed = {"x": ragged(rows, lengths.tolist()), "y": np.array(signs, "int64").reshape(-1, 1)}
        losses.append(float(np.array(run(feed, [loss])[0])[0]))
    assert np.mean(losses[-10:]) < 0.4 < np.mean(losses[:3])


def inside(use):
    """A function that calls `use(rnn, x, word)` in the block of a network."""

    def build():
        x = data("x", [None, 3], "float32", lod_level=1)
        rnn = layers.DynamicRNN()
        with rnn.block():
            word = rnn.step_input(x)
            rnn.output(word)
            use(rnn, x, word)
        return rnn()

    return build


def before_input(use):
    def build():
        x = data("x", [None, 3], "float32", lod_level=1)
        rnn = layers.DynamicRNN()
        with rnn.block():
            use(rnn, x)

    return build


def second_block(rnn, x, word):
    with rnn.block():
        pass


REFUSED = {
    ValueError: [
        (lambda rnn, x, w: rnn(), "can only be visited outside the rnn block"),
        (second_block, "can only be invoke once"),
        (lambda rnn, x, w: rnn.update_memory(w, w), "invoke memory before update_memory"),
    ],
    TypeError: [
        (lambda rnn, x, w: rnn.step_input("x"), "can only take a Variable"),
        (lambda rnn, x, w: rnn.static_input(3), "can only take a Variable"),
        (lambda rnn, x, w: rnn.output(3), "can only take Variables"),
        (lambda rnn, x, w: rnn.memory(), "needs init or shape"),
        (lambda rnn, x, w: rnn.memory(init=3), "`init` of memory"),
        (lambda rnn, x, w: rnn.update_memory("a", w), "`ex_mem` of update_memory"),
        (lambda rnn, x, w: rnn.update_memory(w, 3), "`new_mem` of update_memory"),
    ],
}
# Outside of the block, or before its inputs.
OUTSIDE = [
    (lambda: layers.DynamicRNN().step_input(3), ValueError,
     "step_input can only be invoked inside rnn block"),
    (lambda: layers.DynamicRNN().memory(shape=[1]), ValueError,
     "memory can only be invoked inside rnn block"),
    (lambda: layers.DynamicRNN().output(3), ValueError, "output can only be invoked inside rnn block"),
    (lambda: layers.DynamicRNN()(), ValueError, "can only be visited outside the rnn block"),
    (before_input(lambda rnn, x: rnn.memory(shape=[3])), ValueError,
     "step_input should be invoked before memory"),
    (before_input(lambda rnn, x: rnn.memory(init=x, need_reorder=True)), ValueError, "need_reorder=True"),
    (before_input(lambda rnn, x: None), ValueError, "needs a step_input"),
    (before_input(lambda rnn, x: rnn.memory(init=x)), TypeError, "step_input be invoked before memory"),
    (before_input(lambda rnn, x: rnn.static_input(x)), RuntimeError, "must be called after step_input"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [*OUTSIDE, *((inside(use), error, message) for error, uses in REFUSED.items() for use, message in uses)],
)
def test_refused(programs, build, error, message):
    with pytest.raises(error, match=message):
        build()
    assert programs[0].current_block_idx == 0


@pytest.mark.parametrize(
    ("feed", "message"),
    [
        ({"x": numbers(3, 3)}, "lod_rank_table: cannot rank level 0 of X, which has 0 levels.*X=..x.."),
        ({"z": numbers(3, 4)}, "lod_tensor_to_array: X has 0 levels of sequences.*X=..z.."),
        (
            {"z": ragged(numbers(3, 4), [2, 1])},
            "lod_tensor_to_array: sequence 1 of X has 1 steps, but RankTable has 2",
        ),
        (
            {"row": numbers(3, 4)},
            "reorder_lod_tensor_by_rank: X has 3 rows, but RankTable ranks 2.*X=..row..",
        ),
    ],
)
def test_fed_what_does_not_fit(programs, feed, message):
    x, z, row = (
        data("x", [None, 3], "float64"),
        data("z", [None, 4], "float64"),
        data("row", [None, 4], "float64"),
    )
    rnn = layers.DynamicRNN()
    with rnn.block():
        rnn.step_input(x)
        rnn.output(layers.elementwise_add(rnn.step_input(z), rnn.static_input(row)))
    out = rnn()
    fits = {"x": ragged(numbers(3, 3), [1, 2]), "z": ragged(numbers(3, 4), [1, 2]), "row": numbers(2, 4)}
    with pytest.raises(EnforceNotMet, match=message) as caught:
        Executor(CPUPlace()).run(programs[0], feed={**fits, **feed}, fetch_list=[out])
    assert __file__ in str(caught.value)


def test_memory_that_is_never_updated(programs):
    x = fed("x", 3, 1)
    rnn = layers.DynamicRNN()
    with rnn.block():
        rnn.step_input(x)
        rnn.output(rnn.memory(shape=[2]))
    with pytest.raises(EnforceNotMet, match="shrink_rnn_memory needs .* read beyond the end of array"):
        runner(programs)({"x": ragged(numbers(3, 3), [1, 2])}, [rnn()])


def test_nested(programs):
    """A network over the words of each sentence in each step of one over the sentences of texts."""
    x = fed("x", 2, 2)
    outer = layers.DynamicRNN()
    with outer.block():
        sentence = outer.step_input(x)
        inner = layers.DynamicRNN()
        with inner.block():
            word, state = inner.step_input(sentence), inner.memory(shape=[2], dtype="float64")
            new = layers.tanh(layers.fc([word, state], 2, param_attr=[ParamAttr("w"), ParamAttr("u")]))
            inner.update_memory(state, new)
            inner.output(new)
        total = pooled(inner(), "SUM")
        carried = outer.memory(shape=[2], dtype="float64")
        made = layers.tanh(layers.elementwise_add(total, layers.scale(carried, 0.5)))
        outer.update_memory(carried, made)
        outer.output(made)
    out = outer()
    feed = {"x": ragged(numbers(7, 2), [1, 0, 3], [2, 1, 0, 4])}
    check_slopes(programs, layers.reduce_sum(layers.square(out)), [x, *programs[0].all_parameters()], feed)
    run = runner(programs)
    (found,) = run(feed, [out])
    w, u, b = values(run, "w", "u", "fc_0.b_0")
    want, sentences = [], split(numbers(7, 2), [2, 1, 0, 4])
    for group in ([0], [], [1, 2, 3]):
        carried_ = np.zeros(2)
        for k in group:
            states = [np.zeros(2)]
            for row in sentences[k]:
                states.append(np.tanh(row @ w + states[-1] @ u + b))
            carried_ = np.tanh(sum(states) + 0.5 * carried_)
            want.append(carried_)
    np.testing.assert_allclose(np.array(found), want, rtol=1e-6)


def test_in_a_static_network(programs):
    """Sequences that are read from outside, once for each step."""
    steps, x = data("steps", [3, 1], "float64"), fed("x", 2, 1)
    rnn = layers.StaticRNN()
    with rnn.step():
        factor = rnn.step_input(steps)
        inner = layers.DynamicRNN()
        with inner.block():
            word, state = inner.step_input(x), inner.memory(shape=[2], dtype="float64")
            new = layers.tanh(layers.elementwise_add(layers.elementwise_mul(word, factor), state))
            inner.update_memory(state, new)
            inner.output(new)
        rnn.step_output(pooled(inner(), "LAST"))
    out = rnn()
    feed = {"x": ragged(numbers(6, 2), [2, 1, 3]), "steps": numbers(3, 1, seed=1)}
    check_slopes(programs, layers.reduce_sum(layers.square(out)), [x], feed)
    assert np.array(runner(programs)(feed, [out])[0]).shape == (3, 3, 2)


@pytest.mark.parametrize("sparse", [False, True])
def test_lookups_in_the_block(programs, sparse):
    """The gradients of the table are added up over the steps, dense or as rows."""
    ids = data("ids", [None, 1], "int64", lod_level=1)
    rnn = layers.DynamicRNN()
    with rnn.block():
        vectors = layers.embedding(rnn.step_input(ids), [7, 3], is_sparse=sparse, param_attr="table")
        state = rnn.memory(shape=[3])
        rnn.update_memory(state, layers.elementwise_add(vectors, state))
        rnn.output(vectors)
    loss = layers.reduce_sum(rnn())
    append_backward(loss)
    numbers_ = np.array([[1], [2], [1], [6], [0], [2], [2]], "int64")
    (slope,) = runner(programs)({"ids": ragged(numbers_, [3, 0, 4])}, ["table@GRAD"])
    counts = np.bincount(numbers_.ravel(), minlength=7)
    np.testing.assert_array_equal(np.array(slope), np.repeat(counts[:, None], 3, 1))


@pytest.mark.parametrize("lengths", [[1, 2], [2, 1], [2, 0, 1]])
def test_gradients_have_the_sequences_of_their_variables(programs, lengths):
    """And not those of another operand with as many rows."""
    key, row, other = data("key", [None, 1], "float32", lod_level=1), fed("row", 1), fed("other", 1, 1)
    table = layers.control_flow.lod_rank_table(key)
    ordered = layers.reorder_lod_tensor_by_rank(row, table)
    loss = layers.reduce_sum(layers.elementwise_mul(other, ordered))
    append_backward(loss)
    feed = {
        "key": ragged(np.zeros((9, 1), "float32"), [2, 4, 3]),
        "row": numbers(3, 1),
        "other": ragged([[10.0], [20.0], [30.0]], lengths),
    }
    made, slope, fetched = runner(programs)(feed, [f"{ordered.name}@GRAD", "row@GRAD", "other@GRAD"])
    assert made.lod() == slope.lod() == []
    assert fetched.recursive_sequence_lengths() == [lengths]
    assert np.array(slope).ravel().tolist() == [30, 10, 20]
