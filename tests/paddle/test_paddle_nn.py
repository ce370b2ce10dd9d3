"""The layers of `paddle.nn`: what they compute, their parameters, their modes."""

import copy
import inspect
import math

import numpy as np
import pytest
from scipy import special

import fluidlite.paddle as paddle
import fluidlite.paddle.nn.functional as F
from fluidlite import dygraph
from fluidlite.base import unique_name
from fluidlite.paddle import nn

R = np.random.RandomState(11)


def floats(*shape):
    return paddle.to_tensor(R.uniform(-1, 1, shape).astype("float32"))


LAYERS = {
    "Linear": (lambda: nn.Linear(6, 3), (2, 4, 5, 6), (2, 4, 5, 3), {"weight": [6, 3], "bias": [3]}),
    "Conv1D": (lambda: nn.Conv1D(4, 2, 3, padding=1), (2, 4, 5), (2, 2, 5),
        {"weight": [2, 4, 3], "bias": [2]}),
    "Conv2D": (lambda: nn.Conv2D(4, 6, (3, 1), 2, groups=2, bias_attr=False), (2, 4, 5, 6), (2, 6, 2, 3),
        {"weight": [6, 2, 3, 1]}),
    "Conv2D same": (lambda: nn.Conv2D(6, 2, 3, padding="same", data_format="NHWC"), (2, 4, 5, 6),
        (2, 4, 5, 2), {"weight": [2, 6, 3, 3], "bias": [2]}),
    "Conv3D": (lambda: nn.Conv3D(2, 3, 2), (1, 2, 3, 4, 5), (1, 3, 2, 3, 4),
        {"weight": [3, 2, 2, 2, 2], "bias": [3]}),
    "Conv1DTranspose": (lambda: nn.Conv1DTranspose(4, 2, 3, 2), (2, 4, 5), (2, 2, 11),
        {"weight": [4, 2, 3], "bias": [2]}),
    "Conv2DTranspose": (lambda: nn.Conv2DTranspose(4, 2, 3, 2, output_padding=1), (2, 4, 5, 6),
        (2, 2, 12, 14), {"weight": [4, 2, 3, 3], "bias": [2]}),
    "Conv3DTranspose": (lambda: nn.Conv3DTranspose(2, 3, 2), (1, 2, 3, 4, 5), (1, 3, 4, 5, 6),
        {"weight": [2, 3, 2, 2, 2], "bias": [3]}),
    "BatchNorm1D": (lambda: nn.BatchNorm1D(4), (2, 4, 5), (2, 4, 5),
        {"weight": [4], "bias": [4], "_mean": [4], "_variance": [4]}),
    "BatchNorm3D": (lambda: nn.BatchNorm3D(4), (2, 4, 2, 2, 2), (2, 4, 2, 2, 2),
        {"weight": [4], "bias": [4], "_mean": [4], "_variance": [4]}),
    "LayerNorm": (lambda: nn.LayerNorm([5, 6]), (2, 4, 5, 6), (2, 4, 5, 6), {"weight": [30], "bias": [30]}),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (2, 4, 5, 6), (2, 4, 5, 6), {"weight": [4], "bias": [4]}),
    "InstanceNorm2D": (lambda: nn.InstanceNorm2D(4), (2, 4, 5, 6), (2, 4, 5, 6),
        {"scale": [4], "bias": [4]}),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(3), (2, 4, 5), (2, 4, 5), {}),
    "PReLU": (lambda: nn.PReLU(4), (2, 4, 5, 6), (2, 4, 5, 6), {"weight": [4]}),
    "Flatten": (nn.Flatten, (2, 4, 5, 6), (2, 120), {}),
    "Pad1D": (lambda: nn.Pad1D([1, 2]), (2, 4, 5), (2, 4, 8), {}),
    "Pad2D": (lambda: nn.Pad2D(1, "reflect"), (2, 4, 5, 6), (2, 4, 7, 8), {}),
    "ZeroPad2D": (lambda: nn.ZeroPad2D([1, 0, 2, 0]), (2, 4, 5, 6), (2, 4, 7, 7), {}),
    "Upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (2, 4, 5, 6), (2, 4, 10, 12), {}),
    "UpsamplingBilinear2D": (lambda: nn.UpsamplingBilinear2D([3, 4]), (2, 4, 5, 6), (2, 4, 3, 4), {}),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), (2, 4, 5, 6), (2, 1, 10, 12), {}),
    "MaxPool2D": (lambda: nn.MaxPool2D(2, 2), (2, 4, 5, 6), (2, 4, 2, 3), {}),
    "AvgPool2D ceil": (lambda: nn.AvgPool2D(2, 2, ceil_mode=True), (2, 4, 5, 6), (2, 4, 3, 3), {}),
    "MaxPool1D": (lambda: nn.MaxPool1D(2), (2, 4, 5), (2, 4, 2), {}),
    "AvgPool3D": (lambda: nn.AvgPool3D(2), (1, 2, 4, 4, 4), (1, 2, 2, 2, 2), {}),
    "AdaptiveAvgPool2D": (lambda: nn.AdaptiveAvgPool2D((3, None)), (2, 4, 5, 6), (2, 4, 3, 6), {}),
    "AdaptiveMaxPool3D": (lambda: nn.AdaptiveMaxPool3D(2), (1, 2, 4, 4, 4), (1, 2, 2, 2, 2), {}),
    "Unfold": (lambda: nn.Unfold(2), (2, 4, 5, 6), (2, 16, 20), {}),
    "Identity": (lambda: nn.Identity(7, anything=True), (2, 3), (2, 3), {}),
    "Maxout": (lambda: nn.Maxout(2), (2, 4, 5, 6), (2, 2, 5, 6), {}),
    "Softmax": (lambda: nn.Softmax(0), (2, 3), (2, 3), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_shapes_and_state(name):
    make, given, shape, state = LAYERS[name]
    layer = make()
    assert {key: value.shape for key, value in layer.state_dict().items()} == state
    out = layer(floats(*given))
    assert tuple(out.shape) == shape
    twin = copy.deepcopy(layer)
    twin.set_state_dict({key: value.numpy() for key, value in layer.state_dict().items()})
    layer.eval(), twin.eval()
    x = floats(*given)
    np.testing.assert_array_equal(layer(x).numpy(), twin(x).numpy())
    assert type(layer).__name__ in repr(layer)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_build_programs(name):
    make, given, shape, _ = LAYERS[name]
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        paddle.enable_static()
        try:
            out = make()(paddle.static.data("x", [None, *given[1:]]))
        finally:
            paddle.disable_static()
    assert tuple(out.shape[1:]) == shape[1:] and out.shape[0] in (-1, shape[0])


def test_layers_compute_what_functions_do():
    x, y = floats(2, 4, 5, 6), floats(2, 4, 5, 6)
    conv = nn.Conv2D(4, 2, 3, stride=2, padding=[1, 0])
    expected = F.conv2d(x, conv.weight, conv.bias, 2, [1, 0])
    np.testing.assert_array_equal(conv(x).numpy(), expected.numpy())
    circular = nn.Conv2D(4, 2, 3, padding=(1, 0), padding_mode="circular")
    padded = F.pad(x, [0, 0, 1, 1], "circular")
    np.testing.assert_array_equal(
        circular(x).numpy(), F.conv2d(padded, circular.weight, circular.bias).numpy()
    )
    np.testing.assert_array_equal(nn.LeakyReLU(0.3)(x).numpy(), F.leaky_relu(x, 0.3).numpy())
    np.testing.assert_array_equal(
        nn.CosineSimilarity(axis=2)(x, y).numpy(), F.cosine_similarity(x, y, 2).numpy()
    )
    np.testing.assert_array_equal(
        nn.SmoothL1Loss(delta=0.5)(x, y).numpy(), F.smooth_l1_loss(x, y, delta=0.5).numpy()
    )
    bilinear = nn.Bilinear(4, 3, 2)
    rows = floats(5, 4), floats(5, 3)
    expected = np.einsum("ni,oij,nj->no", rows[0].numpy(), bilinear.weight.numpy(), rows[1].numpy())
    np.testing.assert_allclose(
        bilinear(*rows).numpy(), expected + bilinear.bias.numpy(), rtol=1e-4, atol=1e-5
    )


def test_embedding():
    layer = nn.Embedding(5, 3, padding_idx=-1)
    assert layer.weight.shape == [5, 3] and not layer.weight.numpy()[4].any()
    out = layer(paddle.to_tensor([[0, 4], [2, 2]]))
    np.testing.assert_array_equal(out.numpy(), layer.weight.numpy()[[[0, 4], [2, 2]]])
    out.sum().backward()
    np.testing.assert_array_equal(layer.weight.gradient(), np.array([1, 0, 2, 0, 0])[:, None] * np.ones(3))
    with pytest.raises(ValueError, match="padding_idx"):
        nn.Embedding(5, 3, padding_idx=5)


def test_initial_values():
    paddle.seed(1)
    assert abs(nn.Embedding(400, 50).weight.numpy().std() - 1) < 0.05
    assert abs(nn.Conv2D(8, 64, 3).weight.numpy().std() - math.sqrt(2 / 72)) < 0.01
    limit = math.sqrt(6 / 300)
    weight = nn.Linear(100, 200).weight.numpy()
    assert weight.max() <= limit and weight.std() == pytest.approx(limit / math.sqrt(3), rel=0.02)
    attr = paddle.ParamAttr(initializer=nn.initializer.Assign([[1.0, 2.0]]))
    assert nn.Linear(1, 2, weight_attr=attr).weight.tolist() == [[1, 2]]
    for start, std in (
        (nn.initializer.KaimingNormal(), math.sqrt(2 / 100)),
        (nn.initializer.KaimingUniform(), math.sqrt(2 / 100)),
        (nn.initializer.XavierNormal(), math.sqrt(2 / 300)),
        (nn.initializer.Normal(0, 0.3), 0.3),
        (nn.initializer.Uniform(-0.3, 0.3), 0.3 / math.sqrt(3)),
    ):
        assert nn.Linear(100, 200, weight_attr=start).weight.numpy().std() == pytest.approx(std, rel=0.03)
    assert nn.initializer.calculate_gain("leaky_relu", 1.0) == 1.0
    with pytest.raises(ValueError, match="relu"):
        nn.initializer.calculate_gain("other")


def test_seed_makes_everything_repeatable():
    def draw():
        paddle.seed(42)
        layer = nn.Linear(3, 2)
        parts = [
            layer.weight,
            paddle.randn([3]),
            F.dropout(paddle.ones([9])),
            paddle.randperm(7),
            paddle.rand([2]),
        ]
        return np.concatenate([part.numpy().reshape(-1) for part in parts])

    first = draw()
    np.testing.assert_array_equal(first, draw())
    assert (paddle.rand([8]).numpy() != paddle.rand([8]).numpy()).any()


def test_parameters_are_called_as_in_paddle():
    with unique_name.guard():
        net = nn.Sequential(nn.Conv2D(1, 2, 3), nn.BatchNorm2D(2), nn.ReLU(), nn.Flatten(), nn.Linear(2, 3))
        names = [parameter.name for parameter in net.parameters()]
    assert " ".join(names) == (
        "conv2d_0.w_0 conv2d_0.b_0 batch_norm2d_0.w_0 batch_norm2d_0.b_0 batch_norm2d_0.w_1 batch_norm2d_0.w_2 "
        "linear_0.w_0 linear_0.b_0"
    )
    assert list(net.state_dict()) == [
        "0.weight", "0.bias", "1.weight", "1.bias", "1._mean", "1._variance", "4.weight", "4.bias",
    ]  # fmt: skip


def test_layers_are_those_of_dygraph():
    assert nn.Layer is dygraph.Layer and nn.Sequential is dygraph.Sequential
    assert isinstance(nn.Linear(1, 1), dygraph.Linear)


def test_training_and_evaluation():
    norm, drop = nn.BatchNorm2D(4, momentum=0.5), nn.Dropout(0.5)
    net = nn.Sequential(norm, drop)
    x = floats(8, 4, 3, 3)
    assert (net(x).numpy() == 0).mean() > 0.2
    net.eval()
    np.testing.assert_allclose(norm._mean.numpy(), 0.5 * x.numpy().mean((0, 2, 3)), rtol=1e-3, atol=1e-5)
    expected = (x.numpy() - norm._mean.numpy()[:, None, None]) / np.sqrt(
        norm._variance.numpy()[:, None, None] + 1e-5
    )
    np.testing.assert_allclose(net(x).numpy(), expected, rtol=1e-4, atol=1e-5)
    frozen = nn.BatchNorm1D(2, weight_attr=False)
    assert frozen.weight.stop_gradient and frozen.weight.tolist() == [1, 1] and not frozen.bias.stop_gradient


def test_a_layer_learns():
    paddle.seed(0)
    x, true = floats(64, 3), np.array([[1.0], [-2.0], [0.5]], "float32")
    label = paddle.to_tensor(x.numpy() @ true)
    layer = nn.Linear(3, 1)
    optimizer = paddle.optimizer.Adam(0.1, parameters=layer.parameters())
    for _ in range(150):
        loss = F.mse_loss(layer(x), label)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    np.testing.assert_allclose(layer.weight.numpy(), true, atol=0.01)


def test_containers():
    layers = nn.LayerDict({"a": nn.Linear(1, 2), "b": nn.ReLU()})
    layers["c"] = nn.Linear(2, 1)
    assert list(layers) == ["a", "b", "c"] and len(layers) == 3 and "b" in layers
    assert len(layers.parameters()) == 4
    layers.pop("a")
    del layers["b"]
    assert list(layers.keys()) == ["c"] and list(layers.state_dict()) == ["c.weight", "c.bias"]
    layers.clear()
    assert not len(layers)


def test_vectors_of_parameters_and_limits_of_gradients():
    layer = nn.Linear(2, 2)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert vector.shape == [6]
    nn.utils.vector_to_parameters(vector * 0 + 3, layer.parameters())
    assert (layer.weight.numpy() == 3).all() and (layer.bias.numpy() == 3).all()
    with pytest.raises(ValueError, match="6 elements, the vector 5"):
        nn.utils.vector_to_parameters(vector[:5], layer.parameters())
    (layer(paddle.ones([1, 2])) * 10).sum().backward()
    before = np.sqrt(6 * 10.0**2)
    assert nn.utils.clip_grad_norm_(layer.parameters(), 1.0) == pytest.approx(before)
    total = sum((parameter.gradient() ** 2).sum() for parameter in layer.parameters())
    assert total == pytest.approx(1.0, rel=1e-4)
    nn.utils.clip_grad_value_(layer.parameters(), 0.1)
    assert max(parameter.gradient().max() for parameter in layer.parameters()) == np.float32(0.1)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: nn.LeakyReLU(slope=1), TypeError, "negative_slope"),
        (lambda: nn.MaxPool2D(), TypeError, "MaxPool2D needs kernel_size"),
        (lambda: nn.Dropout(2), ValueError, r"Dropout must be in \[0, 1\]"),
        (
            lambda: nn.Conv2D(3, 4, 3, groups=2),
            ValueError,
            "in_channels of Conv2D must be divisible by groups = 2",
        ),
        (lambda: nn.Conv2D(3, 4, 3, padding_mode="other"), ValueError, "circular"),
        (lambda: nn.BatchNorm2D(3)(floats(2, 3)), ValueError, "BatchNorm2D takes inputs with 4 axes"),
        (lambda: nn.LSTM(3, 4, direction="back"), ValueError, "bidirect"),
        (lambda: nn.GRUCell(3, 0), ValueError, "hidden_size of GRUCell must be positive"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_every_layer_says_what_it_is():
    for name in nn.__all__:
        layer = getattr(nn, name)
        if inspect.isclass(layer):
            assert layer.__doc__ and len(layer.__doc__) > 30, name


# Recurrent layers


def lstm_step(x, h, c, w):
    gates = x @ w["weight_ih"].T + w["bias_ih"] + h @ w["weight_hh"].T + w["bias_hh"]
    enter, forget, cell, leave = np.split(gates, 4, -1)
    c = special.expit(forget) * c + special.expit(enter) * np.tanh(cell)
    return special.expit(leave) * np.tanh(c), c


def gru_step(x, h, w):
    a, b = x @ w["weight_ih"].T + w["bias_ih"], h @ w["weight_hh"].T + w["bias_hh"]
    (ar, au, ac), (br, bu, bc) = np.split(a, 3, -1), np.split(b, 3, -1)
    update = special.expit(au + bu)
    candidate = np.tanh(ac + special.expit(ar + br) * bc)
    return update * h + (1 - update) * candidate


def weights(layer):
    return {name: value.numpy() for name, value in layer.state_dict().items()}


def test_cells():
    x, h, c = (floats(2, n) for n in (3, 4, 4))
    lstm, gru, simple = nn.LSTMCell(3, 4), nn.GRUCell(3, 4), nn.SimpleRNNCell(3, 4, "relu")
    out, (new_h, new_c) = lstm(x, (h, c))
    expected = lstm_step(x.numpy(), h.numpy(), c.numpy(), weights(lstm))
    np.testing.assert_allclose(out.numpy(), expected[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(new_c.numpy(), expected[1], rtol=1e-4, atol=1e-6)
    assert new_h is out and lstm.state_shape == ((4,), (4,))
    np.testing.assert_allclose(
        gru(x, h)[0].numpy(), gru_step(x.numpy(), h.numpy(), weights(gru)), rtol=1e-4, atol=1e-6
    )
    w = weights(simple)
    plain = np.maximum(x.numpy() @ w["weight_ih"].T + w["bias_ih"] + w["bias_hh"], 0)
    np.testing.assert_allclose(simple(x)[0].numpy(), plain, rtol=1e-4, atol=1e-6)
    assert max(abs(value).max() for value in w.values()) <= 0.5  # 1 / sqrt(hidden_size)


def test_lstm_over_sequences():
    layer = nn.LSTM(3, 4)
    x = floats(2, 5, 3)
    outputs, (h, c) = layer(x)
    w = weights(layer[0].cell)
    state = np.zeros((2, 4)), np.zeros((2, 4))
    for step in range(5):
        state = lstm_step(x.numpy()[:, step], *state, w)
        np.testing.assert_allclose(outputs.numpy()[:, step], state[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(h.numpy()[0], state[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(c.numpy()[0], state[1], rtol=1e-4, atol=1e-6)
    assert layer.weight_ih_l0 is layer[0].cell.weight_ih and len(layer.parameters()) == 4
    stepped, _ = layer(x, (h, c))
    np.testing.assert_allclose(
        stepped.numpy()[:, 0], lstm_step(x.numpy()[:, 0], *state, w)[0], rtol=1e-4, atol=1e-6
    )


def test_lengths_and_directions():
    layer = nn.GRU(3, 4, 2, direction="bidirect")
    x = floats(2, 5, 3)
    outputs, h = layer(x, None, paddle.to_tensor([5, 2]))
    assert outputs.shape == [2, 5, 8] and h.shape == [4, 2, 4]
    assert not outputs.numpy()[1, 2:].any() and outputs.numpy()[0].all()
    short, _ = layer(x[1:, :2])
    np.testing.assert_allclose(outputs.numpy()[1:, :2], short.numpy(), rtol=1e-4, atol=1e-6)
    assert "weight_hh_l1_reverse" in layer.state_dict() and "1.cell_bw.weight_hh" in layer.state_dict()


def test_time_first_backwards():
    cell = nn.SimpleRNNCell(3, 4)
    x = floats(5, 2, 3)
    ahead, _ = nn.RNN(cell, time_major=True)(x)
    backward_outputs, _ = nn.RNN(cell, is_reverse=True, time_major=True)(paddle.flip(x, 0))
    np.testing.assert_allclose(ahead.numpy(), backward_outputs.numpy()[::-1], rtol=1e-5, atol=1e-6)


def test_recurrent_layers_learn():
    layer = nn.LSTM(2, 3, num_layers=2, dropout=0.1)
    out, _ = layer(floats(4, 6, 2))
    out.mean().backward()
    assert all(np.abs(parameter.gradient()).max() > 0 for parameter in layer.parameters())


def test_batch_norm_in_evaluation_mode_has_gradients():
    norm = nn.BatchNorm2D(3)
    x = paddle.to_tensor(np.random.default_rng(0).random((2, 3, 4, 4), "float32"), stop_gradient=False)
    norm(x)
    norm.eval()
    mean, variance = norm._mean.numpy(), norm._variance.numpy()
    norm(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy()[0, :, 0, 0], 1 / np.sqrt(variance + 1e-5), rtol=1e-5)
    assert norm.bias.grad.tolist() == [32.0] * 3
    np.testing.assert_array_equal(norm._mean.numpy(), mean)
