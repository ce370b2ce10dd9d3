"""contrib.slim.quantization.PostTrainingQuantization; numbers are those recorded on Paddle 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.contrib.slim.quantization import PostTrainingQuantization, WeightQuantization
from fluidlite.contrib.slim.quantization.post_training_quantization import kl_threshold

PLACE = fluid.CPUPlace()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of a saved model."""
    folder = str(tmp_path_factory.mktemp("model"))
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        hidden = layers.conv2d(fluid.data("image", [None, 2, 6, 6], "float32"), 3, 3, act="relu")
        hidden = layers.pool2d(hidden, 2, "avg", 2)
        hidden = layers.elementwise_add(hidden, layers.scale(hidden, 0.5))
        predicted = layers.fc(layers.fc(hidden, 4, act="tanh"), 3, act="softmax")
        exe = fluid.Executor(PLACE)
        exe.run(startup)
        random = np.random.RandomState(0)
        for param in sorted(main.all_parameters(), key=lambda param: param.name):
            value = random.uniform(-1, 1, param.shape).astype("float32")
            fluid.global_scope().find_var(param.name).get_tensor().set(value, PLACE)
        fluid.io.save_inference_model(folder, ["image"], [predicted], exe, main)
    return folder


def samples():
    random = np.random.RandomState(3)
    for _ in range(40):
        yield [random.normal(0, 1, (2, 6, 6)).astype("float32")]


def quantizer(model, scope, **options):
    exe = fluid.Executor(PLACE)
    return PostTrainingQuantization(
        exe, scope, model, sample_generator=samples, batch_size=4, batch_nums=5, **options
    )


def thresholds(program):
    ops = program.global_block().ops
    return [round(op.attr("out_threshold"), 3) for op in ops if op.attr("out_threshold") is not None]


def test_by_the_largest_magnitude(model, tmp_path):
    scope = fluid.Scope()
    post = quantizer(model, scope, algo="abs_max")
    program = post.quantize()
    assert thresholds(program)[:8] == [8.394, 8.6, 8.6, 4.08, 2.04, 6.121, 11.354, 11.865]
    assert np.array(scope.find_var("image.scale").get_tensor())[0] == pytest.approx(3.70246, rel=1e-5)
    weight = np.array(scope.find_var("conv2d_0.w_0").get_tensor())
    assert weight.ravel()[:5].tolist() == [12, -20, 39, -17, 104]
    (convolution,) = (op for op in program.global_block().ops if op.type == "conv2d")
    assert convolution.attr("quantization_type") == "post_abs_max"
    post.save_quantized_model(str(tmp_path))
    image = {"image": np.random.RandomState(9).normal(0, 1, (2, 2, 6, 6)).astype("float32")}
    exe, outputs = fluid.Executor(PLACE), []
    for folder in (model, str(tmp_path)):
        with fluid.scope_guard(fluid.Scope()):
            loaded, _, fetches = fluid.io.load_inference_model(folder, exe)
            outputs.append(exe.run(loaded, feed=image, fetch_list=fetches)[0])
    np.testing.assert_allclose(outputs[1], outputs[0], atol=0.05)
    assert not np.array_equal(*outputs)


def test_by_divergence(model):
    scope = fluid.Scope()
    program = quantizer(
        model, scope, quantizable_op_type=["conv2d", "mul", "pool2d", "elementwise_add"]
    ).quantize()
    wanted = {"image.scale": 3.17504, "conv2d_0.tmp_2.quant_dequant.scale": 7.15732}
    for name, scale in wanted.items():
        assert np.array(scope.find_var(name).get_tensor())[0] == pytest.approx(scale, rel=1e-5)
    assert thresholds(program)[:7] == [6.723, 6.413, 7.157, 3.366, 1.683, 5.049, 9.512]
    kinds = [
        op.attr("quantization_type") for op in program.global_block().ops if op.type == "elementwise_add"
    ]
    assert kinds == ["post_kl"] * 4


def test_ranges_are_noted(model):
    program = quantizer(model, fluid.Scope(), algo="min_max").quantize()
    (convolution,) = (op for op in program.global_block().ops if op.type == "conv2d")
    assert convolution.attr("image.min") == pytest.approx(-3.173982)
    assert convolution.attr("out_max") == pytest.approx(8.394177)
    assert convolution.attr("conv2d_0.w_0.max") == pytest.approx([0.957237, 0.889338, 0.976748], rel=1e-5)
    assert [op.type for op in program.global_block().ops].count("fake_quantize_range_abs_max") == 0


@pytest.mark.parametrize(
    ("draw", "steps", "threshold"),
    [
        (lambda random: random.normal(0, 1, 3000), 255, 2.761079),
        (lambda random: random.normal(0, 1, 3000), 127, 3.118695),
        (lambda random: np.full(10, 2.0), 255, 0.500244),
        (lambda random: np.array([0.1, 0.5, 2]), 255, 0.400316),
    ],
)
def test_thresholds_of_divergence(draw, steps, threshold):
    magnitudes = np.abs(draw(np.random.RandomState(0)).astype("float32"))
    assert kl_threshold(magnitudes, steps) == pytest.approx(threshold, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algo": "mean"}, "The algo should be KL, abs_max or min_max"),
        ({"quantizable_op_type": ["exp"]}, "exp is not supported for quantization"),
        ({"activation_quantize_type": "max"}, r"The activation_quantize_type \(max\) should be one of"),
    ],
)
def test_what_is_refused(model, options, message):
    with pytest.raises(AssertionError, match=message):
        quantizer(model, fluid.Scope(), **options)


def stored(folder):
    """The operators of a saved model, and parameters of it."""
    scope, exe = fluid.Scope(), fluid.Executor(PLACE)
    with fluid.scope_guard(scope):
        program, _, _ = fluid.io.load_inference_model(folder, exe)
        weights = [np.array(scope.find_var(name).get_tensor()) for name in ("conv2d_0.w_0", "fc_0.w_0")]
        return program.global_block().ops, weights


@pytest.mark.parametrize(
    ("options", "kind", "scales", "integers"),
    [
        (
            {},
            "int8",
            [[0.00755562, 0.00757811, 0.00769093], [0.00755736, 0.0075033, 0.00780007, 0.00750805]],
            [[12, -20, 39, -17, 104, 123], [-103, 42, -93, -81, -35, 86]],
        ),
        (
            {"weight_quantize_type": "abs_max", "weight_bits": 16},
            "int16",
            [[2.981e-05], [3.023e-05]],
            [[3011, -5122, 9789, -4188, 26286, 31109], [-25776, 10342, -23936, -20073, -8685, 21235]],
        ),
        (
            {"weight_quantize_type": "abs_max", "threshold_rate": 0.1},
            "int8",
            [[0.00700336], [0.00727903]],
            [[13, -22, 42, -18, 112, 127], [-107, 43, -99, -83, -36, 88]],
        ),
    ],
)
def test_parameters_alone(model, tmp_path, options, kind, scales, integers):
    WeightQuantization(model).quantize_weight_to_int(str(tmp_path), generate_test_model=True, **options)
    ops, weights = stored(str(tmp_path / "quantized_model"))
    quantized = [op for op in ops if op.attr("quantize_weight_bits")]
    assert [op.type for op in quantized] == ["conv2d", "mul", "mul"]
    names = ("conv2d_0", "fc_0")
    for op, weight, name, scale, values in zip(quantized, weights, names, scales, integers, strict=False):
        assert weight.dtype == kind and weight.ravel()[:6].tolist() == values
        np.testing.assert_allclose(op.attr(f"{name}.w_0_quant_scale"), scale, atol=6e-9)
    _, restored = stored(str(tmp_path / "test_model"))
    np.testing.assert_allclose(restored[1].ravel()[0], integers[1][0] * scales[1][0], rtol=1e-3)
    assert restored[0].dtype == np.float32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight_bits": 4}, "weight_bits should be 8 or 16"),
        ({"quantizable_op_type": ["relu"]}, "relu is not supported for weight quantization"),
        ({"weight_quantize_type": "max"}, "weight_quantize_type should in"),
    ],
)
def test_what_is_refused_of_parameters(model, tmp_path, options, message):
    with pytest.raises(AssertionError, match=message):
        WeightQuantization(model).quantize_weight_to_int(str(tmp_path), **options)
