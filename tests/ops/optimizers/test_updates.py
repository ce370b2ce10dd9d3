"""Update operators against steps of real Paddle 1.8.5, and how plans join them."""

import re

import numpy as np
import pytest

from fluidlite.ops.optimizers import updates as optim
from fluidlite.ops.registry import Call, OperatorError, find

from ..harness import check, infer, run_kernel

_ZEROS = np.zeros((3, 2), "float32")


def _one(value):
    return np.array([value], "float32")


def _problem():
    """Weights and the inputs of three steps; the loss is the mean of squares of input @ weight."""
    rng = np.random.RandomState(0)
    weight = rng.randn(3, 2).astype("float32")
    return weight, [rng.randn(4, 3).astype("float32") for _ in range(3)]


def _gradient(weight, inputs):
    made = inputs @ weight
    return (inputs.T @ (2 * made / np.float32(made.size))).astype("float32")


_OUT = {"SquaredAccumulator": "SquaredAccumOut", "LinearAccumulator": "LinearAccumOut"}

# The weights after three steps at rate 0.1, as Paddle 1.8.5 computed them.
_RECORDED = {
    "adagrad": [1.5261866, 0.3472141, 0.7337326, 2.0099237, 1.6526859, -0.8257577],
    "adamax": [1.5088428, 0.3167166, 0.7249089, 1.9792991, 1.6455047, -0.7534207],
    "decayed_adagrad": [0.7379267, 0.0542067, -0.1005143, 1.2278501, 0.9269860, -0.5847706],
    "adadelta": [1.7443488, 0.3915428, 0.9566978, 2.2222593, 1.8505129, -0.9625536],
    "rmsprop": [0.5152537, 0.0434787, -0.3423491, 0.9603522, 0.6419424, -0.5417529],
    "rmsprop centered": [0.4687022, 0.0424587, -0.3882194, 0.9127600, 0.6015345, -0.5375127],
    "ftrl": [1.5140970, 0.3028758, 0.7132828, 1.9998354, 1.6445652, -0.7924622],
    "ftrl power": [1.4829694, 0.3106103, 0.6935413, 1.9642045, 1.5953292, -0.8054500],
    "lars_momentum": [1.7631946, 0.3999990, 0.9780425, 2.2399611, 1.8662982, -0.9769992],
    "lamb": [1.3153157, 0.2890327, 0.5311545, 1.7891210, 1.4459418, -0.5918305],
    "momentum nesterov": [0.7120570, 0.1979288, 0.0773867, 1.0413669, 0.2270559, -0.6411582],
    "adam": [1.4699221, 0.3192310, 0.6848382, 1.9437358, 1.5909364, -0.7047629],
    "dpsgd": [1.6991850, 0.3803384, 0.9252011, 2.1772921, 1.7836255, -0.9595625],
}
_STATE = {
    "adagrad": {"Moment": _ZEROS + np.float32(0.2)},
    "adamax": {"Moment": _ZEROS, "InfNorm": _ZEROS},
    "decayed_adagrad": {"Moment": _ZEROS},
    "adadelta": {"AvgSquaredGrad": _ZEROS, "AvgSquaredUpdate": _ZEROS},
    "rmsprop": {"Moment": _ZEROS, "MeanSquare": _ZEROS, "MeanGrad": _ZEROS},
    "ftrl": {"SquaredAccumulator": _ZEROS, "LinearAccumulator": _ZEROS},
    "lars_momentum": {"Velocity": _ZEROS},
    "lamb": {"Moment1": _ZEROS, "Moment2": _ZEROS},
    "momentum": {"Velocity": _ZEROS},
    "adam": {"Moment1": _ZEROS, "Moment2": _ZEROS, "Beta1Pow": _one(0.9), "Beta2Pow": _one(0.999)},
    "dpsgd": {},
}
_ATTRS = {
    "rmsprop": {"epsilon": 1e-6, "decay": 0.95, "momentum": 0.3},
    "rmsprop centered": {"epsilon": 1e-6, "decay": 0.95, "momentum": 0.3, "centered": True},
    "ftrl": {"l1": 0.01, "l2": 0.01},
    "ftrl power": {"l1": 0.01, "l2": 0.01, "lr_power": -0.4},
    "lars_momentum": {"mu": 0.9},
    "momentum nesterov": {"mu": 0.9, "use_nesterov": True},
    "dpsgd": {"clip": 0.5, "batch_size": 4.0, "sigma": 0.0},
}


@pytest.mark.parametrize("case", sorted(_RECORDED))
def test_three_steps_as_recorded(case):
    op_type = case.split()[0]
    takes = {slot.name for slot in find(op_type).input_slots}
    weight, batches = _problem()
    state = dict(_STATE[op_type])
    for step, batch in enumerate(batches):
        extra = {"LearningRate": _one(0.1)}
        if op_type in ("adamax", "lamb"):
            # Another operator (adamax) or none (lamb) carries the powers on.
            extra["Beta1Pow"] = _one(0.9 ** (step + 1)) if op_type == "adamax" else _one(0.9)
            extra["Beta2Pow"] = _one(0.999)
        inputs = {"Param": weight, "Grad": _gradient(weight, batch), **state}
        inputs.update({slot: value for slot, value in extra.items() if slot in takes})
        made = run_kernel(op_type, inputs, _ATTRS.get(case, {}))
        weight = made["ParamOut"][0]
        state = {slot: made[_OUT.get(slot, slot + "Out")][0] for slot in state}
    assert weight.dtype == np.float32
    np.testing.assert_allclose(weight.ravel(), _RECORDED[case], rtol=2e-6, atol=2e-7)


def test_sgd_and_plain_momentum():
    param, grad, velocity = (np.array(v, "float32") for v in ([1, 2], [0.5, -1], [0.25, 4]))
    inputs = {"Param": param, "Grad": grad, "LearningRate": _one(0.5)}
    np.testing.assert_array_equal(run_kernel("sgd", inputs)["ParamOut"][0], [0.75, 2.5])
    made = run_kernel("momentum", {**inputs, "Velocity": velocity}, {"mu": 0.5})
    np.testing.assert_array_equal(made["VelocityOut"][0], [0.625, 1.0])
    np.testing.assert_array_equal(made["ParamOut"][0], [0.6875, 1.5])


def test_adam_epsilon_stands_outside_the_correction():
    """Two steps with a large epsilon, as recorded: it is not scaled by the bias correction."""
    param, moments = np.ones(3, "float32"), [np.zeros(3, "float32")] * 2
    powers = [_one(0.9), _one(0.999)]
    for grad in ([1, 2, 3], [0.5, -1, 2]):
        inputs = {"Param": param, "Grad": np.array(grad, "float32"), "LearningRate": _one(0.1)}
        inputs.update(zip(("Moment1", "Moment2", "Beta1Pow", "Beta2Pow"), (*moments, *powers), strict=True))
        made = run_kernel("adam", inputs, {"epsilon": 0.1})
        param, *rest = (
            made[slot + "Out"][0] for slot in ("Param", "Moment1", "Moment2", "Beta1Pow", "Beta2Pow")
        )
        moments, powers = rest[:2], rest[2:]
    np.testing.assert_allclose(param, [0.9516333, 0.9502282, 0.8996301], rtol=2e-6)
    np.testing.assert_allclose([powers[0][0], powers[1][0]], [0.9**3, 0.999**3], rtol=1e-6)


def test_adam_takes_betas_from_variables():
    inputs = {
        "Param": np.ones(2, "float32"),
        "Grad": np.array([1, -2], "float32"),
        "LearningRate": _one(0.1),
        **_STATE["adam"],
    }
    inputs["Moment1"] = inputs["Moment2"] = np.full(2, 0.5, "float32")
    by_attr = run_kernel("adam", inputs, {"beta1": 0.5, "beta2": 0.75})
    by_variable = run_kernel("adam", {**inputs, "Beta1Tensor": _one(0.5), "Beta2Tensor": _one(0.75)})
    for slot in by_attr:
        np.testing.assert_allclose(by_attr[slot][0], by_variable[slot][0], rtol=1e-6)


@pytest.mark.parametrize("op_type", ["lars_momentum", "lamb"])
def test_layerwise_rates_survive_zero_norms(op_type):
    inputs = {"Param": _ZEROS, "Grad": _ZEROS, "LearningRate": _one(0.1), **_STATE[op_type]}
    if op_type == "lamb":
        inputs.update(Beta1Pow=_one(0.9), Beta2Pow=_one(0.999))
    made = run_kernel(op_type, inputs)
    np.testing.assert_array_equal(made["ParamOut"][0], _ZEROS)


def test_dpsgd_noise_has_the_asked_deviation():
    inputs = {
        "Param": np.zeros(20000, "float32"),
        "Grad": np.zeros(20000, "float32"),
        "LearningRate": _one(1.0),
    }
    attrs = {"clip": 2.0, "batch_size": 4.0, "sigma": 3.0}
    first, second = (run_kernel("dpsgd", inputs, attrs)["ParamOut"][0] for _ in range(2))
    assert abs(first.std() - 1.5) < 0.05
    assert abs(first.mean()) < 0.05
    assert not np.array_equal(first, second)


def test_float64_parameters_stay_float64():
    inputs = {"Param": np.ones(2), "Grad": np.ones(2), "LearningRate": _one(0.1), "Moment": np.zeros(2)}
    made = run_kernel("adagrad", inputs)
    assert made["ParamOut"][0].dtype == np.float64
    assert made["MomentOut"][0].dtype == np.float64


def test_shapes_are_checked():
    good = {"Param": _ZEROS, "Grad": _ZEROS, "LearningRate": _one(0.1)}
    assert infer("sgd", good)["ParamOut"][0][0] == (3, 2)
    with pytest.raises(
        OperatorError, match=r"sgd.*Grad must have the shape of Param, \[3, 2\], got \[2, 3\]"
    ):
        infer("sgd", {**good, "Grad": _ZEROS.T})
    with pytest.raises(OperatorError, match=r"LearningRate must have one element, got shape \[2\]"):
        infer("sgd", {**good, "LearningRate": np.zeros(2, "float32")})


@pytest.mark.parametrize(
    ("op_type", "slot"), [(name, slot) for name in sorted(_STATE) for slot in _STATE[name]]
)
def test_what_is_kept_has_the_shape_of_the_parameter(op_type, slot):
    powers = {"Beta1Pow": _one(0.9), "Beta2Pow": _one(0.999)}
    takes = {slot.name for slot in find(op_type).input_slots}
    given = {"Param": _ZEROS, "Grad": _ZEROS, "LearningRate": _one(0.1), **powers, **_STATE[op_type]}
    good = {name: value for name, value in given.items() if name in takes}
    assert infer(op_type, good)["ParamOut"][0][0] == (3, 2)
    must = "have one element" if slot in powers else r"have the shape of Param, \[3, 2\]"
    for wrong in ((2, 3), (6,), (4, 2)):
        with pytest.raises(
            OperatorError, match=rf"{op_type}.*{slot} must {must}, got.* {re.escape(str(list(wrong)))}"
        ):
            infer(op_type, {**good, slot: np.zeros(wrong, "float32")})


def _adam(param, rate="lr", beta1=0.9, size=4):
    names = [rate, *(f"{param}{suffix}" for suffix in ("", "@GRAD", "_m1", "_m2", "_b1", "_b2"))]
    return Call("adam.f32", names, [size], [beta1, 0.999, 1e-8])


def test_updates_that_agree_are_of_one_kind():
    calls = [_adam("a"), _adam("b", size=7), _adam("c", beta1=0.8), _adam("d", rate="lr2")]
    kinds = [optim.update_kind(call) for call in calls]
    assert kinds[0] == kinds[1] and len(set(kinds)) == 3
    assert optim.update_kind(Call("scale.f32", ["p", "p"], [1, 1], [0.9, 0.0])) is None
    first = optim.joined(calls[:2])
    assert list(first.operands) == [*_adam("a").operands, *_adam("b").operands[1:]]
    assert list(first.ints) == [4, 7]
    assert list(optim.joined([calls[3], _adam("e", rate="lr2")]).ints) == [4, 4]
    assert optim.joined(calls[2:3]) is calls[2]


def test_momentum_has_two_kinds():
    def momentum(param, nesterov):
        return Call("momentum.f32", ["lr", param, param + "@GRAD", param + "_v"], [nesterov, 3], [0.9])

    calls = [momentum("a", 1), momentum("b", 1), momentum("c", 0)]
    kinds = [optim.update_kind(call) for call in calls]
    assert kinds[0] == kinds[1] != kinds[2]
    joined = optim.joined(calls[:2])
    assert list(joined.ints) == [1, 3, 3]
    assert list(joined.operands) == ["lr", "a", "a@GRAD", "a_v", "b", "b@GRAD", "b_v"]


def f32(*values):
    return np.array(values, "float32")


@pytest.mark.parametrize(
    "step, nesterov, param, velocity",
    [
        (0, False, [0.966, 1.9695], [0.34, 0.305]),
        (0, True, [0.9444, 1.96005], [0.34, 0.305]),
        (3, False, [0.975, 1.9875], [0.1, 0.2]),
        (5, True, [0.975, 1.9875], [0.1, 0.2]),
    ],
)
def test_dgc_momentum(step, nesterov, param, velocity):
    given = {
        "Param": f32(1, 2), "Grad": f32(0.5, 0.25), "Velocity": f32(0.1, 0.2), "LearningRate": f32(0.1),
        "current_step": f32(step), "nranks": f32(2),
    }  # fmt: skip
    outputs = {"ParamOut": f32(*param), "VelocityOut": f32(*velocity), "Grad_out": f32(0.25, 0.125)}
    attrs = {"mu": 0.9, "use_nesterov": nesterov, "rampup_begin_step": 3.0}
    check("dgc_momentum", given, attrs, outputs, programs=False)


@pytest.mark.parametrize("step, begin, clipped", [(3, 2.0, True), (1, 2.0, False), (1, -1.0, False)])
def test_dgc_clip_by_norm(step, begin, clipped):
    x = np.arange(6, dtype="float32").reshape(2, 3)
    out = x / np.float32(np.linalg.norm(x)) if clipped else x
    attrs = {"max_norm": 1.0, "rampup_begin_step": begin}
    check("dgc_clip_by_norm", {"X": x, "current_step": f32(step)}, attrs, {"Out": out})
