"""Traced functions and layers on a GPU: the numbers of eager code, forwards and backwards."""

import numpy as np

import fluidlite as fluid
from fluidlite import dygraph, layers
from fluidlite.backend import on_device
from fluidlite.base.selected_rows import SelectedRows
from fluidlite.dygraph import declarative, to_variable

GPU, CPU = fluid.CUDAPlace(0), fluid.CPUPlace()


def tensor(values, dtype="float32", grad=False):
    made = to_variable(np.array(values, dtype))
    made.stop_gradient = not grad
    return made


class Net(dygraph.Layer):
    """Moving averages, a constant of the host, and a loss computed from parameters alone."""

    def __init__(self):
        super().__init__()
        self.first = dygraph.Linear(3, 4, act="relu")
        self.norm = dygraph.BatchNorm(4)
        self.last = dygraph.Linear(4, 2)

    def forward(self, x):
        out = self.last(self.norm(self.first(x) + np.ones((1, 4), "float32")))
        return out, layers.mean(layers.square(out)) + 0.1 * layers.reduce_sum(self.first.weight**2)


def trained(place, as_program):
    with dygraph.guard(place):
        fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 5
        net = Net()
        forward = declarative(net.forward) if as_program else net.forward
        update = fluid.optimizer.Momentum(0.1, 0.9, parameter_list=net.parameters())
        losses = []
        for k in range(4):
            x = tensor(np.random.default_rng(k).random((5, 3), "float32"), grad=True)
            out, loss = forward(x)
            assert out.place == loss.place == place
            loss.backward()
            losses += [float(loss), float(np.abs(x.gradient()).sum())]
            assert x.grad.place == place
            update.minimize(loss)
            net.clear_gradients()
        return losses, [t.numpy() for t in net.state_dict().values()]


def test_training_is_that_of_eager_code_on_the_cpu(cuda, engine):
    expected = trained(CPU, False)
    for place in (GPU, CPU):
        found = trained(place, True)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-4)
        for here, there in zip(found[1], expected[1], strict=True):
            np.testing.assert_allclose(here, there, rtol=1e-3, atol=1e-5)


def test_one_trace_serves_both_places(cuda, engine):
    calls = []

    @declarative
    def square(x):
        calls.append(1)
        return x * x

    with dygraph.guard(GPU):
        there = tensor([2.0, 3.0], grad=True)
        for x, place in ((there, GPU), (there.cpu().detach(), CPU), (there, GPU)):
            out = square(x)
            assert out.place == place and out.tolist() == [4, 9]
        layers.reduce_sum(square(there)).backward()
        assert there.gradient().tolist() == [4, 6]
    assert calls == [1]


def test_what_is_captured_may_be_on_the_host(cuda, engine):
    with dygraph.guard(CPU):
        net = dygraph.BatchNorm(2, momentum=0.5)
    call = declarative(net.forward)
    with dygraph.guard(GPU):
        x = tensor([[1.0, 2.0], [3.0, 6.0]], grad=True)
        out = call(x)
        layers.reduce_sum(out * tensor([[1.0, 2.0], [0.0, 1.0]])).backward()
    assert out.place == GPU and x.grad.place == GPU
    assert net._mean.place == CPU and net._mean.tolist() == [1, 2]
    assert net.weight.grad.place == CPU and net.bias.gradient().tolist() == [1, 3]


def test_gradients_of_calls_that_overlap_and_of_retained_ones(cuda, engine):
    with dygraph.guard(GPU):
        call = declarative(lambda x: layers.tanh(x) * x)
        tensors = [tensor([0.5 * k, 1.0], grad=True) for k in range(3)]
        outs = [call(x) for x in tensors]
        for x, out in reversed(list(zip(tensors, outs, strict=True))):
            total = layers.reduce_sum(out)
            total.backward(retain_graph=True)
            first = x.gradient()
            total.backward()
            np.testing.assert_array_equal(x.gradient(), first)
            v = x.numpy()
            np.testing.assert_allclose(first, np.tanh(v) + v * (1 - np.tanh(v) ** 2), rtol=1e-5)


def test_sparse_gradients_stay_sparse(cuda, engine):
    with dygraph.guard(GPU):
        table = dygraph.Embedding([6, 2], is_sparse=True)
        call = declarative(lambda ids: layers.reduce_sum(table(ids) * 2.0))
        call(tensor([[1], [3], [1]], "int64")).backward()
        found = table.weight.grad_array
        assert isinstance(found, SelectedRows) and on_device(found.values)
        assert table.weight.grad.numpy()[:, 0].tolist() == [0, 4, 0, 2, 0, 0]


def test_traced_layers(cuda, tmp_path):
    with dygraph.guard(GPU):
        net = dygraph.Linear(3, 2, act="tanh")
        x = tensor(np.arange(6).reshape(2, 3) / 6)
        expected, traced = dygraph.TracedLayer.trace(net, [x])
        for given in (x, x.numpy()):
            np.testing.assert_allclose(traced([given])[0], expected.numpy(), rtol=1e-5, atol=1e-7)
        net.weight.set_value(np.zeros((3, 2), "float32"))
        np.testing.assert_allclose(traced([x])[0], np.tanh(net.bias.numpy())[None].repeat(2, 0), rtol=1e-5)
        traced.save_inference_model(str(tmp_path))
        weight = net.weight.numpy()
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        for place in (CPU, GPU):
            exe = fluid.Executor(place)
            program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path), exe)
            out = exe.run(program, feed={feeds[0]: np.ones((2, 3), "float32")}, fetch_list=fetches)[0]
            np.testing.assert_allclose(out, np.tanh(np.ones((2, 3)) @ weight), atol=1e-6)
