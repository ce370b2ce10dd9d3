"""contrib.quantize.QuantizeTranspiler: operators, names and numbers are those recorded on Paddle 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.contrib.quantize import QuantizeTranspiler
from fluidlite.contrib.quantize.quantize_transpiler import _original_var_name, quant

PLACE = fluid.CPUPlace()
FILTER = np.linspace(-1, 1, 18).reshape(2, 1, 3, 3).astype("float32")
WEIGHT = np.cos(np.arange(96)).reshape(32, 3).astype("float32")


def given(name, value):
    return fluid.ParamAttr(name=name, initializer=fluid.initializer.NumpyArrayInitializer(value))


def build():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x, y = fluid.data("x", [None, 1, 6, 6]), fluid.data("y", [None, 1], "int64")
        hidden = layers.conv2d(x, 2, 3, act="relu", param_attr=given("cw", FILTER))
        predicted = layers.fc(hidden, 3, act="softmax", param_attr=given("fw", WEIGHT))
        loss = layers.mean(layers.cross_entropy(predicted, y))
        test = main.clone(for_test=True)
        fluid.optimizer.SGD(0.1).minimize(loss)
    return main, startup, test, loss, predicted


def run(transpiler):
    """Six steps, then the program for tests before and after freezing."""
    with fluid.unique_name.guard():
        main, startup, test, loss, predicted = build()
        transpiler.training_transpile(main, startup)
        transpiler.training_transpile(test, startup)
    exe, scope, random = fluid.Executor(PLACE), fluid.Scope(), np.random.RandomState(0)
    with fluid.scope_guard(scope):
        exe.run(startup)
        losses = []
        for step in range(6):
            x = random.randn(4, 1, 6, 6).astype("float32") * (step % 3 + 1)
            feed = {"x": x, "y": random.randint(0, 3, (4, 1))}
            losses.append(exe.run(main, feed=feed, fetch_list=[loss])[0].item())
        feed = {"x": random.randn(4, 1, 6, 6).astype("float32"), "y": np.zeros((4, 1), "int64")}
        outputs = [exe.run(test, feed=feed, fetch_list=[predicted])[0]]
        transpiler.freeze_program(test, PLACE, scope)
        outputs.append(exe.run(test, feed=feed, fetch_list=[predicted])[0])
    return losses, outputs, test, scope


def value(scope, name):
    return np.array(scope.find_var(name).get_tensor())


RECORDED = {
    "abs_max": (
        [2.1271725, 1.0436317, 12.47438, 2.0841417, 7.6718326, 8.724365],
        [[0.6228326, 0.20315768, 0.17400973], [0.08413699, 0.91267323, 0.0031898]],
        [[0.6228326, 0.2031577, 0.17400973], [0.08413699, 0.91267323, 0.0031898]],
        [-62, -127, -17, -36, -66, -48],
    ),
    "range_abs_max": (
        [2.1271725, 1.0436317, 12.47438, 2.0488317, 7.8853726, 8.578062],
        [[0.6766515, 0.18800965, 0.13533892], [0.07062464, 0.9248805, 0.00449484]],
        [[0.6766514, 0.18800968, 0.13533898], [0.07062468, 0.9248805, 0.00449484]],
        [-61, -127, -13, -38, -65, -46],
    ),
    "moving_average_abs_max": (
        [1.9301575, 0.6411507, 7.2867107, 1.5533035, 4.2097297, 11.561108],
        [[0.9308966, 0.05203686, 0.01706655], [0.33443147, 0.66459644, 0.00097209]],
        [[0.9419423, 0.04219212, 0.01586569], [0.2963196, 0.7026964, 0.00098398]],
        [-57, -127, -22, -48, -53, -41],
    ),
}


@pytest.mark.parametrize("kind", RECORDED)
def test_training_freezing_and_int8_give_the_recorded_numbers(kind):
    transpiler = QuantizeTranspiler(activation_quantize_type=kind, window_size=4)
    losses, (before, after), test, scope = run(transpiler)
    expected_losses, expected_before, expected_after, integers = RECORDED[kind]
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-4)
    np.testing.assert_allclose(before[:2], expected_before, rtol=2e-4)
    np.testing.assert_allclose(after[:2], expected_after, rtol=2e-4)
    assert value(scope, "cw").ravel()[:6].tolist() == integers
    transpiler.convert_to_int8(test, PLACE, scope)
    held = value(scope, "cw.int8")
    assert held.dtype == np.int8 and held.ravel()[:6].tolist() == integers
    assert "cw" not in test.global_block().vars and test.global_block().var("fw.int8").persistable


def test_operators_of_the_transpiled_and_of_the_frozen_program():
    transpiler = QuantizeTranspiler(weight_bits=4, activation_quantize_type="range_abs_max", window_size=4)
    with fluid.unique_name.guard():
        main, startup, test, *_ = build()
        transpiler.training_transpile(main, startup)
        transpiler.training_transpile(test, startup)
    ops = main.global_block().ops
    assert [op.type for op in ops[:8]] == [
        "increment",
        "fake_quantize_range_abs_max",
        "fake_dequantize_max_abs",
        "fake_quantize_abs_max",
        "fake_dequantize_max_abs",
        "conv2d",
        "elementwise_add",
        "relu",
    ]
    assert ops[1].output("OutScales") == ["scales_0"] and ops[1].input("Iter") == ["@STEP_COUNTER@"]
    assert ops[4].attr("max_range") == 7
    assert ops[5].input("Filter") == ["cw.quantized.dequantized"]
    (grad,) = [op for op in ops if op.type == "mul_grad"]
    assert grad.input("X") == ["conv2d_0.tmp_2.quantized.dequantized"] and grad.output("Y@GRAD") == [
        "fw@GRAD"
    ]
    first = [op.output_arg_names[0] for op in startup.global_block().ops[:8]]
    assert first == [
        "scales_3",
        "scales_2",
        "@STEP_COUNTER@",
        "scales_1",
        "conv2d_0.tmp_2.scale",
        "scales_0",
        "x.scale",
        "@STEP_COUNTER@",
    ]
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        fluid.Executor(PLACE).run(startup)
        transpiler.freeze_program(test, PLACE)
    ops = test.global_block().ops
    assert [op.type for op in ops[1:4]] == [
        "fake_quantize_range_abs_max",
        "conv2d",
        "fake_dequantize_max_abs",
    ]
    assert ops[2].input("Filter") == ["cw"] and ops[2].input("Input") == ["x.quantized"]
    assert ops[3].attr("max_range") == 7 * 127 and ops[3].input("Scale") == ["x.scale"]
    assert ops[4].input("X") == ["conv2d_0.tmp_0.dequantized"]
    assert "cw.scale" not in test.global_block().vars


@pytest.mark.parametrize("kind", ["range_abs_max", "moving_average_abs_max"])
def test_parameters_with_a_scale_that_lasts_are_frozen_with_it(kind):
    transpiler = QuantizeTranspiler(weight_quantize_type=kind, window_size=3)
    _, _, test, scope = run(transpiler)
    frozen = value(scope, "fw")
    assert np.abs(frozen).max() <= 127 and (frozen == np.round(frozen)).all()
    attrs = [op.attr("max_range") for op in test.global_block().ops if op.type == "fake_dequantize_max_abs"]
    np.testing.assert_allclose(attrs[1], 127 * 127 / value(scope, "fw.scale")[0], rtol=1e-6)


def test_a_shared_parameter_is_rounded_once():
    with fluid.unique_name.guard(), fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [None, 4])
        hidden = layers.fc(x, 4, param_attr="w", bias_attr=False)
        layers.fc(hidden, 4, param_attr="w", bias_attr=False)
        QuantizeTranspiler().training_transpile()
        types = [op.type for op in fluid.default_main_program().global_block().ops]
    assert types.count("fake_quantize_abs_max") == 3 and types.count("mul") == 2


def test_a_product_of_two_results_cannot_be_frozen(programs):
    x = fluid.data("x", [None, 4])
    layers.mul(x, layers.reshape(x, [4, -1]))
    QuantizeTranspiler().training_transpile()
    with pytest.raises(ValueError, match="mul .* no quantized parameter"):
        QuantizeTranspiler().freeze_program(fluid.default_main_program(), PLACE, fluid.Scope())


def test_kinds_are_checked():
    with pytest.raises(ValueError, match="activation_quantize_type: 'x'"):
        QuantizeTranspiler(activation_quantize_type="x")
    with pytest.raises(ValueError, match="weight_quantize_type: 'channel_wise_abs_max'"):
        QuantizeTranspiler(weight_quantize_type="channel_wise_abs_max")


def test_quant_is_not_limited():
    assert quant(np.array([0.5, -1.2, 0.1]), 1.0, 8).tolist() == [64, -152, 13]


@pytest.mark.parametrize("conditional", [False, True])
def test_products_that_read_products_are_frozen_with_their_scales(conditional):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        hidden = layers.fc(fluid.data("x", [None, 4]), 4, bias_attr=False)

        def second():
            return layers.fc(hidden, 4, bias_attr=False)

        out = (
            layers.cond(layers.mean(hidden) > 100.0, second, second)
            if conditional
            else layers.scale(second())
        )
        transpiler = QuantizeTranspiler()
        transpiler.training_transpile(main, startup)
    exe, scope = fluid.Executor(PLACE), fluid.Scope()
    feed = {"x": np.sin(np.arange(8)).reshape(2, 4).astype("float32")}
    with fluid.scope_guard(scope):
        exe.run(startup)
        before = exe.run(main, feed=feed, fetch_list=[out])[0]
        transpiler.freeze_program(main, PLACE)
        after = exe.run(main, feed=feed, fetch_list=[out])[0]
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-6)


def test_names_of_what_is_rounded():
    named = ("a", "a.quantized", "a.quantized.dequantized", "a.dequantized", "a.scale", "a.scale@GRAD")
    assert [_original_var_name(name) for name in named] == ["a"] * 5 + ["a.scale@GRAD"]
