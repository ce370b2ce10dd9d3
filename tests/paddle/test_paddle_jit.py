"""`paddle.jit`: to_static, save and load."""

import copy

import numpy as np
import pytest

import fluidlite as fluid
import fluidlite.paddle as paddle
from fluidlite import dygraph, layers
from fluidlite.dygraph.jit.static_function import StaticFunction
from fluidlite.eager import Tensor
from fluidlite.paddle import jit
from fluidlite.paddle.static import InputSpec
from tests.refusals import refuses

X = np.arange(6, dtype="float32").reshape(2, 3)


class Net(dygraph.Layer):
    def __init__(self):
        super().__init__()
        self.linear = dygraph.Linear(3, 2)
        self.calls = 0

    @jit.to_static
    def forward(self, x):
        self.calls += 1
        return layers.relu(self.linear(x))


def test_layers_are_eager_and_trained_without_a_guard():
    net = Net()
    out = net(Tensor(X))
    out.backward()
    assert net.linear.bias.gradient().tolist() == (out.numpy() > 0).sum(0).tolist()
    net(Tensor(X))
    assert net.calls == 1


def test_to_static_of_a_layer_changes_its_forward():
    linear = dygraph.Linear(3, 2)
    assert jit.to_static(linear) is linear
    assert isinstance(linear.forward, StaticFunction)
    out = linear(Tensor(X)).numpy()
    np.testing.assert_allclose(out, X @ linear.weight.numpy(), rtol=1e-5)
    twin = copy.deepcopy(linear)
    twin.weight.set_value(np.zeros((3, 2), "float32"))
    assert twin(Tensor(X)).numpy().tolist() == [[0, 0], [0, 0]]
    np.testing.assert_array_equal(linear(Tensor(X)).numpy(), out)


def test_saved_model_is_a_layer_that_can_be_trained(tmp_path):
    net = Net()
    expected = net(Tensor(X)).numpy()
    jit.save(net, str(tmp_path / "deep" / "model"))
    assert sorted(p.name for p in (tmp_path / "deep").iterdir()) == ["model.pdiparams", "model.pdmodel"]
    loaded = jit.load(str(tmp_path / "deep" / "model"))
    np.testing.assert_allclose(loaded(Tensor(X)).numpy(), expected, rtol=1e-6)
    assert sorted(p.name for p in loaded.parameters()) == sorted(p.name for p in net.parameters())
    loaded(X).backward()
    bias = next(p for p in loaded.parameters() if p.shape == [2])
    assert bias.gradient().tolist() == (expected > 0).sum(0).tolist()
    assert [op.type for op in loaded.program().global_block().ops][:4] == [
        "feed",
        "matmul",
        "elementwise_add",
        "relu",
    ]
    refuses(lambda: loaded(X, X), ValueError, "takes 1 inputs .* got 2")


def test_input_spec_leaves_sizes_open_and_names_inputs(tmp_path):
    net = Net()
    jit.save(net, str(tmp_path / "model"), input_spec=[InputSpec([None, 3], "float32", "pixels")])
    loaded = jit.load(str(tmp_path / "model"))
    assert loaded.program().global_block().var("pixels").shape == (-1, 3)
    rows = np.ones((5, 3), "float32")
    np.testing.assert_allclose(loaded(rows).numpy(), net(Tensor(rows)).numpy(), rtol=1e-6)


def test_spec_given_to_to_static_is_used(tmp_path):
    @jit.to_static(input_spec=[InputSpec([None], name="x"), Tensor(np.zeros(1, "float32"))])
    def add(x, y):
        return x + y, x - y

    jit.save(add, str(tmp_path / "add"))
    total, difference = jit.load(str(tmp_path / "add"))(np.ones(3, "float32"), np.ones(1, "float32"))
    assert (total.numpy().tolist(), difference.numpy().tolist()) == ([2, 2, 2], [0, 0, 0])


def test_saved_model_is_an_inference_model_of_fluid(tmp_path):
    net = Net()
    expected = net(Tensor(X)).numpy()
    jit.save(net, str(tmp_path / "model"))
    with fluid.scope_guard(fluid.Scope()):
        executor = fluid.Executor()
        program, feeds, fetches = fluid.io.load_inference_model(
            str(tmp_path), executor, "model.pdmodel", "model.pdiparams"
        )
        got = executor.run(program, feed={feeds[0]: X}, fetch_list=fetches)
    np.testing.assert_allclose(got[0], expected, rtol=1e-6)


def test_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match="needs the shapes and types of the inputs"):
        jit.save(Net(), str(tmp_path / "model"))
    with pytest.raises(ValueError, match="beginning of the files' names"):
        jit.save(Net(), f"{tmp_path}/", input_spec=[InputSpec([1, 3])])
    with pytest.raises(TypeError, match="input_spec holds InputSpecs, tensors or arrays, got"):
        jit.save(Net(), str(tmp_path / "model"), input_spec=[{1}])
    refuses(lambda: jit.load(str(tmp_path / "missing")), FileNotFoundError)
    refuses(lambda: jit.to_static(3), TypeError, "takes a function, got 3")


def test_not_to_static_leaves_functions_alone():
    def function(x):
        return x

    assert jit.not_to_static(function) is function
    assert jit.not_to_static()(function) is function


def test_input_specs():
    spec = InputSpec([None, 3], "int64", "ids")
    assert repr(spec) == f"InputSpec(shape=(-1, 3), dtype={spec.dtype}, name=ids)"
    assert spec == InputSpec([-1, 3], "int64", "ids") != InputSpec([-1, 3], "int64")
    assert spec.unbatch().shape == (3,)
    assert spec.batch(7).shape == (7, 3)
    assert InputSpec.from_tensor(Tensor(X, "x")) == InputSpec.from_numpy(X, "x")
    refuses(lambda: InputSpec([]).unbatch(), ValueError, "no batch to take away")


def test_loaded_layers_with_batch_norm_are_trained_with_their_statistics(tmp_path):
    net = paddle.nn.Sequential(paddle.nn.Linear(3, 4), paddle.nn.BatchNorm1D(4))
    net(Tensor(X))
    net.eval()
    jit.save(net, str(tmp_path / "norm"), input_spec=[InputSpec([None, 3])])
    loaded = jit.load(str(tmp_path / "norm"))
    loaded.train()
    before = {name: value.numpy() for name, value in loaded.state_dict().items()}
    np.testing.assert_allclose(loaded(Tensor(X)).numpy(), net(Tensor(X)).numpy(), rtol=1e-5, atol=1e-6)
    (loaded(Tensor(X)) ** 2).sum().backward()
    (net(Tensor(X)) ** 2).sum().backward()
    scales = [param for param in loaded.parameters() if param.name == net[1].weight.name]
    np.testing.assert_allclose(scales[0].grad.numpy(), net[1].weight.grad.numpy(), rtol=1e-4)
    for name, value in loaded.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])
