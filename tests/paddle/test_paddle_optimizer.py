"""`paddle.optimizer`: the rules of Fluid with the arguments of Paddle 2.0; weights as a later Paddle computes them."""

import numpy as np
import pytest

from fluidlite import layers, regularizer
from fluidlite.base import unique_name
from fluidlite.base.errors import NotSupportedError
from fluidlite.data import data
from fluidlite.eager import Parameter, Tensor, apply
from fluidlite.executor import Executor, Scope
from fluidlite.framework import Program, mode, program_guard
from fluidlite.paddle import optimizer
from fluidlite.paddle.optimizer import lr
from fluidlite.paddle.optimizer import optimizer as rules
from tests.refusals import refuses

_rng = np.random.RandomState(0)
X = [_rng.uniform(-1, 1, (4, 3)).astype("float32") for _ in range(4)]
W = _rng.uniform(-1, 1, (3, 2)).astype("float32")
B = _rng.uniform(-1, 1, (2,)).astype("float32")

OPTIMIZERS = {
    "sgd with decay": lambda p: optimizer.SGD(0.1, parameters=p, weight_decay=0.1),
    "nesterov": lambda p: optimizer.Momentum(
        0.1, 0.9, parameters=p, use_nesterov=True, weight_decay=regularizer.L2Decay(0.05)
    ),
    "adam": lambda p: optimizer.Adam(0.1, parameters=p),
    "adamw": lambda p: optimizer.AdamW(0.1, parameters=p, weight_decay=0.1),
    "adamw of some": lambda p: optimizer.AdamW(
        0.1, parameters=p, weight_decay=0.1, apply_decay_param_fun=lambda name: "w" in name
    ),
    "adamax": lambda p: optimizer.Adamax(0.1, parameters=p),
    "rmsprop": lambda p: optimizer.RMSProp(0.1, parameters=p),
    "adagrad": lambda p: optimizer.Adagrad(0.1, parameters=p, initial_accumulator_value=0.1),
    "clip by global norm": lambda p: optimizer.SGD(
        1.0, parameters=p, grad_clip=rules.ClipGradByGlobalNorm(0.1)
    ),
    "clip by norm": lambda p: optimizer.SGD(1.0, parameters=p, grad_clip=rules.ClipGradByNorm(0.1)),
    "clip by value": lambda p: optimizer.SGD(1.0, parameters=p, grad_clip=rules.ClipGradByValue(0.01)),
    "groups": lambda p: optimizer.Adam(
        0.1, parameters=[{"params": p[:1]}, {"params": p[1:], "learning_rate": 0.1, "weight_decay": 0.1}]
    ),
}
# Weight and bias of a linear layer after four steps on the mean of its squared outputs.
RECORDED = {
    "sgd with decay": [-0.320242, -0.213686, 0.125133, -0.087427, 0.850831, -0.624584, -0.395996,
        -0.380295],
    "nesterov": [-0.268506, -0.156686, 0.159663, 0.050942, 0.679122, -0.313449, -0.150956, 0.094082],
    "adam": [-0.070237, -0.154018, 0.168671, 0.110021, 0.615369, -0.436453, -0.19757, -0.297102],
    "adamw": [-0.061079, -0.14298, 0.165099, 0.110874, 0.582612, -0.411126, -0.180015, -0.277147],
    "adamw of some": [-0.061583, -0.142741, 0.164271, 0.110321, 0.58215, -0.411434, -0.197306, -0.297036],
    "adamax": [-0.1393, -0.210938, 0.123496, 0.067148, 0.698868, -0.497412, -0.277202, -0.347217],
    "rmsprop": [-0.043381, 0.090589, 0.25134, 0.118636, -0.059662, -0.016404, -0.035176, 0.003859],
    "adagrad": [-0.275712, -0.156732, 0.135374, -0.071281, 0.801954, -0.604112, -0.344206, -0.452885],
    "clip by global norm": [-0.336469, -0.223356, 0.126645, -0.102705, 0.892134, -0.671959, -0.410418,
        -0.421956],
    "clip by norm": [-0.308925, -0.170029, 0.111822, -0.104816, 0.808804, -0.588772, -0.376209, -0.368936],
    "clip by value": [-0.329143, -0.252578, 0.137696, -0.122797, 0.936748, -0.75591, -0.542247, -0.637381],
    "groups": [-0.07862, -0.152444, 0.15648, 0.101553, 0.608763, -0.440869, -0.54369, -0.638205],
}  # fmt: skip


@pytest.fixture(autouse=True)
def names():
    with unique_name.guard():
        yield


def _parameters():
    return [Parameter(W.copy(), "w"), Parameter(B.copy(), "b")]


def _loss(params, x=X[0]):
    out = apply("matmul", {"X": Tensor(x), "Y": params[0]}) + params[1]
    return layers.reduce_mean(out * out)


def _train(make, after_step=lambda made: None):
    params = _parameters()
    made = make(params)
    for x in X:
        _loss(params, x).backward()
        assert made.step() is None
        made.clear_grad()
        after_step(made)
    return np.concatenate([p.numpy().ravel() for p in params]), made


@pytest.mark.parametrize("name", RECORDED)
def test_four_steps_as_recorded(name):
    make, expected = OPTIMIZERS[name], RECORDED[name]
    weights, made = _train(make)
    assert isinstance(made, optimizer.Optimizer)
    np.testing.assert_allclose(weights, expected, rtol=1e-5, atol=2e-6)


def test_a_scheduler_gives_the_rate():
    scheduler = lr.ExponentialDecay(0.1, 0.5)
    rates = []

    def after_step(made):
        rates.append(made.get_lr())
        scheduler.step()

    weights, made = _train(lambda p: optimizer.Adam(scheduler, parameters=p), after_step)
    expected = [-0.206789, -0.31282, 0.090178, 0.028492, 0.801073, -0.615783, -0.398484, -0.493232]
    np.testing.assert_allclose(weights, expected, rtol=1e-4, atol=2e-6)
    assert rates == [0.1, 0.05, 0.025, 0.0125]
    state = made.state_dict()
    assert state["LR_Scheduler"] == {"last_epoch": 4, "last_lr": 0.00625}
    assert "global_step" not in state
    twin = optimizer.Adam(lr.ExponentialDecay(0.1, 0.5), parameters=_parameters())
    twin.set_state_dict(state)
    assert twin.get_lr() == 0.00625


def test_set_lr():
    params = _parameters()
    made = optimizer.SGD(0.5, parameters=params)
    _loss(params).backward()
    grad = params[1].gradient()
    made.step()
    made.set_lr(2)
    assert made.get_lr() == 2.0
    made.step()
    np.testing.assert_allclose(params[1].array, B - 2.5 * grad, rtol=1e-5)
    refuses(lambda: made.set_lr("x"), TypeError, "set_lr must be float")
    made.set_lr_scheduler(lr.StepDecay(0.5, 3))
    assert made.get_lr() == 0.5
    refuses(lambda: made.set_lr(0.1), RuntimeError, "can't be LRScheduler")
    refuses(lambda: made.set_lr_scheduler(0.1), TypeError, "must be LRScheduler")


def test_minimize_some_and_clear():
    params = _parameters()
    made = optimizer.SGD(0.5, parameters=params)
    loss = _loss(params)
    loss.backward()
    ops, pairs = made.minimize(loss, parameters=params[:1])
    assert (ops, [p.name for p, _ in pairs]) == ([], ["w"])
    np.testing.assert_array_equal(params[1].array, B)
    made.clear_grad()
    np.testing.assert_array_equal(params[1].gradient(), [0, 0])
    made.clear_gradients(set_to_zero=False)
    assert params[1].gradient() is None
    assert made.minimize(loss) == ([], [])


def test_parameters_that_need_no_clip():
    params = [Parameter(W.copy(), "w", need_clip=False), Parameter(B.copy(), "b")]
    made = optimizer.SGD(1.0, parameters=params, grad_clip=rules.ClipGradByNorm(0.25))
    _loss(params).backward()
    grads = [p.gradient() for p in params]
    made.step()
    np.testing.assert_allclose(params[0].array, W - grads[0], rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(params[1].array - B), 0.25, rtol=1e-5)


def test_adamw_per_parameter():
    def shares(param):
        return 0.5 if param.name == "b" else 1.0

    halved, _ = _train(lambda p: optimizer.AdamW(0.1, parameters=p, weight_decay=0.1, lr_ratio=shares))
    groups = [{"weight_decay": 0.1}, {"weight_decay": 0.1, "learning_rate": 0.5}]
    grouped, _ = _train(
        lambda p: optimizer.AdamW(
            0.1, parameters=[{"params": [q], **g} for q, g in zip(p, groups, strict=True)], weight_decay=0.9
        )
    )
    np.testing.assert_allclose(halved, grouped, rtol=1e-6)


def test_works_on_programs_in_static_mode():
    main, startup, scope = Program(), Program(), Scope()
    with mode.guard(False), program_guard(main, startup):
        x = data("x", [None, 3])
        out = layers.fc(x, 2)
        made = optimizer.AdamW(0.1, weight_decay=0.1)
        ops, pairs = made.minimize(layers.reduce_mean(out * out))
    assert len(pairs) == 2
    assert [op.type for op in ops].count("adam") == 2
    exe = Executor()
    exe.run(startup, scope=scope)
    names = [p.name for p in main.all_parameters()]
    for name, start in zip(names, (W, B), strict=True):
        scope.find_var(name).get_tensor().set(start)
    for value in X:
        exe.run(main, {"x": value}, scope=scope)
    weights = np.concatenate([np.array(scope.find_var(name).get_tensor()).ravel() for name in names])
    np.testing.assert_allclose(weights, RECORDED["adamw"], rtol=1e-5, atol=2e-6)
    assert made.get_lr() == 0.1
    with (
        mode.guard(False),
        pytest.raises(TypeError, match="got the scheduler StepDecay: use the function of fluid"),
    ):
        optimizer.SGD(lr.StepDecay(0.1, 3))
    for call in (made.step, made.clear_grad, made.state_dict):
        with pytest.raises(AssertionError, match="works in dygraph mode only"):
            call()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda p: optimizer.Adam(0.1), AttributeError,
         "parameters argument given to the Optimizer should not be None"),
        (lambda p: optimizer.Adam(0.1, parameters=p[0]), TypeError, "'parameters' should be a list"),
        (lambda p: optimizer.SGD(1, parameters=p), TypeError, "float or LRScheduler, got <class 'int'>"),
        (lambda p: optimizer.SGD("x", parameters=p), TypeError, "float or LRScheduler"),
        (lambda p: optimizer.SGD(0.1, parameters=p, weight_decay="x"), TypeError,
         "weight_decay should be a float"),
        (lambda p: optimizer.AdamW(0.1, parameters=p, weight_decay=None), TypeError,
         "weight_decay of AdamW"),
        (lambda p: optimizer.AdamW(0.1, parameters=p, lr_ratio=3), TypeError,
         "lr_ratio of AdamW should be a function"),
        (lambda p: optimizer.SGD(0.1, parameters=p, grad_clip=3), TypeError, "GradientClipBase"),
        (lambda p: optimizer.Adam(0.1, beta1=1.5, parameters=p), ValueError,
         r"expect beta1 in \[0,1\), got 1.5"),
        (lambda p: optimizer.Adam(0.1, epsilon=-1.0, parameters=p), ValueError, "expect epsilon >= 0"),
        (lambda p: optimizer.RMSProp(0.1, rho=None, parameters=p), ValueError, "rho is not set"),
        (lambda p: optimizer.Momentum(0.1, None, parameters=p), ValueError, "momentum is not set"),
        (lambda p: optimizer.SGD(0.1, parameters=[{"params": p}, p[0]]), TypeError,
         r"a dict with 'params', got \w+ .Param"),
        (lambda p: optimizer.SGD(0.1, parameters=[{"parameters": p}]), TypeError, "a dict with 'params'"),
        (lambda p: optimizer.Adam(0.1, parameters=[{"params": p, "beta1": 0.5}]), NotSupportedError,
         "the keys learning_rate, params, weight_decay, got beta1"),
    ],
)  # fmt: skip
def test_bad_arguments(make, error, message):
    refuses(lambda: make(_parameters()), error, message)
