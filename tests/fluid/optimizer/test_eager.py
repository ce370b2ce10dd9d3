"""Optimizers on eager parameters: the same numbers as in programs, in place, with the state of Fluid 1.8's dygraph."""

import numpy as np
import pytest

from fluidlite import clip, dygraph, layers, optimizer, regularizer
from fluidlite.base import unique_name
from fluidlite.base.errors import EnforceNotMet, NotSupportedError
from fluidlite.base.selected_rows import SelectedRows
from fluidlite.data import data
from fluidlite.eager import Parameter, Tensor
from fluidlite.executor import Executor, Scope
from fluidlite.framework import Program, program_guard
from fluidlite.initializer import Constant, NumpyArrayInitializer
from fluidlite.param_attr import ParamAttr

W = np.array([[0.5, -1.0, 0.25], [1.5, 0.125, -0.75]], "float32")
B = np.array([0.5, -0.25], "float32")
GRADS = [
    (np.linspace(-1, 1, 6).reshape(2, 3).astype("float32") * k, np.array([0.5, -2.0], "float32") * k)
    for k in (1.0, -0.5, 2.0)
]
LOSS = Tensor(np.ones(1, "float32"), "loss")


@pytest.fixture(autouse=True)
def names():
    with unique_name.guard():
        yield


def _parameters(**options):
    return [Parameter(W.copy(), "w", **options), Parameter(B.copy(), "b", **options)]


def _give(params, grads):
    for param, grad in zip(params, grads, strict=True):
        param.grad_array = None if grad is None else grad.copy()


def _train(make, steps=GRADS, params=None):
    params = _parameters() if params is None else params
    made = make(parameter_list=params)
    for grads in steps:
        _give(params, grads)
        made.minimize(LOSS)
    return [p.numpy() for p in params], made


def _train_program(make, **attr):
    """The same steps by a program: the gradient of sum(w * g) is g."""
    main, startup, scope = Program(), Program(), Scope()
    with program_guard(main, startup), unique_name.guard():
        feeds, loss = {}, None
        for name, start in (("w", W), ("b", B)):
            given = ParamAttr(name=name, initializer=NumpyArrayInitializer(start), **attr)
            param = layers.create_parameter(start.shape, "float32", attr=given)
            feeds[name] = data("g" + name, start.shape)
            part = layers.reduce_sum(param * feeds[name])
            loss = part if loss is None else loss + part
        make().minimize(loss)
    exe = Executor()
    exe.run(startup, scope=scope)
    for gw, gb in GRADS:
        exe.run(main, {"gw": gw, "gb": gb}, scope=scope)
    return [np.array(scope.find_var(name).get_tensor()) for name in ("w", "b")]


RULES = {
    "sgd": lambda **k: optimizer.SGD(0.1, **k),
    "momentum": lambda **k: optimizer.Momentum(0.1, 0.9, use_nesterov=True, **k),
    "lars": lambda **k: optimizer.LarsMomentum(0.1, 0.9, **k),
    "adam": lambda **k: optimizer.Adam(0.1, **k),
    "lamb": lambda **k: optimizer.LambOptimizer(
        0.1, exclude_from_weight_decay_fn=lambda p: p.name == "b", **k
    ),
    "adamax": lambda **k: optimizer.Adamax(0.1, **k),
    "adagrad": lambda **k: optimizer.Adagrad(0.1, initial_accumulator_value=0.5, **k),
    "decayed": lambda **k: optimizer.DecayedAdagrad(0.1, **k),
    "adadelta": lambda **k: optimizer.Adadelta(0.1, **k),
    "rmsprop": lambda **k: optimizer.RMSProp(0.1, momentum=0.5, centered=True, **k),
    "ftrl": lambda **k: optimizer.Ftrl(0.1, l1=0.01, **k),
    "dpsgd": lambda **k: optimizer.Dpsgd(0.1, clip=1.0, batch_size=4.0, sigma=0.0, **k),
    "l2": lambda **k: optimizer.Adam(0.1, regularization=regularizer.L2Decay(0.5), **k),
    "l1": lambda **k: optimizer.SGD(0.1, regularization=regularizer.L1Decay(0.5), **k),
    "by value": lambda **k: optimizer.SGD(0.1, grad_clip=clip.GradientClipByValue(0.3), **k),
    "by norm": lambda **k: optimizer.SGD(0.1, grad_clip=clip.GradientClipByNorm(0.3), **k),
    "by global norm": lambda **k: optimizer.Momentum(
        0.1, 0.9, regularization=regularizer.L2Decay(0.5), grad_clip=clip.GradientClipByGlobalNorm(0.3), **k
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_same_numbers_as_in_a_program(rule):
    eager, _ = _train(RULES[rule])
    assert not np.array_equal(eager[0], W)
    for got, expected in zip(eager, _train_program(RULES[rule]), strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-7)


def test_attributes_of_parameters_count_as_in_a_program():
    attr = {"learning_rate": 0.5, "regularizer": regularizer.L2Decay(0.25)}
    params = _parameters(optimize_attr={"learning_rate": 0.5}, regularizer=attr["regularizer"])
    eager, _ = _train(RULES["momentum"], params=params)
    for got, expected in zip(eager, _train_program(RULES["momentum"], **attr), strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-7)


def test_parameters_keep_their_memory_and_gradients_are_not_touched():
    params = _parameters()
    arrays = [p.array for p in params]
    made = optimizer.Adam(
        0.1,
        parameter_list=params,
        regularization=regularizer.L2Decay(0.5),
        grad_clip=clip.GradientClipByGlobalNorm(0.1),
    )
    _give(params, GRADS[0])
    made.minimize(LOSS)
    assert all(p.array is array for p, array in zip(params, arrays, strict=True))
    np.testing.assert_array_equal(params[0].gradient(), GRADS[0][0])
    params[0].set_value(W)
    before = params[0].numpy()
    made.minimize(LOSS)
    assert not np.array_equal(before, params[0].array)


def test_follows_an_array_that_is_replaced():
    params = _parameters()
    made = optimizer.SGD(0.5, parameter_list=params)
    _give(params, GRADS[0])
    made.minimize(LOSS)
    old = params[1].array
    kept = old.copy()
    params[1].array = np.array([8, 8], "float32")
    made.minimize(LOSS)
    np.testing.assert_array_equal(params[1].array, [7.75, 9])
    np.testing.assert_array_equal(old, kept)


def test_without_gradient_or_not_trainable_nothing_moves():
    params = _parameters()
    made = optimizer.Momentum(0.1, 0.9, parameter_list=params)
    assert made.minimize(LOSS) == ([], [])
    assert made.state_dict() == {}
    _give(params, (GRADS[0][0], None))
    ops, pairs = made.minimize(LOSS)
    assert ops == []
    assert [(p.name, g.name) for p, g in pairs] == [("w", "w@GRAD")]
    np.testing.assert_array_equal(params[1].array, B)
    assert list(made.state_dict()) == ["w_velocity_0"]
    params[0].trainable = False
    moved = params[0].numpy()
    _give(params, GRADS[0])
    made.minimize(LOSS)
    np.testing.assert_array_equal(params[0].array, moved)
    assert not np.array_equal(params[1].array, B)


def test_sets_of_parameters_share_accumulators():
    alone, _ = _train(RULES["adam"], [(g, None) for g, _ in GRADS])
    mixed, made = _train(RULES["adam"], [(GRADS[0][0], None), GRADS[1], (GRADS[2][0], None)])
    np.testing.assert_array_equal(alone[0], mixed[0])
    # The second optimizer of the test numbers the accumulators of w on.
    np.testing.assert_allclose(made.state_dict()["w_beta1_pow_acc_1"].array, 0.9**4, rtol=1e-6)
    np.testing.assert_allclose(made.state_dict()["b_beta1_pow_acc_0"].array, 0.9**2, rtol=1e-6)
    assert len(made.get_opti_var_name_list()) == 8


def test_state_dict_has_fluids_names_in_its_order_and_is_live():
    params = _parameters()
    made = optimizer.Adam(0.1, parameter_list=params, name="own")
    _give(params, GRADS[0])
    made.minimize(LOSS)
    state = made.state_dict()
    assert list(state) == [
        f"{p}_own_{key}_0" for key in ("moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc") for p in "wb"
    ]
    assert all(t.persistable and t.stop_gradient and t.name == name for name, t in state.items())
    before = state["w_own_moment1_0"].numpy()
    np.testing.assert_allclose(before, 0.1 * GRADS[0][0], rtol=1e-6)
    made.minimize(LOSS)
    assert made.state_dict()["w_own_moment1_0"] is state["w_own_moment1_0"]
    assert not np.array_equal(before, state["w_own_moment1_0"].array)


@pytest.mark.parametrize("when", ["before", "after"])
def test_training_goes_on_from_a_state_dict(when):
    expected, _ = _train(RULES["adam"])
    params = _parameters()
    first = optimizer.Adam(0.1, parameter_list=params)
    for grads in GRADS[:2]:
        _give(params, grads)
        first.minimize(LOSS)
    saved = {name: tensor.numpy() for name, tensor in first.state_dict().items()}
    values = [p.numpy() for p in params]
    second = optimizer.Adam(0.1, parameter_list=params)
    if when == "after":
        second.minimize(LOSS)
        for param, value in zip(params, values, strict=True):
            param.set_value(value)
    # The accumulators of the second optimizer of the process are numbered on.
    second.set_dict(saved)
    _give(params, GRADS[2])
    second.minimize(LOSS)
    assert (next(iter(saved)), next(iter(second.state_dict()))) == ("w_moment1_1", "w_moment1_2")
    for param, value in zip(params, expected, strict=True):
        np.testing.assert_array_equal(param.array, value)


def test_state_dicts_that_do_not_fit():
    params = _parameters()
    made = optimizer.Momentum(0.1, 0.9, parameter_list=params)
    _give(params, GRADS[0])
    made.minimize(LOSS)
    state = {name: tensor.numpy() for name, tensor in made.state_dict().items()}
    with pytest.raises(
        AssertionError, match=r"optimizer variable b_velocity_0 not found: .* has w_velocity_0"
    ):
        made.set_dict({"w_velocity_0": state["w_velocity_0"] + 1})
    with pytest.raises(ValueError, match=r"w_velocity_0 has shape \[2, 3\] and dtype float32, .* \[7\]"):
        made.set_dict({**state, "w_velocity_0": np.zeros(7, "float32")})
    np.testing.assert_array_equal(made.state_dict()["w_velocity_0"].array, state["w_velocity_0"])
    with pytest.raises(TypeError, match="set_dict takes what state_dict"):
        made.set_dict(3)
    fresh = optimizer.Adagrad(0.1, parameter_list=params)
    fresh.set_dict(state)
    values = [p.numpy() for p in params]
    with pytest.raises(AssertionError, match="Optimizer set error, [wb]_moment_0 should in state dict"):
        fresh.minimize(LOSS)
    for param, value in zip(params, values, strict=True):
        np.testing.assert_array_equal(param.array, value)


def test_a_schedule_gives_the_rate_of_each_step():
    params = _parameters()
    schedule = dygraph.PiecewiseDecay([1, 2], [0.5, 0.25, 1.0], begin=0)
    made = optimizer.SGD(schedule, parameter_list=params)
    ones = [np.ones_like(W), np.ones_like(B)]
    seen = [made.current_step_lr()]
    assert made._global_learning_rate() is None
    for _ in range(4):
        _give(params, ones)
        made.minimize(LOSS)
        seen.append(made.current_step_lr())
    assert seen == [0.5, 0.5, 0.25, 1.0, 1.0]
    assert type(seen[0]) is float and isinstance(seen[1], np.float32)
    # Scripts print the rate this way.
    assert made._global_learning_rate().numpy() == [1.0]
    np.testing.assert_array_equal(params[1].array, B - 2.75)
    state = made.state_dict()
    assert state["LR_Scheduler"] == {"step_num": 4}
    assert state["global_step"].numpy().tolist() == [4]
    with pytest.raises(KeyError, match="LR_Scheduler"):
        made.set_dict({})
    made.set_dict({"LR_Scheduler": {"step_num": 0}, "global_step": np.array([1])})
    assert schedule.step_num == 1


def test_a_schedule_moves_on_without_gradients_and_a_float_is_given_back():
    params = _parameters()
    schedule = dygraph.NoamDecay(16, 4)
    made = optimizer.SGD(schedule, parameter_list=params)
    made.minimize(LOSS)
    assert schedule.step_num == 2
    assert optimizer.SGD(0.1, parameter_list=params).current_step_lr() == 0.1


def test_a_plateau_has_a_rate_before_the_first_step():
    params = _parameters()
    schedule = dygraph.ReduceLROnPlateau(0.5, patience=0)
    made = optimizer.SGD(schedule, parameter_list=params)
    assert made.current_step_lr() == 0.5
    for loss in (1.0, np.array([2.0])):
        schedule.step(loss)
    _give(params, GRADS[0])
    made.minimize(LOSS)
    np.testing.assert_allclose(params[0].array, W - 0.05 * GRADS[0][0], rtol=1e-6)
    assert made.state_dict()["LR_Scheduler"]["epoch_num"] == 2


def test_gradients_that_the_user_changes():
    params = _parameters()
    made = optimizer.SGD(1.0, parameter_list=params)
    _give(params, GRADS[0])
    pairs = made.backward(LOSS)
    assert made.apply_gradients([(p, g * 2.0) for p, g in pairs]) == []
    np.testing.assert_array_equal(params[0].array, W - 2 * GRADS[0][0])
    made.apply_optimize(LOSS, None, pairs[:1])
    np.testing.assert_allclose(params[0].array, W - 3 * GRADS[0][0], rtol=1e-6)
    np.testing.assert_array_equal(params[1].array, B - 2 * GRADS[0][1])


def test_need_clip_is_asked_about_the_eager_parameter():
    params = _parameters()
    limit = clip.GradientClipByNorm(0.5, need_clip=lambda p: p is params[1])
    eager, _ = _train(lambda **k: optimizer.SGD(1.0, grad_clip=limit, **k), GRADS[:1], params)
    np.testing.assert_array_equal(eager[0], W - GRADS[0][0])
    np.testing.assert_allclose(np.linalg.norm(eager[1] - B), 0.5, rtol=1e-6)


def test_betas_and_rates_may_be_tensors():
    params = _parameters(optimize_attr={"learning_rate": Tensor(np.array([0.5], "float32"), "own_rate")})
    beta = Tensor(np.array([0.5], "float32"), "beta")
    tensors, _ = _train(lambda **k: optimizer.Adam(0.1, beta1=beta, **k), params=params)
    # The rate of a parameter that is a tensor stands for the whole rate, and the power of beta1 begins at 0.9.
    expected, made = _train(lambda **k: optimizer.Adam(0.5, beta1=beta, **k))
    np.testing.assert_allclose(tensors[0], expected[0], rtol=1e-6)
    np.testing.assert_allclose(made.state_dict()["w_beta1_pow_acc_1"].array, 0.9 * 0.5**3, rtol=1e-6)
    beta.set_value(np.array([0.25], "float32"))
    moment = made.state_dict()["b_moment1_1"]
    before = moment.numpy()
    made.minimize(LOSS)
    assert not np.array_equal(before, moment.array)


def test_double_and_single_precision_together():
    params = [Parameter(W.astype("float64"), "w"), Parameter(B.copy(), "b")]
    steps = [(g.astype("float64"), b) for g, b in GRADS]
    eager, _ = _train(RULES["adam"], steps, params)
    assert [a.dtype.name for a in eager] == ["float64", "float32"]
    expected, _ = _train(RULES["adam"])
    np.testing.assert_allclose(eager[0], expected[0], rtol=1e-5)
    np.testing.assert_allclose(eager[1], expected[1], rtol=1e-6)


def test_a_gradient_of_another_shape_changes_nothing():
    params = _parameters()
    made = optimizer.SGD(0.1, parameter_list=params)
    _give(params, GRADS[0])
    made.minimize(LOSS)
    values = [p.numpy() for p in params]
    params[0].grad_array = np.zeros((3, 2), "float32")
    with pytest.raises(EnforceNotMet, match=r"Grad must have the shape of Param, \[2, 3\], got \[3, 2\]"):
        made.minimize(LOSS)
    for param, value in zip(params, values, strict=True):
        np.testing.assert_array_equal(param.array, value)


def test_gradients_that_are_not_contiguous():
    params = _parameters()
    made = optimizer.SGD(1.0, parameter_list=params)
    _give(params, GRADS[0])
    params[0].grad_array = np.asfortranarray(GRADS[0][0])
    made.minimize(LOSS)
    np.testing.assert_array_equal(params[0].array, W - GRADS[0][0])


# An embedding of six rows after three steps with different rows, as recorded with Paddle 1.8.5.
SPARSE = {
    "sgd": (
        lambda **k: optimizer.SGD(0.1, **k),
        [
            *(0, 0.08125, 0.15708333, 0.235625, 0.3, 0.375),
            *(0.46666664, 0.5444444, 0.6666667, 0.75, 0.7916667, 0.87083334),
        ],
    ),
    "adam": (
        lambda **k: optimizer.Adam(0.1, **k),
        [
            *(0, -0.03287338, -0.04895653, 0.02883587, 0.27522075, 0.35855404),
            *(0.32094675, 0.40428007, 0.6666667, 0.75, 0.71712494, 0.8004583),
        ],
    ),
    "lazy adam": (
        lambda **k: optimizer.Adam(0.1, lazy_mode=True, **k),
        [
            *(0, 0.01945339, 0.01462906, 0.09491643, 0.27522075, 0.35855404),
            *(0.42558664, 0.50891995, 0.6666667, 0.75, 0.76945245, 0.8527858),
        ],
    ),
}


@pytest.mark.parametrize("rule", SPARSE)
def test_sparse_gradients(rule):
    make, expected = SPARSE[rule]
    with dygraph.guard():
        table = dygraph.Embedding([6, 2], is_sparse=True)
        table.weight.set_value(np.arange(12).reshape(6, 2).astype("float32") / 12)
        array = table.weight.array
        made = make(parameter_list=table.parameters())
        for ids in ([1, 3, 3], [0, 1, 5, 5], [2, 2, 2]):
            out = table(dygraph.to_variable(np.array(ids, "int64").reshape(-1, 1)))
            loss = layers.reduce_mean(out * out)
            loss.backward()
            made.minimize(loss)
            table.clear_gradients()
    assert table.weight.array is array
    np.testing.assert_allclose(array.ravel(), expected, rtol=2e-6, atol=1e-7)


def test_dense_after_sparse_gradients():
    params = _parameters()[:1]
    made = optimizer.Momentum(1.0, 0.5, parameter_list=params)
    params[0].grad_array = SelectedRows(np.array([1, 1]), np.ones((2, 3), "float32"), 2)
    made.minimize(LOSS)
    params[0].grad_array = np.ones((2, 3), "float32")
    made.minimize(LOSS)
    np.testing.assert_array_equal(params[0].array, W - np.array([[1], [4]], "float32"))


def test_clear_gradients_keeps_moments_moving():
    """As Fluid has it: after clear_gradients() gradients are zeros, and a step with them follows the moments."""
    with dygraph.guard():
        linear = dygraph.Linear(2, 1)
        made = optimizer.Momentum(0.5, 0.5, parameter_list=linear.parameters())
        loss = layers.reduce_sum(linear(dygraph.to_variable(np.ones((1, 2), "float32"))))
        loss.backward()
        made.minimize(loss)
        made.clear_gradients()
        np.testing.assert_array_equal(linear.bias.gradient(), [0.0])
        before = linear.bias.numpy()
        made.minimize(loss)
        np.testing.assert_allclose(linear.bias.numpy() - before, [-0.25])


def test_one_parameter_listed_twice_is_updated_once():
    param = _parameters()[1]
    made = optimizer.SGD(1.0, parameter_list=[param, param])
    param.grad_array = np.array([1, 1], "float32")
    made.minimize(LOSS)
    np.testing.assert_array_equal(param.array, B - 1)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda p: optimizer.SGD(0.1), AttributeError, "parameter_list argument given to the Optimizer"),
        (lambda p: optimizer.SGD(1, parameter_list=p), TypeError,
         "float or LearningRateDecay, got <class 'int'>"),
        (lambda p: optimizer.SGD(LOSS, parameter_list=p), TypeError, "float or LearningRateDecay"),
        (lambda p: optimizer.SGD(0.1, parameter_list=["w"]), TypeError, r"got str \('w'\)"),
        (lambda p: optimizer.SGD(0.1, parameter_list=p[0]), TypeError, "should be a list of Parameters"),
        (lambda p: optimizer.SGD(0.1, parameter_list=[LOSS]), TypeError, r"got the \w+ 'loss'"),
        (lambda p: optimizer.SGD(0.1, parameter_list=[*p, "b"]), TypeError, "got the str 'b'"),
        (lambda p: optimizer.SGD(0.1, parameter_list=[*p, Parameter(B, "w")]), ValueError,
         "two parameters called 'w'"),
        (lambda p: optimizer.SGD(0.1, parameter_list=p).minimize(3), TypeError, r"got int \(3\)"),
        (lambda p: optimizer.SGD(0.1, parameter_list=p, grad_clip=3), TypeError, "GradientClipBase"),
    ],
)  # fmt: skip
def test_bad_arguments(make, error, message):
    with dygraph.guard(), pytest.raises(error, match=message):
        make(_parameters())


def test_programs_and_eager_parameters_do_not_mix(programs):
    x = data("x", [2, 2])
    loss = layers.mean(layers.fc(x, 1))
    with pytest.raises(
        TypeError, match="belongs to a program, and this SGDOptimizer trains eager parameters"
    ):
        optimizer.SGD(0.1, parameter_list=_parameters()).minimize(loss)
    with pytest.raises(TypeError, match="is an eager tensor, and this SGDOptimizer trains programs"):
        optimizer.SGD(0.1).minimize(LOSS)
    with pytest.raises(TypeError, match="should be float or Variable, got .*NoamDecay"):
        optimizer.SGD(dygraph.NoamDecay(16, 4))
    assert not [op for op in programs[0].global_block().ops if op.type == "sgd"]


@pytest.mark.parametrize(
    "make",
    [
        lambda sgd: optimizer.ExponentialMovingAverage(0.9),
        lambda sgd: optimizer.ModelAverage(0.15),
        lambda sgd: optimizer.LookaheadOptimizer(sgd),
        lambda sgd: optimizer.RecomputeOptimizer(sgd),
    ],
)
def test_what_fluid_has_for_programs_only(make):
    with dygraph.guard(), pytest.raises(NotSupportedError, match=r"In dygraph, don't support \w+. Fluid 1.8"):
        make(optimizer.SGD(0.1, parameter_list=_parameters()))


def test_set_gradient_clip_is_for_programs():
    with dygraph.guard(), pytest.raises(AssertionError, match="set_gradient_clip in imperative mode"):
        clip.set_gradient_clip(clip.GradientClipByValue(1.0))


def test_building_an_update_leaves_the_users_programs_alone(programs):
    params = _parameters()
    _give(params, GRADS[0])
    with dygraph.guard():
        made = optimizer.Adam(0.1, parameter_list=params, grad_clip=clip.GradientClipByGlobalNorm(1.0))
        made.minimize(LOSS)
    assert [len(program.global_block().ops) for program in programs] == [0, 0]
    assert not programs[0].global_block().vars


FROZEN = [
    # The optimizer, what is set after two steps of four, and the weight after each, as in Fluid 1.8.5.
    (lambda p: optimizer.SGD(0.1, parameter_list=p), "stop_gradient", [0.9, 0.8, 0.8, 0.8]),
    (lambda p: optimizer.Momentum(0.1, 0.9, parameter_list=p), "stop_gradient", [0.9, 0.71, 0.539, 0.3851]),
    (lambda p: optimizer.Adam(0.1, parameter_list=p), "stop_gradient", [0.9, 0.8, 0.7227, 0.65938]),
    (lambda p: optimizer.Momentum(0.1, 0.9, parameter_list=p), "trainable", [0.9, 0.71, 0.71, 0.71]),
]


@pytest.mark.parametrize(("make", "how", "expected"), FROZEN)
def test_parameters_frozen_in_the_middle_of_training(make, how, expected):
    with dygraph.guard():
        net = dygraph.Linear(2, 1, param_attr=Constant(1.0), bias_attr=Constant(1.0))
        steps, seen = make(net.parameters()), []
        for step in range(4):
            if step == 2:
                setattr(net.weight, how, how == "stop_gradient")
            loss = layers.mean(net(dygraph.to_variable(np.ones((2, 2), "float32"))))
            loss.backward()
            steps.minimize(loss)
            net.clear_gradients()
            seen.append(float(net.weight.numpy()[0, 0]))
        np.testing.assert_allclose(seen, expected, rtol=1e-5)


def test_of_several_backward_passes_the_last_one_counts():
    with dygraph.guard():
        net = dygraph.Linear(2, 1, param_attr=Constant(1.0), bias_attr=False)
        for size in (1, 2, 4):
            loss = layers.mean(net(dygraph.to_variable(np.full((2, 2), size, "float32"))))
            loss.backward()
        optimizer.SGD(1.0, parameter_list=net.parameters()).minimize(loss)
        assert net.weight.numpy().tolist() == [[-3], [-3]]
