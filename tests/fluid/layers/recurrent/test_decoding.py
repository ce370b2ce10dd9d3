"""Cells, decoders and beam search: eager tensors give what programs do, and what is refused.

Numbers, names and operators of programs are those of `tests/conformance/cases` (`f_rnn_cells`, `f_basic_decoder`,
`f_beam_search_decoder`, `g_decode_options`).
"""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from tests.refusals import refuses

WIDTH, WORDS = 4, 6
rng = np.random.default_rng(5)
X = rng.uniform(-1, 1, (3, 5, 2)).astype("float32")
H = rng.uniform(-1, 1, (3, WIDTH)).astype("float32")
LENGTHS = np.array([2, 5, 1], "int64")


def uniform(*shape):
    return rng.uniform(-1, 1, shape).astype("float32")


def fixed(array):
    return fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(array))


GRU_W, EMBEDDING, OUT = uniform(2 + WIDTH, WIDTH), 2 * uniform(WORDS, 2), 2 * uniform(WIDTH, WORDS)


class Cell(layers.RNNCell):
    """Reads and makes several tensors; its states are in a dict."""

    def __init__(self):
        self.weight = layers.create_parameter(GRU_W.shape, "float32", attr=fixed(GRU_W))

    def call(self, inputs, states, gain=1.0):
        hidden = layers.tanh(layers.matmul(layers.concat([inputs, states["h"]], 1), self.weight)) * gain
        return (hidden, inputs), {"h": hidden, "n": [states["n"][0] + 1.0]}

    @property
    def state_shape(self):
        return {"h": [WIDTH], "n": [[2]]}


def unrolled(inputs, cell, **options):
    (hidden, same), states = layers.rnn(cell, inputs, **options)
    return [hidden, same, states["h"], states["n"][0]]


def both(build, feeds):
    """The results of `build` in a program, and with eager tensors."""
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        given = [fluid.data(f"x{k}", [-1, *a.shape[1:]], a.dtype.name) for k, a in enumerate(feeds)]
        fetches = build(*given)
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        static = exe.run(feed={f"x{k}": a for k, a in enumerate(feeds)}, fetch_list=fetches)
    with fluid.dygraph.guard():
        eager = [value.numpy() for value in build(*map(fluid.dygraph.to_variable, feeds))]
    return static, eager


@pytest.mark.parametrize("reverse", [False, True])
def test_rnn_in_both_modes(reverse):
    static, eager = both(
        lambda x, n: unrolled(x, Cell(), sequence_length=n, is_reverse=reverse, gain=0.5), [X, LENGTHS]
    )
    states, outputs = np.zeros((3, WIDTH), "float32"), []
    for step in range(4, -1, -1) if reverse else range(5):
        made = 0.5 * np.tanh(np.concatenate([X[:, step], states], 1) @ GRU_W)
        outputs.append(made)
        states = np.where((step < LENGTHS)[:, None], made, states)
    expected = np.stack(outputs[::-1] if reverse else outputs, 1)
    for got in (static, eager):
        np.testing.assert_allclose(got[0], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(got[1], X)
        np.testing.assert_allclose(got[2], states, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(got[3], np.repeat(LENGTHS[:, None].astype("float32"), 2, 1))


def embed(ids):
    table = layers.create_parameter(EMBEDDING.shape, "float32", attr=fixed(EMBEDDING))
    rows = layers.gather(table, layers.reshape(ids, [-1]))
    return layers.reshape(rows, [-1, *ids.shape[1:], 2])


def project(hidden):
    out = layers.create_parameter(OUT.shape, "float32", attr=fixed(OUT))
    return layers.matmul(hidden, out)


class Plain(layers.RNNCell):
    def __init__(self):
        self.weight = layers.create_parameter(GRU_W.shape, "float32", attr=fixed(GRU_W))

    def call(self, inputs, states):
        hidden = layers.tanh(layers.matmul(layers.concat([inputs, states], 1), self.weight))
        return hidden, hidden


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("options", [{}, {"impute_finished": True, "output_time_major": True}])
def test_beam_search_in_both_modes(width, options):
    def build(start):
        decoder = layers.BeamSearchDecoder(Plain(), 0, 2, width, embed, project)
        ids, states, lengths = layers.dynamic_decode(decoder, start, 5, return_length=True, **options)
        return [ids, lengths, *layers.utils.flatten(list(states))]

    for static, eager in zip(*both(build, [H]), strict=True):
        np.testing.assert_allclose(static, eager, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("is_test", [False, True])
def test_greedy_and_training_in_both_modes(is_test):
    def build(start, x, n):
        made = []
        begin = layers.fill_constant_batch_size_like(start, [-1], "int64", 0)
        for helper in (layers.GreedyEmbeddingHelper(embed, begin, 2), layers.TrainingHelper(x, n)):
            decoder = layers.BasicDecoder(Plain(), helper, project)
            out, last, steps = layers.dynamic_decode(
                decoder, layers.scale(start, 1.0), 6, is_test=is_test, return_length=True
            )
            made += [out.cell_outputs, out.sample_ids, last, steps]
        return made

    static, eager = both(build, [H, X, LENGTHS])
    for mine, theirs in zip(static, eager, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    assert static[0].shape[1] <= 7  # as in Fluid, one step more than the limit
    np.testing.assert_array_equal(static[7], LENGTHS)


def test_samples_are_drawn_by_the_softmax():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        begin = layers.fill_constant([4000], "int64", 0)
        helper = layers.SampleEmbeddingHelper(embed, begin, 2, softmax_temperature=0.5, seed=7)
        drawn = helper.sample(
            None, layers.expand(layers.assign(np.log([[1.0, 2.0, 3.0]]).astype("float32")), [4000, 1]), None
        )
        counts = np.bincount(fluid.Executor().run(fetch_list=[drawn])[0], minlength=3) / 4000
    np.testing.assert_allclose(counts, np.array([1, 4, 9]) / 14, atol=0.03)


def test_gradients_go_through_decoders():
    with fluid.dygraph.guard():
        start, x = fluid.dygraph.to_variable(H), fluid.dygraph.to_variable(X)
        start.stop_gradient = False
        helper = layers.TrainingHelper(x, fluid.dygraph.to_variable(LENGTHS))
        out, _ = layers.dynamic_decode(layers.BasicDecoder(Plain(), helper), start, 6)
        layers.reduce_sum(out.cell_outputs).backward()
        eager = start.gradient()
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        start, x = fluid.data("start", [-1, WIDTH]), fluid.data("x", [-1, -1, 2])
        start.stop_gradient = False
        out, _ = layers.dynamic_decode(
            layers.BasicDecoder(Plain(), layers.TrainingHelper(x, fluid.data("n", [-1], "int64"))), start, 6
        )
        slope = fluid.gradients(layers.reduce_sum(out.cell_outputs), start)
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        (static,) = exe.run(feed={"start": H, "x": X, "n": LENGTHS}, fetch_list=slope)
    np.testing.assert_allclose(static, eager, rtol=1e-4, atol=1e-5)


def test_initial_states(programs):
    x = fluid.data("x", [-1, 7, 3])
    cell = layers.RNNCell()
    assert cell.get_initial_states(x, shape=[3, 4]).shape == (-1, 3, 4)
    made = cell.get_initial_states({"x": x}, shape={"a": [2], "b": [[3], [-1, 4]]}, init_value=0.5)
    assert [made["a"].shape, made["b"][0].shape, made["b"][1].shape] == [(-1, 2), (-1, 3), (-1, 4)]
    assert layers.LSTMCell(5).state_shape == [[5], [5]]
    refuses(lambda: cell.get_initial_states(x), NotImplementedError, "no state_shape")


def test_gradients_of_initial_states_and_of_unused_outputs():
    """Data that a network begins with has a gradient; an output without one is named, and no zeros are made for it."""
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        start, x = fluid.data("start", [-1, WIDTH]), fluid.data("x", [-1, 5, 2])
        outputs, _ = layers.rnn(layers.GRUCell(WIDTH), x, start)
        assert not start.stop_gradient
        fluid.backward.append_backward(layers.reduce_sum(outputs))
        ops = fluid.default_main_program().global_block().ops
        (gradient,) = (op for op in ops if op.type == "recurrent_grad")
        assert gradient.output("initial_states@GRAD") == ["start@GRAD"]
        assert "fill_zeros_like" not in [op.type for op in ops]
        unused = gradient.input("outputs@GRAD")[1]
        assert not fluid.default_main_program().global_block().has_var(unused)
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        loss = layers.reduce_sum(outputs)
        slopes = []
        for step in (0.01, -0.01):
            moved = H + step * np.eye(3, WIDTH, dtype="float32")
            slopes.append(exe.run(feed={"start": moved, "x": X}, fetch_list=[loss])[0].item())
        (slope,) = exe.run(feed={"start": H, "x": X}, fetch_list=["start@GRAD"])
    np.testing.assert_allclose(np.trace(slope), (slopes[0] - slopes[1]) / 0.02, rtol=1e-2)


def test_refuses(programs):
    x = fluid.data("x", [-1, 7, 3])
    refuses(lambda: layers.rnn(layers.GRUCell(3), [1.0]), TypeError, "'inputs' in rnn must be a Variable")
    with pytest.raises(TypeError, match="'sequence_length' in rnn must be"):
        layers.rnn(layers.GRUCell(3), x, sequence_length=fluid.data("n", [-1]))
    refuses(lambda: layers.gather_tree(x, x), TypeError, "'ids' in gather_tree")
    refuses(lambda: layers.beam_search(x, x, None, x, 2, 1), TypeError, "'pre_ids' in beam_search")
    for name, given in (("initialize", 1), ("step", 3), ("finalize", 3)):
        with pytest.raises(NotImplementedError, match=name):
            getattr(layers.Decoder(), name)(*[None] * given)
    refuses(lambda: layers.RNNCell()(None, None), NotImplementedError, "must define call")


@pytest.mark.parametrize(("dtype", "casts"), [("int32", [3]), ("int64", [3, 3]), ("float32", [3, 5])])
def test_training_helper_casts_what_is_no_int32(programs, dtype, casts):
    """The operators of real Paddle 1.8.5, with the types that are converted."""
    x, lengths = fluid.data("x", [-1, 5, 4]), fluid.data("lengths", [-1], dtype)
    helper, time = layers.TrainingHelper(x, lengths), layers.fill_constant([1], "int64", 0)
    helper.next_inputs(time, x, [x], time)
    ops = fluid.default_main_program().global_block().ops
    assert [op.attr("in_dtype") for op in ops if op.type == "cast"] == casts
    others = [op.type for op in ops if op.type != "cast"]
    assert others == ["pad", "fill_constant", "scale", "less_equal", "scale", "slice", "squeeze2"]
