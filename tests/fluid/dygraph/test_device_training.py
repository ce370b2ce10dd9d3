"""Training in dygraph mode on a GPU: numbers of the CPU, optimizers whose state follows, checkpoints across places."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph, layers
from fluidlite.backend import on_device
from fluidlite.dygraph import to_variable

from ...simulated_cuda import simulated

GPU, CPU = fluid.CUDAPlace(0), fluid.CPUPlace()


def seed(number=3):
    fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = number


class Net(dygraph.Layer):
    def __init__(self):
        super().__init__()
        self.conv = dygraph.Conv2D(1, 3, 3, padding=1, act="relu")
        self.norm = dygraph.BatchNorm(3, act="relu")
        self.pool = dygraph.Pool2D(2, "max", 2)
        self.out = dygraph.Linear(48, 4)

    def forward(self, x):
        hidden = self.pool(self.norm(self.conv(x)))
        return self.out(layers.reshape(hidden, [-1, 48]))


def batches(count=4):
    rng = np.random.default_rng(0)
    return [(rng.random((5, 1, 8, 8), "float32"), rng.integers(0, 4, (5, 1))) for _ in range(count)]


def step(net, update, x, y):
    loss = layers.mean(layers.softmax_with_cross_entropy(net(to_variable(x)), to_variable(y)))
    loss.backward()
    update.minimize(loss)
    net.clear_gradients()
    return loss


OPTIMIZERS = {
    "sgd": lambda p: fluid.optimizer.SGD(0.1, parameter_list=p),
    "momentum": lambda p: fluid.optimizer.Momentum(
        0.05, 0.9, parameter_list=p, regularization=fluid.regularizer.L2Decay(0.01)
    ),
    "adam": lambda p: fluid.optimizer.Adam(fluid.dygraph.ExponentialDecay(0.05, 2, 0.5), parameter_list=p),
    "adam clipped": lambda p: fluid.optimizer.Adam(
        0.05, parameter_list=p, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.5)
    ),
    "lamb": lambda p: fluid.optimizer.Lamb(0.02, parameter_list=p),
    "rmsprop": lambda p: fluid.optimizer.RMSProp(0.01, parameter_list=p),
}


def trained(place, optimizer):
    with dygraph.guard(place):
        seed()
        net = Net()
        update = OPTIMIZERS[optimizer](net.parameters())
        losses = [step(net, update, x, y) for x, y in batches()]
        assert {loss.place for loss in losses} == {place}
        assert {tensor.place for tensor in net.state_dict().values()} == {place}
        return [float(loss) for loss in losses], {k: v.numpy() for k, v in net.state_dict().items()}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_gives_the_numbers_of_the_cpu(cuda, optimizer):
    (losses, state), (expected, wanted) = trained(GPU, optimizer), trained(CPU, optimizer)
    np.testing.assert_allclose(losses, expected, rtol=2e-4)
    for name, array in wanted.items():
        np.testing.assert_allclose(state[name], array, rtol=2e-3, atol=2e-4, err_msg=name)


def test_parameters_and_statistics_keep_their_memory(cuda):
    with dygraph.guard(GPU):
        net = Net()
        update = fluid.optimizer.Adam(0.1, parameter_list=net.parameters())
        before = {name: (t.array.data.ptr, t.numpy()) for name, t in net.state_dict().items()}
        for x, y in batches(2):
            step(net, update, x, y)
        for name, tensor in net.state_dict().items():
            assert tensor.array.data.ptr == before[name][0]
            assert not np.array_equal(tensor.numpy(), before[name][1])


@pytest.mark.parametrize("lazy", [False, True])
def test_sparse_updates(cuda, lazy):
    found = {}
    for place in (CPU, GPU):
        with dygraph.guard(place):
            seed()
            table = dygraph.Embedding([8, 3], is_sparse=True)
            update = fluid.optimizer.Adam(0.1, parameter_list=table.parameters(), lazy_mode=lazy)
            for ids in ([[1], [3], [1]], [[7], [3], [0]]):
                layers.reduce_sum(layers.square(table(to_variable(np.array(ids))))).backward()
                update.step() if hasattr(update, "step") else update.minimize(layers.zeros([1], "float32"))
                table.clear_gradients()
            assert table.weight.place == place
            found[place] = table.weight.numpy()
    np.testing.assert_allclose(found[GPU], found[CPU], rtol=1e-5, atol=1e-6)


def going_on(first, second, folder):
    """Losses of training that moves from place `first` to place `second` through files."""
    data = batches(4)
    with dygraph.guard(first):
        seed()
        net = Net()
        update = fluid.optimizer.Adam(0.05, parameter_list=net.parameters())
        losses = [float(step(net, update, *batch)) for batch in data[:2]]
        fluid.save_dygraph(net.state_dict(), str(folder / "run"))
        fluid.save_dygraph(update.state_dict(), str(folder / "run"))
    with dygraph.guard(second):
        net = Net()
        parameters, state = fluid.load_dygraph(str(folder / "run"))
        net.set_dict(parameters)
        update = fluid.optimizer.Adam(0.05, parameter_list=net.parameters())
        update.set_dict(state)
        losses += [float(step(net, update, *batch)) for batch in data[2:]]
        assert {t.place for t in (*net.state_dict().values(), *update.state_dict().values())} == {second}
    return losses


def test_checkpoints_go_from_place_to_place(cuda, tmp_path):
    expected = going_on(CPU, CPU, tmp_path)
    for first, second in ((GPU, GPU), (GPU, CPU), (CPU, GPU)):
        np.testing.assert_allclose(going_on(first, second, tmp_path), expected, rtol=2e-4)


def test_layers_move_with_what_their_optimizer_keeps(cuda):
    expected = trained(CPU, "adam")[0]
    with dygraph.guard(CPU):
        seed()
        net = Net()
        update = OPTIMIZERS["adam"](net.parameters())
        losses = []
        for k, (x, y) in enumerate(batches()):
            place = (CPU, GPU, GPU, CPU)[k]
            assert net.to(place) is net and {t.place for t in net.state_dict().values()} == {place}
            with dygraph.guard(place):
                losses.append(float(step(net, update, x, y)))
            assert {on_device(t.array) for t in update.state_dict().values() if hasattr(t, "array")} <= {
                place == GPU,
                False,
            }
        with pytest.raises(ValueError, match="the device must be"):
            net.to("tpu")
    np.testing.assert_allclose(losses, expected, rtol=2e-4)


def test_gradients_move_with_their_layer(cuda):
    with dygraph.guard(CPU):
        layer = dygraph.Linear(2, 1)
        layers.reduce_sum(layer(to_variable(np.ones((1, 2), "float32")))).backward()
        layer.to("gpu:0", dtype="float64")
        assert layer.weight.grad.place == GPU and layer.weight.gradient().tolist() == [[1], [1]]
        assert layer.weight.numpy().dtype == np.float64


def test_parameters_of_one_optimizer_are_at_one_place(cuda):
    with dygraph.guard(GPU):
        here, there = dygraph.Linear(2, 2), dygraph.Linear(2, 2)
        here.to("cpu")
        update = fluid.optimizer.SGD(0.1, parameter_list=[*there.parameters(), *here.parameters()])
        loss = layers.reduce_sum(here(there(to_variable(np.ones((1, 2), "float32")))))
        loss.backward()
        with pytest.raises(
            ValueError, match=r"must be at one place: 'linear_1.w_0' is on CUDAPlace\(0\), 'linear_0.w_0' on"
        ):
            update.minimize(loss)


def test_numbers_given_as_tensors_of_the_host(cuda):
    found = {}
    for place in (CPU, GPU):
        with dygraph.guard(place):
            seed()
            net = dygraph.Linear(2, 2)
            with dygraph.guard(CPU):
                beta = layers.create_global_var([1], 0.9, "float32", persistable=True, name="beta")
            update = fluid.optimizer.Adam(0.1, beta1=beta, parameter_list=net.parameters())
            for value in (0.5, 0.25):
                beta.set_value(np.array([value], "float32"))
                layers.reduce_sum(net(to_variable(np.ones((1, 2), "float32")))).backward()
                update.minimize(layers.zeros([1], "float32"))
                net.clear_gradients()
            found[place] = net.weight.numpy()
            assert beta.place == CPU
    np.testing.assert_allclose(found[GPU], found[CPU], rtol=1e-6)


@pytest.mark.cuda
def test_memory_is_bounded_over_many_steps():
    with simulated() as simulation, dygraph.guard(GPU):
        net = Net()
        update = fluid.optimizer.Momentum(0.01, 0.9, parameter_list=net.parameters())
        pool = simulation.cupy.get_default_memory_pool()
        used = []
        for x, y in batches(2) * 4:
            step(net, update, x, y)
            used.append(pool.used_bytes())
        assert used[-1] <= used[3]
