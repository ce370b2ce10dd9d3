"""The namespace of Paddle 2.0: names through the import hook, modes, devices, types, methods of tensors."""

import numpy as np
import pytest

import fluidlite
import fluidlite.paddle as paddle
from fluidlite.base.errors import NotSupportedError
from fluidlite.framework import mode
from fluidlite.paddle import nn
from tests.refusals import refuses

HOOKED = ("-W", "error", "-c")


def test_imports_through_the_hook(python):
    code = """
import fluidlite.as_paddle
import paddle
import paddle.nn.functional as F
from paddle.nn import Linear, Layer
from paddle.static import InputSpec
from paddle.vision.transforms import ToTensor
import paddle.vision.datasets, paddle.metric, paddle.callbacks, paddle.regularizer
from paddle import Model, ParamAttr, to_tensor
from paddle.optimizer import Adam, lr
import paddle.fluid as fluid
from paddle.nn.initializer import KaimingNormal

assert fluid.dygraph.Layer is Layer is paddle.nn.Layer
assert isinstance(Linear(2, 1)(to_tensor([[1.0, 2.0]])), paddle.Tensor)
assert paddle.nn.functional is F and paddle.static.InputSpec is InputSpec and paddle.Model is Model
print(paddle.__version__, F.relu(to_tensor([-1.0, 2.0])).numpy())
"""
    done = python(*HOOKED, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1.8.5 [0. 2.]\n"


def test_fluid_does_not_load_the_2_0_names(python):
    done = python(*HOOKED, "import sys, fluidlite; print('fluidlite.paddle' in sys.modules)")
    assert done.stdout == "False\n", done.stderr
    done = python(
        *HOOKED, "import sys, fluidlite.paddle; print([m for m in sys.modules if 'paddle.nn' in m])"
    )
    assert done.stdout == "[]\n", done.stderr


def test_names_of_1_8_stay():
    for name in ("fluid", "reader", "batch", "dataset", "version"):
        assert hasattr(paddle, name)
    assert paddle.fluid is fluidlite


def test_missing_names_say_so(python):
    code = """
import fluidlite.as_paddle, importlib

for name in ("paddle", "paddle.nn", "paddle.nn.functional", "paddle.metric", "paddle.static", "paddle.vision"):
    module = importlib.import_module(name)
    for attempt in (f"from {name} import nothing_like_it", "module.nothing_like_it"):
        try:
            exec(attempt)
        except (ImportError, AttributeError) as error:
            assert str(error) == f"module {name!r} has no attribute 'nothing_like_it'", error
        else:
            raise AssertionError(attempt)
"""
    done = python(*HOOKED, code)
    assert done.returncode == 0, done.stderr


def test_suggestions():
    with pytest.raises(AttributeError, match="did you mean 'Linear'"):
        nn.Linar  # noqa: B018
    with pytest.raises(NotSupportedError, match="coalesce_tensor of Fluid 1.8 will not be"):
        paddle.fluid.core.ops.coalesce_tensor()


@pytest.mark.parametrize("module", [paddle, nn, nn.functional, paddle.static, paddle.metric, paddle.vision])
def test_all_names_exist(module):
    assert not [name for name in module.__all__ if not hasattr(module, name)]
    assert len(set(module.__all__)) == len(module.__all__)


def test_functions_are_documented():
    for module in (paddle, nn.functional):
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing) and getattr(thing, "__module__", "").startswith("fluidlite.paddle"):
                assert thing.__doc__, name


# Modes


def test_dynamic_by_default():
    assert paddle.in_dynamic_mode() and not fluidlite.in_dygraph_mode()
    assert isinstance(nn.Linear(2, 2).weight, paddle.Tensor)
    assert isinstance(paddle.zeros([2]), paddle.Tensor)


def test_static_mode_and_back():
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        paddle.enable_static()
        try:
            assert not paddle.in_dynamic_mode()
            made = [
                paddle.zeros([2]),
                paddle.arange(3),
                paddle.rand([2]),
                paddle.to_tensor([1.0]),
                nn.Linear(2, 2).weight,
            ]
            assert not any(isinstance(one, paddle.Tensor) for one in made)
            # Functions follow their arguments, whatever the mode.
            with mode.guard(True):
                eager = paddle.ones([2, 2])
            assert isinstance(nn.functional.relu(eager), paddle.Tensor)
            assert isinstance(paddle.concat([eager, eager]), paddle.Tensor)
        finally:
            paddle.disable_static()
    assert paddle.in_dynamic_mode() and not fluidlite.in_dygraph_mode()


def test_dygraph_mode_of_fluid_is_left_alone():
    with fluidlite.dygraph.guard():
        paddle.disable_static()
        assert fluidlite.in_dygraph_mode()


def test_static_program(tmp_path):
    static = paddle.static
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup), static.scope_guard(paddle.fluid.Scope()):
        paddle.enable_static()
        try:
            x, y = static.data("x", [None, 3]), static.data("y", [None, 1])
            hidden = static.nn.fc(x, 8, activation="relu")
            out = static.nn.fc(hidden, 1, num_flatten_dims=-1)
            loss = paddle.mean(nn.functional.square_error_cost(out, y))
            paddle.optimizer.SGD(0.1).minimize(loss)
            executor = static.Executor(paddle.CPUPlace())
            executor.run(startup)
            draw = np.random.RandomState(0).uniform(-1, 1, (32, 3)).astype("float32")
            feed = {"x": draw, "y": draw.sum(1, keepdims=True)}
            losses = [executor.run(main, feed, [loss])[0].item() for _ in range(60)]
            assert losses[-1] < 0.1 * losses[0]
            static.save_inference_model(str(tmp_path / "m"), [x], [out], executor, main)
            expected = executor.run(main.clone(for_test=True), feed, [out])[0]
            assert sorted(path.name for path in tmp_path.iterdir()) == ["m.pdiparams", "m.pdmodel"]
            program, names, fetches = static.load_inference_model(str(tmp_path / "m"), executor)
            assert names == ["x"]
            (got,) = executor.run(program, {"x": draw}, fetches)
        finally:
            paddle.disable_static()
    assert got.shape == expected.shape == (32, 1) and np.isfinite(got).all()
    refuses(lambda: static.load_inference_model(str(tmp_path) + "/", executor), ValueError, "end with a name")


def test_input_spec():
    spec = paddle.static.InputSpec([None, 3], "int64", "x")
    assert spec.shape == (-1, 3) and spec.dtype == paddle.int64
    assert spec == paddle.static.InputSpec([-1, 3], "int64", "x") and spec != paddle.static.InputSpec([3])
    assert spec.batch(5).shape == (5, -1, 3) and spec.unbatch().shape == (-1, 3)
    assert paddle.static.InputSpec.from_numpy(np.zeros((2, 3))).dtype == paddle.float64
    assert paddle.static.InputSpec.from_tensor(paddle.ones([2])).shape == (2,)


# Devices, types, seeds


def test_devices():
    assert paddle.set_device("cpu") == paddle.CPUPlace() and paddle.get_device() == "cpu"
    assert paddle.device.get_device() == "cpu" and not paddle.is_compiled_with_xpu()
    refuses(lambda: paddle.set_device("tpu"), ValueError, "'cpu', 'gpu'")


def test_default_type():
    assert paddle.get_default_dtype() == "float32"
    paddle.set_default_dtype("float64")
    try:
        assert paddle.get_default_dtype() == "float64"
        assert (
            paddle.to_tensor(1.5).dtype == paddle.ones([1]).dtype == paddle.rand([1]).dtype == paddle.float64
        )
        assert nn.Linear(2, 2).weight.dtype == paddle.float64
    finally:
        paddle.set_default_dtype(paddle.float32)
    refuses(lambda: paddle.set_default_dtype("int32"), TypeError, "float16, float32 or float64")


def test_random():
    paddle.seed(5)
    assert abs(paddle.randn([4000]).numpy().std() - 1) < 0.05
    whole = paddle.randint(2, 5, [500]).numpy()
    assert set(whole) == {2, 3, 4} and whole.dtype == np.int64
    assert set(paddle.randint(3, shape=[200]).numpy()) == {0, 1, 2}
    assert sorted(paddle.randperm(9).numpy()) == list(range(9))
    assert abs(paddle.bernoulli(paddle.full([4000], 0.3)).numpy().mean() - 0.3) < 0.03
    normal = paddle.normal(paddle.to_tensor([0.0, 50.0]), 1.0).numpy()
    assert normal[0] < 10 < normal[1]
    assert paddle.normal(2.0, 0.1, [3]).shape == [3]
    drawn = paddle.multinomial(paddle.to_tensor([[0.0, 1.0, 3.0]]), 4000, replacement=True).numpy()
    assert drawn.shape == (1, 4000) and (drawn == 0).sum() == 0 and abs((drawn == 2).mean() - 0.75) < 0.03
    once = paddle.multinomial(paddle.to_tensor([0.1, 0.2, 0.7]), 3).numpy()
    assert sorted(once) == [0, 1, 2]


# Methods


def test_methods_of_tensors():
    x = paddle.to_tensor([[1.0, -2.0], [3.0, 4.0]], stop_gradient=False)
    assert x.sum().item() == 6 and x.max(axis=0).tolist() == [3, 4] and x.argmax().item() == 3
    assert x.T.tolist() == [[1, 3], [-2, 4]] and (x @ x).shape == [2, 2] and x.dim() == x.ndimension() == 2
    assert x.reshape([4]).abs().sqrt().shape == [4] and x.unsqueeze(0).squeeze(0).shape == [2, 2]
    assert ((x > 0) & (x < 3.5)).tolist() == [[True, False], [True, False]]
    assert (~(x > 0) | (x > 3.5)).tolist() == [[False, True], [False, True]]
    assert (x > 0).where(x, x * 0).tolist() == [[1, 0], [3, 4]]
    assert abs(x).tolist() == [[1, 2], [3, 4]] and x.cpu() is x
    (x.mean() * 4).backward()
    assert x.grad.tolist() == [[1, 1], [1, 1]] and isinstance(x.grad, paddle.Tensor)
    x.clear_grad()
    assert not x.gradient().any()


def test_arithmetic_of_integer_tensors_with_floats():
    x = paddle.to_tensor([1, 2, 3])
    assert (x * 0.5).tolist() == [0.5, 1, 1.5] and (0.5 + x).tolist() == [1.5, 2.5, 3.5]
    assert (
        (x / 2).tolist() == [0.5, 1, 1.5]
        and (6 / x).tolist() == [6, 3, 2]
        and (x / x).dtype == paddle.float32
    )
    assert (x > 1.5).tolist() == [False, True, True] and (x**2.0).dtype == paddle.float32
    assert (x * 2).dtype == (x + 1).dtype == (-x).dtype == (x // 2).dtype == (x**2).dtype == paddle.int64
    assert (1.5 - x).tolist() == [0.5, -0.5, -1.5] and (x == 2).tolist() == [False, True, False]
    with fluidlite.dygraph.guard():
        assert (x / 2).tolist() == [0, 1, 1]
        refuses(lambda: x * 0.5, AssertionError, "cast it first")
        assert hash(x) == hash(x)


def test_methods_of_variables():
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        x = paddle.static.data("x", [2, 3])
        out = (x.T @ x).sum(axis=1).clone()
        (got,) = paddle.static.Executor().run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=[out])
    assert got.tolist() == [6, 6, 6]


def test_in_place():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    y = x * 3
    z = y
    assert z.reshape_([2, 1]).add_(paddle.ones([2, 1])).sqrt_() is y
    y.sum().backward()
    np.testing.assert_allclose(x.gradient(), 3 / (2 * np.sqrt([4.0, 7.0])), rtol=1e-6)
    refuses(lambda: x.scale_(2.0), ValueError, "cannot be changed in place")
    plain = paddle.ones([3])
    memory = plain.array
    assert plain.fill_(2).tolist() == [2, 2, 2] and plain.zero_().tolist() == [0, 0, 0]
    assert plain.array is memory


def test_gradients_of_2_0():
    x = paddle.to_tensor([2.0], stop_gradient=False)
    (slope,) = paddle.grad(x * x * x, x, create_graph=True)
    (second,) = paddle.grad(slope, x)
    assert slope.item() == 12 and second.item() == 12
    with paddle.no_grad():
        assert (x * x).stop_gradient

    @paddle.no_grad()
    def still(x):
        return x * 2

    assert still(x).stop_gradient


def test_parameters():
    attr = paddle.ParamAttr(name="mine", initializer=nn.initializer.Constant(2.0), need_clip=False)
    weight = paddle.create_parameter([2], "float32", attr=attr)
    assert isinstance(weight, paddle.Parameter) and weight.name == "mine" and weight.tolist() == [2, 2]
    assert not weight.need_clip and nn.Linear(1, 1, weight_attr=attr).weight.need_clip is False
    decay = paddle.regularizer.L2Decay(0.1)
    assert str(decay) == "L2Decay, regularization_coeff=0.100000"
