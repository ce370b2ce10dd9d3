"""cudnn_lstm; the order of its weights and its numbers are those of PyTorch's LSTM, which hands the same to cuDNN."""

import numpy as np
import pytest
from scipy.special import expit as sigmoid

import fluidlite as fluid
from fluidlite.ops.registry import OperatorError
from fluidlite.ops.rnn.cudnn_lstm import _dropout

from .. import in_native
from ..harness import check, gradients, infer, numeric_gradient, run_kernel

TIME, BATCH, WIDTH, SIZE = 3, 2, 3, 2


def operands(layers, ways):
    rng = np.random.default_rng(6)
    widths = [WIDTH] * ways + [SIZE * ways] * (ways * (layers - 1))
    elements = sum(4 * SIZE * (width + SIZE + 2) for width in widths)
    shapes = {"Input": (TIME, BATCH, WIDTH), "W": (elements,)}
    shapes.update(dict.fromkeys(("InitH", "InitC"), (layers * ways, BATCH, SIZE)))
    return {slot: rng.uniform(-1, 1, shape).astype("float32") for slot, shape in shapes.items()}


def expected(given, layers, ways):
    """All states of the last layer, and last states and cells of each."""
    x, flat = given["Input"], list(given["W"])

    def take(*shape):
        taken = [flat.pop(0) for _ in range(int(np.prod(shape)))]
        return np.array(taken).reshape(shape)

    widths = [WIDTH] * ways + [SIZE * ways] * (ways * (layers - 1))
    matrices = [(take(4 * SIZE, width), take(4 * SIZE, SIZE)) for width in widths]
    biases = [take(4 * SIZE) + take(4 * SIZE) for _ in widths]
    last_h, last_c = [], []
    for layer in range(layers):
        outs = []
        for k in range(layer * ways, (layer + 1) * ways):
            h, c, out = given["InitH"][k], given["InitC"][k], np.zeros((TIME, BATCH, SIZE))
            for t in range(TIME)[:: -1 if k % ways else 1]:
                i, f, g, o = np.split(x[t] @ matrices[k][0].T + h @ matrices[k][1].T + biases[k], 4, axis=1)
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                out[t] = h = sigmoid(o) * np.tanh(c)
            outs.append(out)
            last_h.append(h)
            last_c.append(c)
        x = np.concatenate(outs, axis=2)
    return x, np.stack(last_h), np.stack(last_c)


@pytest.mark.parametrize("layers, ways", [(1, 1), (1, 2), (2, 2), (3, 1)])
def test_states_and_gradients(layers, ways):
    given = operands(layers, ways)
    attrs = {"hidden_size": SIZE, "num_layers": layers, "is_bidirec": ways == 2}
    outputs = zip(("Out", "last_h", "last_c"), expected(given, layers, ways), strict=True)
    grads = list(given) if layers * ways < 4 else ["Input", "InitH", "InitC"]
    check("cudnn_lstm", given, attrs, {slot: a.astype("float32") for slot, a in outputs}, grads=grads)


def test_dropout_between_layers():
    given = operands(2, 1)
    attrs = {"hidden_size": SIZE, "num_layers": 2, "dropout_prob": 0.5}
    plain = run_kernel("cudnn_lstm", given, {**attrs, "is_test": True})
    dropped = run_kernel("cudnn_lstm", given, attrs)
    np.testing.assert_array_equal(dropped["last_h"][0][0], plain["last_h"][0][0])
    assert not np.allclose(dropped["Out"][0], plain["Out"][0])
    assert not np.allclose(run_kernel("cudnn_lstm", given, {**attrs, "seed": 5})["Out"][0], dropped["Out"][0])
    exact = {slot: array.astype("float64") for slot, array in given.items()}
    weights = {"Out": [np.cos(np.arange(12.0)).reshape(TIME, BATCH, SIZE)]}
    found = gradients("cudnn_lstm", exact, attrs, weights)["Input"][0]
    want = numeric_gradient("cudnn_lstm", exact, attrs, weights, "Input")
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("layers, ways, prob", [(1, 2, 0.5), (2, 1, 0.3), (3, 2, 0.7), (2, 2, 1.0)])
def test_kernels_drop_the_same(layers, ways, prob, kind):
    given = {slot: array.astype(kind) for slot, array in operands(layers, ways).items()}
    attrs = {
        "hidden_size": SIZE,
        "num_layers": layers,
        "is_bidirec": ways == 2,
        "dropout_prob": prob,
        "seed": 3,
    }
    in_native.check("cudnn_lstm", given, attrs)
    in_native.check("cudnn_lstm", given, {**attrs, "is_test": True})


def test_masks_keep_the_share_they_should_and_differ_from_layer_to_layer():
    draw = _dropout(operands(1, 1)["W"], 0.3, -1, False)
    first, second = draw(1, (100, 20, 10)), draw(2, (100, 20, 10))
    assert set(np.unique(first).tolist()) == {0.0, np.float32(1 / 0.7).item()}
    assert abs(first.mean() - 1) < 0.03 and abs((first * second).mean() - 1) < 0.05


@pytest.mark.parametrize(
    "slot, shape, message",
    [
        ("Input", (3, 3), "Input must have 3 dimensions"),
        ("W", (9,), r"W must be of shape \[56\] for this Input, got \[9\]"),
        ("InitH", (2, 2, 2), r"InitH must be of shape \[1, 2, 2\], got \[2, 2, 2\]"),
    ],
)
def test_what_does_not_fit_is_said(slot, shape, message):
    with pytest.raises(OperatorError, match=message):
        infer(
            "cudnn_lstm",
            {**operands(1, 1), slot: np.zeros(shape, "float32")},
            {"hidden_size": SIZE},
            exact=True,
        )


@pytest.mark.parametrize("engine", ["plan", "interpret"])
def test_layer(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("FLUIDLITE_ENGINE", engine)
    x, h = np.ones((4, 3, 5), "float32"), np.zeros((4, 3, 6), "float32")
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        rows = fluid.data("x", [-1, -1, 5])
        starts = [fluid.data(name, [4, -1, 6]) for name in ("h", "c")]
        out, _, last_c = fluid.layers.lstm(rows, *starts, 20, 6, 2, dropout_prob=0.3, is_bidirec=True)
        test = main.clone(for_test=True)
        loss = fluid.layers.reduce_mean(fluid.layers.square(out)) + fluid.layers.reduce_mean(last_c)
        fluid.optimizer.SGD(1.0).minimize(loss)
    assert [(p.name, p.shape) for p in main.all_parameters()] == [("cudnn_lstm_0.w_0", (1584,))]
    assert main.global_block().ops[0].input("Cache") == ["_generated_var_0"]
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        feed = {"x": x, "h": h, "c": h}
        losses = [exe.run(main, feed=feed, fetch_list=[loss])[0].item() for _ in range(30)]
        made = [exe.run(test, feed=feed, fetch_list=[out])[0] for _ in range(2)]
    assert losses[-1] < losses[0] - 0.1
    assert made[0].shape == (4, 3, 12)
    np.testing.assert_array_equal(*made)
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path), ["x", "h", "c"], [out], exe, test)
        want = exe.run(test, feed=feed, fetch_list=[out])[0]
    with fluid.scope_guard(fluid.Scope()):
        loaded, _, fetched = fluid.io.load_inference_model(str(tmp_path), exe)
        np.testing.assert_array_equal(exe.run(loaded, feed=feed, fetch_list=fetched)[0], want)
