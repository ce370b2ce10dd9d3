"""`Layer`: calling, hooks, modes, names, making and registering parameters."""

import copy

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.dygraph import BatchNorm, Layer, LayerList, Linear, ParameterList, Sequential, to_variable
from fluidlite.eager import Tensor

from ...refusals import refuses

pytestmark = pytest.mark.usefixtures("eager")


def ones(*shape):
    return to_variable(np.ones(shape, "float32"))


class Sub(Layer):
    def __init__(self):
        super().__init__("sc")
        self.w = self.create_parameter([2, 3])
        self.b = self.create_parameter([3], is_bias=True)
        self.fc = Linear(3, 4)

    def forward(self, x):
        return self.fc(x)


class Net(Layer):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
        self.lst = LayerList([Linear(2, 2), BatchNorm(3)])
        self.seq = Sequential(("a", Linear(2, 2)))
        self.plist = ParameterList([self.create_parameter([2])])
        self.p = self.create_parameter([1])


class Plain(Layer):
    pass


def test_names_of_layers():
    """The names are those of real Paddle 1.8.5."""
    net = Net()
    assert [net.full_name(), *(layer.full_name() for layer in net.sublayers())] == [
        "net_0", "sc_0", "linear_0", "layer_list_0", "linear_1", "batch_norm_0", "sequential_0", "linear_2",
        "parameter_list_0",
    ]  # fmt: skip
    assert [Plain("a").full_name(), Plain("a").full_name(), Plain().full_name()] == ["a_0", "a_1", "plain_0"]


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("GRUUnit", "gru_unit_0"), ("Conv2DTranspose", "conv2d_transpose_0"), ("MyNet2", "my_net2_0"),
        ("ResNet50", "res_net50_0"), ("VGG16Net", "vgg16_net_0"), ("_Priv", "__priv_0"), ("Foo_Bar", "foo__bar_0"),
        ("LSTMCell2Go", "lstm_cell2_go_0"), ("ABCd1EFg", "ab_cd1e_fg_0"), ("MNIST", "mnist_0"), ("aB", "a_b_0"),
    ],
)  # fmt: skip
def test_names_made_from_classes(name, full):
    """The names are those of real Paddle 1.8.5."""
    assert type(name, (Layer,), {})().full_name() == full


def test_walking_over_members():
    """Order and names of real Paddle 1.8.5."""
    net = Net()
    inside = ["sub.w", "sub.b", "sub.fc.weight", "sub.fc.bias", "lst.0.weight", "lst.0.bias", "lst.1.weight",
              "lst.1.bias", "lst.1._mean", "lst.1._variance", "seq.a.weight", "seq.a.bias", "plist.0"]  # fmt: skip
    assert [name for name, _ in net.named_parameters()] == list(net.state_dict()) == ["p", *inside]
    assert [p.name for p in net.parameters(include_sublayers=False)] == ["net_0.w_1"]
    assert [name for name, _ in net.named_parameters(prefix="x", include_sublayers=False)] == ["x.p"]
    layers = ["sub", "sub.fc", "lst", "lst.0", "lst.1", "seq", "seq.a", "plist"]
    assert [name for name, _ in net.named_sublayers()] == layers
    named = net.named_sublayers(prefix="x", include_self=True)
    assert [name for name, _ in named] == ["x", *(f"x.{name}" for name in layers)]
    assert net.sublayers(include_sublayers=False) == []
    assert [name for name, _ in net.named_children()] == ["sub", "lst", "seq", "plist"]
    assert list(net.children()) == [net.sub, net.lst, net.seq, net.plist]


def test_what_is_there_twice_comes_once():
    class Twice(Layer):
        def __init__(self):
            super().__init__()
            self.a = self.b = Linear(3, 4)
            self.w = self.a.weight

    net = Twice()
    assert [name for name, _ in net.named_parameters()] == ["w", "a.bias"]
    assert [name for name, _ in net.named_sublayers()] == ["a"]
    assert list(net.state_dict()) == ["w", "a.weight", "a.bias", "b.weight", "b.bias"]


def test_setting_replacing_and_deleting_members():
    net = Net()
    replacement = net.create_parameter([5])
    net.p = replacement
    assert net.p is replacement and net.parameters()[0] is replacement
    net.p = None
    assert net.p is None and "p" not in net.state_dict()
    net.sub = None
    assert net.sub is None and [name for name, _ in net.named_children()] == ["lst", "seq", "plist"]
    del net.lst, net.p
    assert not hasattr(net, "lst") and not hasattr(net, "p")
    net.p = Linear(1, 1)
    assert "p.weight" in net.state_dict()
    net.plain = 3
    net.plain = net.create_parameter([1])
    assert "plain" in net.state_dict() and "plain" not in vars(net) and "plain" in dir(net)
    del net.plain
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'plain'"):
        _ = net.plain
    with pytest.raises(AttributeError):
        del net.plain


def test_wrong_members():
    net = Net()
    with pytest.raises(TypeError, match="parameter 'p' should be of type Parameter or None, but got 'int'"):
        net.p = 3
    with pytest.raises(TypeError, match="sublayer 'sub' should be of type Layer or None"):
        net.sub = ones(1)
    refuses(lambda: net.add_parameter("q", 3), TypeError, "requires Parameter or None, but got 'int'")
    refuses(lambda: net.add_sublayer("q", 3), AssertionError, "takes a Layer, got 'int'")
    refuses(lambda: Plain(3), TypeError, "name_scope")


def test_super_is_called_first():
    class Forgetful(Layer):
        def __init__(self, what):
            self.count = 3
            self.x = what

    with pytest.raises(ValueError, match=r"super\(YourLayer, self\).__init__\(\) should be called first"):
        Forgetful(Linear(2, 2))
    refuses(lambda: Forgetful(Linear(2, 2).weight), ValueError, "should be called first")
    assert Forgetful(7).x == 7


def test_add_parameter_and_sublayer():
    layer = Plain()
    parameter = layer.create_parameter([1])
    assert layer.add_parameter("a.b", parameter) is parameter and layer.add_parameter("none", None) is None
    inner = Plain()
    assert layer.add_sublayer(3, inner) is inner
    assert list(layer.state_dict()) == ["a.b"] and getattr(layer, "3") is inner and layer.none is None


def test_buffers():
    layer = Plain()
    layer.register_buffer("mean", ones(2))
    layer.register_buffer("scratch", ones(3), persistable=False)
    assert (
        isinstance(layer.mean, Tensor) and list(layer.state_dict()) == ["mean"] and layer.parameters() == []
    )
    net = Sequential(layer)
    assert [name for name, _ in net.named_buffers()] == ["0.mean", "0.scratch"]
    assert net.buffers() == [layer.mean, layer.scratch] and net.buffers(include_sublayers=False) == []
    new = ones(2)
    layer.mean = new
    assert layer.mean is new and layer.buffers()[0] is new
    layer.mean = None
    assert layer.mean is None and list(layer.state_dict()) == []
    with pytest.raises(TypeError, match="buffer 'scratch' should be of type Tensor or None"):
        layer.scratch = 3
    refuses(lambda: layer.register_buffer("other", 3), TypeError, "must be a tensor or None")
    refuses(lambda: layer.register_buffer("training", ones(1)), ValueError, "'training' already exists")


def test_create_parameter():
    layer = Plain()
    weight, bias = layer.create_parameter([2, 3]), layer.create_parameter([3], is_bias=True)
    assert (weight.name, bias.name) == ("plain_0.w_0", "plain_0.b_0")
    assert weight.shape == [2, 3] and weight.trainable and weight.persistable and not weight.stop_gradient
    assert weight.optimize_attr == {"learning_rate": 1.0} and bias.numpy().tolist() == [0, 0, 0]
    assert 0 < abs(layer.create_parameter([100, 200]).numpy()).max() <= np.sqrt(6 / 300)
    assert layer.create_parameter([2], attr=False) is None
    assert layer.create_parameter([2], attr=fluid.initializer.Constant(3.0)).numpy().tolist() == [3, 3]
    assert layer.create_parameter([2], dtype="float64").dtype == fluid.core.VarDesc.VarType.FP64
    frozen = layer.create_parameter([2], attr=fluid.ParamAttr(trainable=False, learning_rate=0.5))
    assert not frozen.trainable and frozen.optimize_attr == {"learning_rate": 0.5}


def test_names_of_parameters_are_unique():
    Linear(1, 1, param_attr="shared")
    refuses(lambda: Linear(1, 1, param_attr="shared"), ValueError, r"\[shared\] have be been used")
    with fluid.unique_name.guard():
        assert Linear(1, 1, param_attr="shared").weight.name == "shared"


def test_seeded_parameters():
    """Both draw the same numbers, which are those of real Paddle 1.8.5."""
    fluid.default_main_program().random_seed = 5
    first, second = Linear(2, 2).weight.numpy(), Linear(2, 2).weight.numpy()
    assert first.tolist() == second.tolist()
    np.testing.assert_allclose(first, [[-1.2244697, -0.18331432], [-1.208179, -0.10274041]], rtol=1e-6)


def test_create_variable():
    layer = Plain()
    made = layer.create_variable("vv", persistable=True, dtype="float64")
    assert made.name == "plain_0.vv" and made.persistable and made.stop_gradient
    assert made.dtype == fluid.core.VarDesc.VarType.FP64
    assert layer.create_variable().name == "plain_0._generated_var_0" and layer.parameters() == []


def test_hooks():
    layer, calls = Linear(2, 2), []

    def watch(layer, inputs):
        calls.append(("pre", type(inputs), len(inputs)))

    def double(layer, inputs):
        return inputs[0] * 2.0

    def after(layer, inputs, outputs):
        calls.append(("post", inputs[0].numpy().tolist()))
        return outputs * 0.0

    handles = [layer.register_forward_pre_hook(watch), layer.register_forward_pre_hook(double)]
    handles.append(layer.register_forward_post_hook(after))
    assert layer(ones(1, 2)).numpy().tolist() == [[0, 0]]
    assert calls == [("pre", tuple, 1), ("post", [[2, 2]])]
    handles[1].remove()
    handles[1].remove()
    assert layer(ones(1, 2)).shape == [1, 2] and calls[-1] == ("post", [[1, 1]])
    handles[0].remove()
    handles[2].remove()
    assert layer(input=ones(1, 2)).numpy().any() and len(calls) == 4
    refuses(lambda: layer.register_forward_pre_hook(3), TypeError, "must be callable")


def test_a_hook_may_remove_itself():
    layer, calls = Linear(2, 2), []

    def hook(layer, inputs):
        calls.append(len(inputs))
        handle.remove()

    handle = layer.register_forward_pre_hook(hook)
    for _ in range(2):
        assert layer(ones(1, 2)).shape == [1, 2]
    assert calls == [1]


def test_build_once():
    class Old(Layer):
        def _build_once(self, x):
            self.w = self.create_parameter([x.shape[1]])

        def forward(self, x):
            return x * self.w

    layer = Old("old")
    assert layer(ones(2, 3)).shape == layer(ones(2, 3)).shape == [2, 3]
    assert [p.name for p in layer.parameters()] == ["old_0.w_0"]


def test_forward_is_missing():
    refuses(lambda: Plain()(1), NotImplementedError, r"Plain does not define forward")
    refuses(lambda: Plain().backward(), ValueError, r"call loss.backward\(\)")


def test_train_and_eval_reach_all_layers():
    net = Net()
    net.eval()
    assert not net.training and not any(layer.training for layer in net.sublayers())
    net.sub.train()
    assert net.sub.fc.training and not net.training
    net.train()
    assert net.lst[1].training


def test_clear_gradients():
    net = Sequential(Linear(2, 2), Linear(2, 2))
    fluid.layers.mean(net(ones(1, 2))).backward()
    assert all(p.gradient() is not None for p in net.parameters()) and net[1].bias.gradient().any()
    net.clear_gradients()
    assert not any(p.gradient().any() for p in net.parameters())


def test_apply_visits_the_innermost_first():
    visited = []
    net = Sequential(Sub(), Linear(1, 1))
    assert net.apply(lambda layer: visited.append(layer.full_name())) is net
    assert visited == ["linear_0", "sc_0", "linear_1", "sequential_0"]


def test_to_dtype():
    net = Sequential(Linear(2, 2), BatchNorm(2))
    assert net.to("cpu") is net and net[0].weight.array.dtype == "float32"
    net.to(dtype="float64")
    assert {p.array.dtype.name for p in net.parameters()} == {"float64"}
    assert net(to_variable(np.ones((3, 2)))).numpy().dtype == "float64"


def test_repr():
    assert repr(Sequential(Linear(2, 3), Sequential(Linear(3, 1)))) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3)\n"
        "  (1): Sequential(\n"
        "    (0): Linear(in_features=3, out_features=1)\n"
        "  )\n"
        ")"
    )
    assert repr(Plain()) == "Plain()"


def test_deepcopy_is_independent():
    net = Net()
    twin = copy.deepcopy(net)
    assert list(twin.state_dict()) == list(net.state_dict())
    twin.p.set_value(np.array([7], "float32"))
    assert (
        net.p.numpy() != 7 and twin.sub(ones(1, 3)).numpy().tolist() == net.sub(ones(1, 3)).numpy().tolist()
    )


def test_layers_go_away_without_the_garbage_collector():
    import gc
    import weakref

    gc.collect()
    gc.disable()
    try:
        net = Net()
        gone = weakref.ref(net.sub)
        del net
        assert gone() is None
    finally:
        gc.enable()


def test_layers_refuse_arrays():
    for layer in (Linear(2, 2), BatchNorm(2)):
        with pytest.raises(TypeError, match="works on eager tensors, got ndarray; make one with"):
            layer(np.ones((2, 2), "float32"))


class Shared(Layer):
    """Hands out its parameter and its sublayer under other names."""

    def __init__(self):
        super().__init__()
        self._table = self.create_parameter([2, 2])
        self._inner = Linear(2, 2)
        self._number = 3

    @property
    def weight(self):
        return self._table

    @weight.setter
    def weight(self, value):
        self._table = value

    @property
    def inner(self):
        return self._inner

    @inner.setter
    def inner(self, value):
        self._inner = value

    @property
    def doubled(self):
        return self._number

    @doubled.setter
    def doubled(self, value):
        self._number = 2 * value


def test_properties_of_layers_are_set():
    one, other = Shared(), Shared()
    one.weight, one.inner, one.doubled = other.weight, other.inner, 4
    assert one._table is other._table and one.inner is one._inner is other._inner and one.doubled == 8
    # As in Fluid they are registered besides.
    assert [name for name, _ in one.named_parameters()] == ["_table", "_inner.weight", "_inner.bias"]
    own = ["_inner.bias", "_inner.weight", "_table"]
    assert sorted(one.state_dict()) == [*own, "inner.bias", "inner.weight", "weight"]
    with pytest.raises(AttributeError):
        type("Fixed", (Shared,), {"weight": property(lambda self: self._table)})().weight = other.weight
