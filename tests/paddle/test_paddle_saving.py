"""`paddle.save` and `paddle.load`."""

import io
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import fluidlite.paddle as paddle
from fluidlite.base.errors import FormatError
from fluidlite.paddle import nn
from tests.refusals import refuses


def test_state_dicts(tmp_path):
    layer = nn.Linear(3, 2)
    paddle.save(layer.state_dict(), str(tmp_path / "new" / "layer.pdparams"))
    with open(tmp_path / "new" / "layer.pdparams", "rb") as file:
        raw = pickle.load(file)  # noqa: S301 - written a line above
    assert set(raw) == {"weight", "bias", "StructuredToParameterName@@"}
    assert raw["StructuredToParameterName@@"]["weight"] == layer.weight.name
    found = paddle.load(str(tmp_path / "new" / "layer.pdparams"))
    assert list(found) == ["weight", "bias"] and isinstance(found["weight"], paddle.Tensor)
    other = nn.Linear(3, 2)
    other.set_state_dict(found)
    np.testing.assert_array_equal(other.weight.numpy(), layer.weight.numpy())
    arrays = paddle.load(tmp_path / "new" / "layer.pdparams", return_numpy=True)
    assert isinstance(arrays["bias"], np.ndarray)


def test_optimizers_go_on(tmp_path):
    def steps(layer, optimizer, count):
        for _ in range(count):
            layer(paddle.ones([1, 2])).sum().backward()
            optimizer.step()
            optimizer.clear_grad()

    layer = nn.Linear(2, 1)
    schedule = paddle.optimizer.lr.ExponentialDecay(0.1, 0.9)
    optimizer = paddle.optimizer.Adam(schedule, parameters=layer.parameters())
    steps(layer, optimizer, 2)
    paddle.save({"model": layer.state_dict(), "opt": optimizer.state_dict(), "epoch": 2}, tmp_path / "all")
    steps(layer, optimizer, 2)
    expected = layer.weight.numpy()
    found = paddle.load(tmp_path / "all")
    layer.set_state_dict(found["model"])
    restored = paddle.optimizer.Adam(
        paddle.optimizer.lr.ExponentialDecay(0.1, 0.9), parameters=layer.parameters()
    )
    restored.set_state_dict(found["opt"])
    steps(layer, restored, 2)
    np.testing.assert_allclose(layer.weight.numpy(), expected, rtol=1e-6)
    assert found["epoch"] == 2


def test_nested_data(tmp_path):
    data = {"a": [paddle.to_tensor([1.0]), 3, (None, "x")], "b": OrderedDict(c=np.arange(3)), "d": 2.5}
    paddle.save(data, tmp_path / "data")
    found = paddle.load(tmp_path / "data")
    assert found["a"][0].tolist() == [1.0] and found["a"][1:] == [3, (None, "x")]
    assert found["b"]["c"].tolist() == [0, 1, 2] and found["d"] == 2.5
    paddle.save([paddle.ones([2]), 1], tmp_path / "list")
    assert paddle.load(tmp_path / "list")[0].tolist() == [1, 1]
    paddle.save(paddle.ones([2]), tmp_path / "tensor")
    assert paddle.load(tmp_path / "tensor").tolist() == [1, 1]


def test_tensors_of_later_releases(tmp_path):
    class Named:
        """Pickled as Paddle 2.1 and later pickle tensors."""

        def __reduce__(self):
            return tuple, (("linear_0.w_0", np.array([1.0, 2.0], "float32")),)

    (tmp_path / "later").write_bytes(pickle.dumps({"w": [Named()]}, 4))
    (tensor,) = paddle.load(tmp_path / "later")["w"]
    assert tensor.tolist() == [1, 2] and tensor.name == "linear_0.w_0"


def test_nothing_is_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("gotcha",)

    (tmp_path / "evil").write_bytes(pickle.dumps({"w": Evil()}))
    refuses(lambda: paddle.load(tmp_path / "evil"), FormatError, "Nothing in it was run")
    (tmp_path / "cut").write_bytes(pickle.dumps({"w": np.ones(9)})[:40])
    refuses(lambda: paddle.load(tmp_path / "cut"), FormatError, "cut")


def test_errors(tmp_path):
    with pytest.raises(TypeError, match=r"the object\['a'\]\[1\] is of type Linear"):
        paddle.save({"a": [1, nn.Linear(1, 1)]}, tmp_path / "x")
    assert not (tmp_path / "x").exists()
    refuses(lambda: paddle.save({}, f"{tmp_path}/"), ValueError, "name of a file")
    paddle.save({"a": 1}, tmp_path / "m.pdparams")
    refuses(lambda: paddle.load(tmp_path / "m"), FileNotFoundError, "did you mean .*m.pdparams")


def test_in_memory():
    file = io.BytesIO()
    paddle.save({"a": paddle.ones([2]), "n": 3}, file)
    file.seek(0)
    found = paddle.load(file)
    assert found["a"].tolist() == [1.0, 1.0] and found["n"] == 3
