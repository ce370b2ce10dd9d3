"""contrib.slim.quantization on graphs: operators, names and numbers are those recorded on Paddle 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import core, layers
from fluidlite.contrib.slim import quantization
from fluidlite.framework import IrGraph

PLACE = fluid.CPUPlace()


def build(train):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 2, 4, 4], "float32"), fluid.data("y", [None, 1], "int64")
        hidden = layers.pool2d(layers.conv2d(x, 2, 3, act="relu"), 2, "avg", 2)
        hidden = layers.elementwise_add(hidden, hidden)
        with fluid.name_scope("skip_quant"):
            left = layers.fc(hidden, 2, name="left")
        predicted = layers.fc(left, 3, act="softmax")
        loss = layers.mean(layers.cross_entropy(predicted, y))
        if train:
            fluid.optimizer.SGD(0.1).minimize(loss)
    return main, startup, loss.name, predicted.name


def passes(kinds, train, scope):
    """The graph of `build` after the passes of training, or those of its program for tests."""
    program = build(train)[0]
    graph = IrGraph(core.Graph(program.desc), for_test=not train)
    activations, weights = kinds
    with fluid.unique_name.guard():
        quantization.QuantizationTransformPass(
            scope, PLACE, activation_quantize_type=activations, weight_quantize_type=weights
        ).apply(graph)
        quantization.AddQuantDequantPass(scope, PLACE).apply(graph)
        if train:
            quantization.OutScaleForTrainingPass(scope, PLACE).apply(graph)
    return graph


def started():
    scope = fluid.Scope()
    main, startup, *_ = build(True)
    with fluid.scope_guard(scope):
        fluid.Executor(PLACE).run(startup)
    random = np.random.RandomState(0)
    for param in sorted(main.all_parameters(), key=lambda param: param.name):
        value = random.uniform(-1, 1, param.shape).astype("float32")
        scope.find_var(param.name).get_tensor().set(value, PLACE)
    return scope


def compiled(graph):
    return fluid.CompiledProgram(graph.graph)


def replicated(graph):
    return fluid.CompiledProgram(graph.graph).with_data_parallel(loss_name=build(True)[2], places=[PLACE])


def trained(kinds, made=IrGraph.to_program):
    """Losses of three steps, then the output and the graph for tests, and the scope; `made` says what is run."""
    scope = started()
    exe, random, losses = fluid.Executor(PLACE), np.random.RandomState(5), []
    _, _, loss, predicted = build(True)
    program = made(passes(kinds, True, scope))
    testing = passes(kinds, False, scope)
    with fluid.scope_guard(scope):
        for _ in range(3):
            feed = {
                "x": random.uniform(-1, 1, (3, 2, 4, 4)).astype("float32"),
                "y": random.randint(0, 3, (3, 1)).astype("int64"),
            }
            losses.append(float(exe.run(program, feed=feed, fetch_list=[loss])[0][0]))
        (before,) = exe.run(testing.to_program(), feed=feed, fetch_list=[predicted])
        quantization.OutScaleForInferencePass(scope).apply(testing)
        quantization.QuantizationFreezePass(scope, PLACE, weight_quantize_type=kinds[1]).apply(testing)
        (after,) = exe.run(testing.to_program(), feed=feed, fetch_list=[predicted])
    thresholds = [
        op.attr("out_threshold") for op in testing.to_program().global_block().ops if op.attr("out_threshold")
    ]
    weight = np.array(scope.find_var("conv2d_0.w_0").get_tensor())
    return losses, before, after, thresholds, weight, testing, scope


RECORDED = {
    ("moving_average_abs_max", "abs_max"): (
        [0.451587, 1.28146, 1.685317],
        [0.518919, 0.244797, 0.236284],
        [2.86057, 2.831154, 2.463685, 1.089238, 1.856132, 1.914877, 1.635544, 0.81157, 1.52006, 0.751021],
        [26, 11, -20, 38, -17, 101],
    ),
    ("range_abs_max", "channel_wise_abs_max"): (
        [0.428194, 1.287909, 1.670114],
        [0.515559, 0.242521, 0.24192],
        [2.855848, 2.826307, 2.465371, 1.090979, 1.857209, 1.906915, 1.626609, 0.861084, 1.568761, 0.7617],
        [26, 11, -20, 39, -17, 103],
    ),
    ("abs_max", "abs_max"): (
        [0.428377, 1.286951, 1.671569],
        [0.514889, 0.241791, 0.243321],
        [2.853024, 2.823484, 2.459555, 1.089351, 1.855725, 1.909615, 1.6293, 0.861289, 1.568954, 0.761797],
        [26, 11, -20, 38, -17, 101],
    ),
}


@pytest.mark.parametrize("kinds", RECORDED)
@pytest.mark.parametrize("made", [IrGraph.to_program, compiled, replicated])
def test_training_and_freezing(kinds, made):
    losses, before, after, thresholds, weight, _, _ = trained(kinds, made)
    wanted_losses, wanted, wanted_thresholds, wanted_weight = RECORDED[kinds]
    np.testing.assert_allclose(losses, wanted_losses, rtol=1e-4)
    np.testing.assert_allclose(before[0], wanted, rtol=1e-4)
    np.testing.assert_allclose(after, before, rtol=1e-5)
    np.testing.assert_allclose(thresholds, wanted_thresholds, rtol=1e-4)
    np.testing.assert_array_equal(weight.ravel()[:6], wanted_weight)


def test_parameters_become_bytes():
    *_, testing, scope = trained(("moving_average_abs_max", "abs_max"))
    quantization.ConvertToInt8Pass(scope, PLACE).apply(testing)
    program = testing.to_program()
    assert program.global_block().var("conv2d_0.w_0.int8").dtype == core.VarDesc.VarType.INT8
    assert "left.w_0" in program.global_block().vars and "fc_0.w_0" not in program.global_block().vars
    stored = np.array(scope.find_var("conv2d_0.w_0.int8").get_tensor())
    assert stored.dtype == np.int8 and stored.ravel()[:3].tolist() == [26, 11, -20]
    quantization.TransformForMobilePass().apply(testing)
    types = [op.type for op in testing.to_program().global_block().ops]
    assert types[:3] == ["quantize", "conv2d", "dequantize"]


def test_operators_and_names_of_training():
    graph = passes(("moving_average_abs_max", "channel_wise_abs_max"), True, started())
    ops = {tuple(op.output_arg_names): op for op in graph.to_program().global_block().ops}
    (convolution,) = (op for op in ops.values() if op.type == "conv2d")
    assert convolution.input("Filter") == ["conv2d_0.w_0.quantized.dequantized"]
    assert convolution.attr("quantization_type") == "qat_with_weight"
    (gradient,) = (op for op in ops.values() if op.type == "conv2d_grad")
    assert gradient.input("Input") == ["x.quantized.dequantized"]
    assert gradient.attr("op_role_var") == ["conv2d_0.w_0.quantized.dequantized", "conv2d_0.w_0@GRAD"]
    filters = ops["conv2d_0.w_0.quantized", "conv2d_0.w_0.scale"]
    assert filters.type == "fake_channel_wise_quantize_abs_max"
    assert graph.to_program().global_block().var("conv2d_0.w_0.scale").shape == (2,)
    (left,) = (op for op in ops.values() if op.type == "mul" and op.output("Out") == ["left.tmp_0"])
    assert left.attr("skip_quant") and left.input("X") == ["elementwise_add_0.tmp_0"]
    (pooling,) = (op for op in ops.values() if op.type == "pool2d")
    assert pooling.input("X") == ["conv2d_0.tmp_2.quant_dequant"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"activation_quantize_type": "channel_wise_abs_max"}, AssertionError, "does not support"),
        ({"activation_quantize_type": "max"}, ValueError, "Unknown activation_quantize_type : 'max'"),
        ({"weight_quantize_type": "max"}, ValueError, "Unknown weight_quantize_type : 'max'"),
        ({"quantizable_op_type": ["relu"]}, AssertionError, "relu is not supported"),
    ],
)
def test_what_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        quantization.QuantizationTransformPass(**arguments)


def test_scales_need_a_scope():
    graph = IrGraph(core.Graph(build(True)[0].desc))
    with pytest.raises(AssertionError, match="the scope and the place must be given"):
        quantization.QuantizationTransformPass(activation_quantize_type="range_abs_max").apply(graph)


@pytest.mark.parametrize("weights", ["abs_max", "channel_wise_abs_max"])
def test_a_graph_is_frozen_once(weights):
    scope = started()
    graph = passes(("abs_max", weights), False, scope)
    freezing = quantization.QuantizationFreezePass(scope, PLACE, weight_quantize_type=weights)
    freezing.apply(graph)
    with pytest.raises(KeyError, match="no quantized parameter and input"):
        freezing.apply(graph)
