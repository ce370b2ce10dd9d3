"""Optimizers: operators, accumulators, names, order, rates; numbers against recordings of Paddle 1.8.5."""

import numpy as np
import pytest

from fluidlite import clip, layers, optimizer, regularizer
from fluidlite.backward import append_backward
from fluidlite.data import data
from fluidlite.executor.interpreter.interpreter import Interpreter
from fluidlite.executor.scope import Scope
from fluidlite.framework import Program, default_main_program, default_startup_program, program_guard
from fluidlite.initializer import NumpyArrayInitializer
from fluidlite.param_attr import ParamAttr


def _loss(**param):
    x = data("x", [None, 3])
    attr = ParamAttr(**param) if param else None
    return layers.mean(layers.fc(x, 2, param_attr=attr))


def _updates(op_type):
    return [op for op in default_main_program().global_block().ops if op.type == op_type]


def _startup():
    return [name for op in default_startup_program().global_block().ops for name in op.output_arg_names]


ACCUMULATORS = {
    optimizer.SGD: ("sgd", []),
    optimizer.Momentum: ("momentum", ["_velocity_0"]),
    optimizer.LarsMomentum: ("lars_momentum", ["_velocity_0"]),
    optimizer.Adam: ("adam", ["_moment1_0", "_moment2_0", "_beta1_pow_acc_0", "_beta2_pow_acc_0"]),
    optimizer.LambOptimizer: ("lamb", ["_moment1_0", "_moment2_0", "_beta1_pow_acc_0", "_beta2_pow_acc_0"]),
    optimizer.Adamax: ("adamax", ["_moment_0", "_inf_norm_0", "_beta1_pow_acc_0"]),
    optimizer.Adagrad: ("adagrad", ["_moment_0"]),
    optimizer.DecayedAdagrad: ("decayed_adagrad", ["_moment_0"]),
    optimizer.Adadelta: ("adadelta", ["__avg_squared_grad_0", "__avg_squared_update_0"]),
    optimizer.RMSPropOptimizer: ("rmsprop", ["_momentum_0", "_mean_square_0", "_mean_grad_0"]),
    optimizer.Ftrl: ("ftrl", ["_squared_0", "_linear_0"]),
    optimizer.Dpsgd: ("dpsgd", []),
}


@pytest.mark.parametrize("kind", list(ACCUMULATORS), ids=lambda kind: kind.__name__)
def test_operators_accumulators_and_startup(programs, kind):
    op_type, suffixes = ACCUMULATORS[kind]
    more = [0.9] if "Momentum" in kind.__name__ else []
    made = kind(0.1, *more)
    ops, pairs = made.minimize(_loss())
    assert [op.input("Param") for op in _updates(op_type)] == [["fc_0.b_0"], ["fc_0.w_0"]]
    assert ops == programs[0].global_block().ops[-len(ops) :]
    assert [(param.name, grad.name) for param, grad in pairs] == [
        ("fc_0.w_0", "fc_0.w_0@GRAD"),
        ("fc_0.b_0", "fc_0.b_0@GRAD"),
    ]
    names = [param + ending for param in ("fc_0.b_0", "fc_0.w_0") for ending in suffixes]
    assert made.get_opti_var_name_list() == names
    assert _startup() == ["learning_rate_0", *reversed(names), "fc_0.b_0", "fc_0.w_0"]
    for op in _updates(op_type):
        assert op.attr("op_role") == 2
        assert op.attr("op_role_var") == [op.input("Param")[0], op.input("Grad")[0]]
        assert set(op.output_arg_names) <= set(op.input_arg_names)
    block = programs[0].global_block()
    assert all(block.var(name).persistable and block.var(name).belong_to_optimizer for name in names)


def test_a_name_goes_into_the_accumulators(programs):
    made = optimizer.Adam(0.1, name="second", parameter_list=["fc_0.w_0"])
    made.minimize(_loss())
    assert made.get_opti_var_name_list()[0] == "fc_0.w_0_second_moment1_0"
    assert len(_updates("adam")) == 1
    assert made._get_accumulator("moment1", programs[0].global_block().var("fc_0.w_0")).shape == (3, 2)


def test_adamax_carries_its_power_on_after_all_updates(programs):
    ops, _ = optimizer.Adamax(0.1, beta1=0.8).minimize(_loss())
    assert [op.type for op in ops] == ["adamax", "adamax", "scale", "scale"]
    assert ops[2].input("X") == ops[2].output("Out") == ["fc_0.b_0_beta1_pow_acc_0"]
    assert ops[2].attr("scale") == np.float32(0.8).item()


def test_lamb_excludes_parameters_from_decay(programs):
    made = optimizer.LambOptimizer(
        0.1, 0.5, exclude_from_weight_decay_fn=lambda param: param.name.endswith("b_0")
    )
    made.minimize(_loss())
    assert [op.attr("weight_decay") for op in _updates("lamb")] == [0.0, 0.5]


def test_adam_takes_betas_as_variables(programs):
    beta = layers.create_global_var([1], 0.7, "float32", persistable=True)
    optimizer.Adam(0.1, beta1=beta).minimize(_loss())
    op = _updates("adam")[0]
    assert op.input("Beta1Tensor") == [beta.name]
    assert op.input("Beta2Tensor") == []
    assert "Beta1TensorOut" not in op.outputs


def test_a_parameters_own_rate_scales_the_optimizers(programs):
    optimizer.SGD(0.1).minimize(_loss(learning_rate=0.5))
    bias, weight = _updates("sgd")
    assert bias.input("LearningRate") == ["learning_rate_0"]
    scale = programs[0].global_block().var(weight.input("LearningRate")[0]).op
    assert (scale.type, scale.input("X"), scale.attr("scale")) == ("scale", ["learning_rate_0"], 0.5)


def test_the_rate_may_be_a_variable(programs):
    rate = layers.create_global_var([1], 0.3, "float32", persistable=True, name="lr")
    made = optimizer.SGD(rate)
    made.minimize(_loss())
    assert _updates("sgd")[0].input("LearningRate") == ["lr"]
    assert made._global_learning_rate() is rate
    assert "learning_rate_0" not in _startup()


def test_frozen_parameters_stay(programs):
    optimizer.SGD(0.1).minimize(_loss(trainable=False))
    assert [op.input("Param") for op in _updates("sgd")] == [["fc_0.b_0"]]


def test_clipping_then_regularization_then_updates(programs):
    made = optimizer.SGD(
        0.1, regularization=regularizer.L2Decay(0.01), grad_clip=clip.GradientClipByValue(0.5)
    )
    ops, _ = made.minimize(_loss())
    types = [op.type for op in programs[0].global_block().ops]
    assert types[-8:] == ["clip", "clip", "scale", "sum", "scale", "sum", "sgd", "sgd"]
    assert [op.type for op in ops] == ["sgd", "sgd"]
    assert [op.input("Grad") for op in ops] == [["clip_0.tmp_0"], ["clip_1.tmp_0"]]


def test_backward_and_apply_gradients_by_hand(programs):
    made = optimizer.Momentum(0.1, 0.9)
    pairs = made.backward(_loss())
    before = len(programs[0].global_block().ops)
    ops = made.apply_gradients(pairs)
    assert [op.type for op in ops] == ["momentum", "momentum"]
    assert len(programs[0].global_block().ops) == before + 2


def test_other_programs_can_be_trained_from_anywhere(programs):
    main, startup = Program(), Program()
    with program_guard(main, startup):
        loss = _loss()
    optimizer.SGD(0.1).minimize(loss, startup)
    assert main.global_block().ops[-1].type == "sgd"
    assert startup.global_block().ops[0].output("Out")[0].startswith("learning_rate")
    assert programs[0].global_block().ops == []


def test_two_optimizers_on_one_program(programs):
    loss = _loss()
    optimizer.SGD(0.1).minimize(loss)
    optimizer.Momentum(0.2, 0.9).minimize(loss, parameter_list=["fc_0.w_0"])
    op = _updates("momentum")[0]
    assert op.input("LearningRate") == ["learning_rate_1"]
    assert op.input("Grad")[0] != "fc_0.w_0@GRAD"


def test_accumulators_are_made_once(programs):
    loss, made = _loss(), optimizer.Adam(0.1)
    made.minimize(loss)
    with pytest.raises(
        ValueError, match=r"moment1 already exists for parameter fc_0\.b_0: use another optimizer"
    ):
        made.minimize(loss)
    with pytest.raises(ValueError, match="Accumulator velocity does not exist"):
        made._get_accumulator("velocity", programs[0].global_block().var("fc_0.b_0"))


def test_error_clip_reaches_the_backward_pass(programs):
    x = data("x", [None, 3])
    hidden = layers.fc(x, 2)
    hidden.error_clip = clip.ErrorClipByValue(0.5)
    optimizer.SGD(0.1).minimize(layers.mean(layers.fc(hidden, 2)))
    clips = _updates("clip")
    assert [op.input("X") for op in clips] == [["fc_0.tmp_1@GRAD"]]


def test_float64_losses_get_a_float64_rate(programs):
    x = data("x", [None, 3], "float64")
    weight = layers.create_parameter([3], "float64", name="w")
    optimizer.SGD(0.1).minimize(layers.mean(layers.elementwise_mul(x, weight)))
    assert programs[0].global_block().var("learning_rate_0").dtype == x.dtype


# A layer of weights drawn from seed 0 after three steps, as Paddle 1.8.5 computed them.
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: optimizer.Adam(0.1), [1.4699221, 0.3192310, 0.6848382, 1.9437358, 1.5909364, -0.7047629]),
        (lambda: optimizer.Adamax(0.1),
         [1.5088428, 0.3167166, 0.7249089, 1.9792991, 1.6455047, -0.7534207]),
        (lambda: optimizer.Momentum(0.1, 0.9, use_nesterov=True),
         [0.7120570, 0.1979288, 0.0773867, 1.0413669, 0.2270559, -0.6411582]),
        (lambda: optimizer.LambOptimizer(0.1),
         [1.3153157, 0.2890327, 0.5311545, 1.7891210, 1.4459418, -0.5918305]),
        (lambda: optimizer.RMSPropOptimizer(0.1, momentum=0.3, centered=True),
         [0.4687022, 0.0424587, -0.3882194, 0.9127600, 0.6015345, -0.5375127]),
    ],
)  # fmt: skip
def test_three_steps_as_recorded(programs, make, expected):
    rng = np.random.RandomState(0)
    start = rng.randn(3, 2).astype("float32")
    x = data("x", [None, 3])
    made = layers.fc(
        x, 2, param_attr=ParamAttr(name="w", initializer=NumpyArrayInitializer(start)), bias_attr=False
    )
    make().minimize(layers.mean(made * made))
    scope = Scope()
    Interpreter(programs[1], scope, {}).run()
    for _ in range(3):
        Interpreter(programs[0], scope, {"x": (rng.randn(4, 3).astype("float32"), ())}).run()
    np.testing.assert_allclose(scope.find_var("w").get_tensor().array.ravel(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optimizer.SGD("fast"), "learning rate should be float or Variable, got <class 'str'>"),
        (lambda: optimizer.SGD(1), "learning rate should be float or Variable, got <class 'int'>"),
        (lambda: optimizer.SGD(0.1, grad_clip=3), "'grad_clip' should be an instance of GradientClipBase"),
        (lambda: optimizer.SGD(0.1, regularization=3), "'regularization' should be a regularizer"),
        (lambda: optimizer.SGD(0.1, parameter_list="w"), "'parameter_list' should be a list of Parameters"),
        (lambda: optimizer.Momentum(0.1, None), "momentum of Momentum must be a number, got None"),
        (lambda: optimizer.Adam(0.1, beta1="b"), "beta1 of Adam must be a number, got 'b'"),
        (lambda: optimizer.SGD(0.1).minimize(3), r"The loss should be a Variable, got int \(3\)"),
    ],
)
def test_bad_arguments(programs, make, message):
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: optimizer.SGD(None),
        lambda: optimizer.Momentum(0.1, None),
        lambda: optimizer.Adam(0.1, epsilon=None),
    ],
)
def test_arguments_that_are_none(programs, make):
    with pytest.raises(AssertionError) as caught:
        make()
    assert caught.type.__name__ == "AssertionError"


@pytest.mark.parametrize("method", ["state_dict", "current_step_lr", "clear_gradients"])
def test_eager_methods_say_so(method):
    with pytest.raises(AssertionError, match=f"SGDOptimizer.{method} works in dygraph mode only"):
        getattr(optimizer.SGD(0.1), method)()


def test_append_backward_alone_leaves_parameters(programs):
    append_backward(_loss())
    assert not _updates("sgd")


def test_a_rate_that_is_a_variable_is_known_before_minimize(programs):
    x = data("x", [None, 3])
    loss = layers.mean(layers.fc(x, 1))
    rate = layers.piecewise_decay([1, 2], [0.1, 0.2, 0.3])
    momentum, constant = optimizer.Momentum(rate, 0.9), optimizer.SGD(0.1)
    assert momentum._global_learning_rate() is rate and constant._global_learning_rate() is None
    momentum.minimize(loss)
    assert momentum._global_learning_rate() is rate
    assert momentum._global_learning_rate(Program()) is None
