"""Choosing the device with the names of Paddle 2.0, and what follows it."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import paddle
from fluidlite.framework import mode

GPU, CPU = fluid.CUDAPlace(0), fluid.CPUPlace()


@pytest.fixture(autouse=True)
def as_before():
    with mode.place_guard(None):
        yield


@pytest.fixture
def gpu(cuda):
    paddle.set_device("gpu:0")
    return cuda


def test_set_device_says_where_tensors_are_made(cuda):
    assert paddle.get_device() == "cpu" and paddle.is_compiled_with_cuda()
    assert paddle.set_device("gpu") == GPU and paddle.get_device() == "gpu:0"
    found = [
        paddle.to_tensor([1.0]),
        paddle.ones([2]),
        paddle.full([2], 3),
        paddle.arange(3),
        paddle.rand([2]),
        paddle.nn.Linear(2, 2).weight,
        paddle.assign(np.ones(2, "float32")),
        paddle.zeros_like(paddle.ones([2])),
    ]
    assert {x.place for x in found} == {GPU}
    assert paddle.set_device("cpu") == CPU and paddle.get_device() == "cpu"
    assert paddle.to_tensor([1.0]).place == CPU
    for wrong in ("gpu:x", "gpu:", "GPU", "cpu:0", "tpu"):
        with pytest.raises(ValueError, match="the device must be"):
            paddle.set_device(wrong)
    with pytest.raises(ValueError, match=r"CUDAPlace\(99\) does not exist"):
        paddle.set_device("gpu:99")
    assert paddle.get_device() == "cpu"


def test_to_tensor_takes_a_place(gpu):
    for place, expected in ((CPU, CPU), ("cpu", CPU), ("gpu:0", GPU), (GPU, GPU), (None, GPU)):
        x = paddle.to_tensor([1.0, 2.0], place=place)
        assert x.place == expected and x.tolist() == [1, 2]
    assert paddle.to_tensor([1], place="gpu_pinned").place == paddle.CUDAPinnedPlace()
    x = paddle.to_tensor([1.0, 2.0])
    assert paddle.to_tensor(x, place="cpu").place == CPU and paddle.to_tensor(x).tolist() == [1, 2]
    assert paddle.to_tensor(gpu.arange(3)).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="a device is a place or a name"):
        paddle.to_tensor([1.0], place=3)


def test_indexing_and_what_needs_values(gpu):
    x = paddle.to_tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    rows, mask = paddle.to_tensor([1, 0]), x > 2.5
    assert x[rows].tolist() == [[4, 5, 6], [1, 2, 3]] and x[mask].tolist() == [3, 4, 5, 6]
    assert x[0, [2, 0]].tolist() == [3, 1] and x[mask].place == GPU
    before = x.array
    x[0, 1] = 9.0
    x[1] = paddle.to_tensor([7.0, 7.0, 7.0])
    assert x.tolist() == [[1, 9, 3], [7, 7, 7]] and x.place == GPU and x.array is not before
    for made in (paddle.unique(x), paddle.histogram(x, 3), paddle.bincount(rows), x.numel()):
        assert made.place == GPU
    assert paddle.unique(x).tolist() == [1, 3, 7, 9] and int(x.numel()) == 6
    assert x.fill_(2.0).tolist() == [[2] * 3] * 2 and x.zero_().place == GPU
    y = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    (y[paddle.to_tensor([0, 0, 2])] * 2.0).sum().backward()
    assert y.gradient().tolist() == [4, 0, 2]


def test_own_gradients_and_clipping(gpu):
    class Doubled(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2.0, x * 3.0

        @staticmethod
        def backward(ctx, first, second):
            assert first.place == second.place == GPU
            return first * 2.0 + second * 3.0

    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    Doubled.apply(x)[0].sum().backward()
    assert x.gradient().tolist() == [2, 2]
    layer = paddle.nn.Linear(2, 2)
    layer(x.reshape([1, 2])).sum().backward()
    norm = np.sqrt(sum((p.gradient() ** 2).sum() for p in layer.parameters()))
    assert paddle.nn.utils.clip_grad_norm_(layer.parameters(), 1.0) == pytest.approx(norm, rel=1e-5)
    after = np.sqrt(sum((p.gradient() ** 2).sum() for p in layer.parameters()))
    assert after == pytest.approx(1.0, rel=1e-4) and layer.weight.grad.place == GPU
    paddle.nn.utils.clip_grad_value_(layer.parameters(), 0.25)
    assert np.abs(layer.weight.gradient()).max() <= 0.25
    vector = paddle.nn.utils.parameters_to_vector(layer.parameters())
    paddle.nn.utils.vector_to_parameters(vector * 0.0 + 1.0, layer.parameters())
    assert layer.weight.tolist() == [[1, 1]] * 2 and layer.weight.place == GPU


def test_models_train_and_are_saved_across_places(gpu, tmp_path):
    found = {}
    for device in ("cpu", "gpu"):
        paddle.set_device(device)
        paddle.seed(4)
        net = paddle.nn.Sequential(paddle.nn.Linear(3, 4), paddle.nn.ReLU(), paddle.nn.Linear(4, 2))
        if found:
            net.set_state_dict(paddle.load(str(tmp_path / "net.pdparams")))
        else:
            paddle.save(net.state_dict(), str(tmp_path / "net.pdparams"))
        scheduler = paddle.optimizer.lr.StepDecay(0.1, 1)
        update = paddle.optimizer.AdamW(scheduler, parameters=net.parameters())
        metric = paddle.metric.Accuracy()
        losses = []
        for k in range(3):
            x = paddle.to_tensor(np.random.default_rng(k).random((4, 3), "float32"))
            y = paddle.to_tensor([[0], [1], [1], [0]])
            out = net(x)
            loss = paddle.nn.functional.cross_entropy(out, y)
            loss.backward()
            update.step()
            update.clear_grad()
            scheduler.step()
            metric.update(metric.compute(out, y))
            losses.append(float(loss))
        found[device] = losses, metric.accumulate(), net[0].weight.numpy()
        assert net[0].weight.place == (GPU if device == "gpu" else CPU)
    np.testing.assert_allclose(found["gpu"][0], found["cpu"][0], rtol=1e-5)
    np.testing.assert_allclose(found["gpu"][2], found["cpu"][2], rtol=1e-3, atol=1e-5)
    assert found["gpu"][1] == found["cpu"][1]


def test_padding_rows_are_zero(gpu):
    table = paddle.nn.Embedding(4, 3, padding_idx=2)
    assert table.weight.place == GPU and table.weight.numpy()[2].tolist() == [0, 0, 0]
