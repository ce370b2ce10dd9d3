"""Weight prepacking: matrices that are packed once for many products."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite._ext import kernels

from .test_native_fusion import both

DATA = np.random.RandomState(1).randn(9, 96).astype("float32")
WEIGHT = np.random.RandomState(2).randn(96, 96).astype("float32") / 10


def weight(name="w"):
    initial = fluid.initializer.NumpyArrayInitializer(WEIGHT)
    return layers.create_parameter([96, 96], "float32", name=name, default_initializer=initial)


def started():
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe


@pytest.mark.parametrize("transposed", [False, True])
def test_products_in_a_line(transposed):
    x, w = fluid.data("x", [None, 96]), weight()
    out = x
    for _ in range(4):
        out = layers.tanh(layers.matmul(out, w, transpose_y=transposed))
    exe = started()
    for data in (DATA, DATA[:2], DATA[:1]):
        both(exe, {"x": data}, [out])
    assert exe.describe().count("w@PACKED96") >= 5


@pytest.mark.parametrize("rows, times", [(7, 4), (9, 2)])
def test_what_would_not_pay_stays(rows, times):
    x, w = fluid.data("x", [rows, 96]), weight()
    out = x
    for _ in range(times):
        out = layers.tanh(layers.matmul(out, w))
    exe = started()
    both(exe, {"x": DATA[:rows]}, [out])
    assert "PACKED" not in exe.describe()


def test_a_line_with_gradients_and_updates():
    """Forward operators use matrices packed in the same step, before the update."""
    x = fluid.data("x", [None, 96])
    out, w = x, weight()
    for _ in range(3):
        out = layers.tanh(layers.matmul(out, w))
    loss = layers.mean(layers.square(out))
    fluid.optimizer.SGD(0.5).minimize(loss)
    exe = started()
    expected, state = [], WEIGHT.astype("float64")
    for _ in range(4):
        values = [DATA.astype("float64")]
        for _ in range(3):
            values.append(np.tanh(values[-1] @ state))
        expected.append((values[-1] ** 2).mean())
        grad, total = 2 * values[-1] / values[-1].size, 0
        for before, after in zip(values[-2::-1], values[:0:-1], strict=True):
            grad = grad * (1 - after**2)
            total = total + before.T @ grad
            grad = grad @ state.T
        state = state - 0.5 * total
    got = [exe.run(feed={"x": DATA}, fetch_list=[loss])[0].item() for _ in range(4)]
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    assert "w@PACKED96" in exe.describe()


def test_a_weight_that_changes_in_between():
    x, w = fluid.data("x", [9, 96]), weight()
    out = layers.matmul(layers.matmul(x, w), w)
    layers.assign(layers.scale(w, 0.5), w)
    out = layers.matmul(out, w)
    exe = started()
    (got,) = exe.run(feed={"x": DATA}, fetch_list=[out])
    np.testing.assert_allclose(got, DATA @ WEIGHT @ WEIGHT @ WEIGHT / 2, rtol=2e-4, atol=1e-5)
    assert "PACKED" not in exe.describe()


@pytest.mark.parametrize("changes", [False, True])
def test_a_loop(changes):
    """Whether a turn changes its weight or not."""
    x, w = fluid.data("x", [None, 96]), weight()
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    state, moving = layers.assign(x), layers.assign(w)
    going = layers.less_than(i, n)
    loop = layers.While(going, is_test=True)
    with loop.block():
        layers.assign(layers.tanh(layers.matmul(state, moving if changes else w)), state)
        if changes:
            layers.assign(layers.scale(moving, 0.5), moving)
        layers.increment(i, 1)
        layers.less_than(i, n, cond=going)
    exe = started()
    for data in (DATA, DATA[:3], DATA[:1]):
        expected, matrix = data, WEIGHT
        for _ in range(3):
            expected, matrix = np.tanh(expected @ matrix), matrix / 2 if changes else matrix
        (got,) = exe.run(feed={"x": data}, fetch_list=[state])
        np.testing.assert_allclose(got, expected, rtol=2e-4, atol=1e-5)


def decoder():
    start = fluid.data("start", [None, 96])
    search = layers.BeamSearchDecoder(
        layers.GRUCell(96),
        start_token=0,
        end_token=1,
        beam_size=3,
        embedding_fn=lambda ids: fluid.embedding(ids, [60, 96], param_attr="embedding"),
        output_fn=lambda x: layers.fc(x, 60, num_flatten_dims=2),
    )
    return layers.dynamic_decode(search, start, max_step_num=6, is_test=True)[0]


def test_a_loop_of_segments(monkeypatch):
    """A search packs before its first iteration, for several sizes; results are those of plain products."""
    found = decoder()
    exe = started()
    batches = [np.random.RandomState(k).randn(n, 96).astype("float32") for k, n in enumerate((4, 7, 2, 4))]
    got = [exe.run(feed={"start": batch}, fetch_list=[found])[0] for batch in batches]
    assert exe.describe().count("@PACKED") >= 6
    monkeypatch.setenv("FLUIDLITE_WITHOUT_PASSES", "packing")
    plain = fluid.Executor()
    program = fluid.default_main_program().clone()
    for batch, tokens in zip(batches, got, strict=True):
        np.testing.assert_array_equal(
            plain.run(program, feed={"start": batch}, fetch_list=[found.name])[0], tokens
        )
    assert "PACKED" not in plain.describe(program)


def test_plans_keep_the_instruction_set_they_were_made_for():
    """The order in which a matrix is packed is that of the kernels that read it."""
    words = fluid.data("words", [None, 96], lod_level=1)
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, state = rnn.step_input(words), rnn.memory(shape=[96], value=0.0)
        new = layers.tanh(layers.matmul(state, weight()) + word)
        rnn.update_memory(state, new)
        rnn.output(new)
    out = rnn()
    exe = started()
    fed = fluid.create_lod_tensor(DATA, [[5, 4]], fluid.CPUPlace())
    results = []
    before = kernels.use(kernels.targets()[0])
    try:
        for target in kernels.targets():
            kernels.use(target)
            results.append(np.array(exe.run(feed={"words": fed}, fetch_list=[out], return_numpy=False)[0]))
    finally:
        kernels.use(before)
    for got in results[1:]:
        np.testing.assert_array_equal(got, results[0])
