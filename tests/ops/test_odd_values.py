"""Values and attributes that random cases failed for: the results of real 1.8.5, on all engines."""

import numpy as np
import pytest

from fluidlite.base.place import CPUPlace
from fluidlite.executor import Executor, Scope
from fluidlite.framework import Program

from ..engines import run_by
from . import harness

NAN, INF = np.nan, np.inf


def f32(*values):
    return np.array(values, "float32")


IMAGE = np.arange(1, 10, dtype="float32").reshape(1, 1, 3, 3)
FILTER = f32([1, 2], [3, 4]).reshape(1, 1, 2, 2)
SPREAD = f32([1, 4, 7, 6], [7, 23, 33, 24], [19, 53, 63, 42], [21, 52, 59, 36])

FOUND = {
    "the larger slope above zero": ("leaky_relu", {"X": f32(2, -2)}, {"alpha": 2.0}, {"Out": f32(4, -2)}),
    "no slope below, infinity": ("leaky_relu", {"X": f32(2, -INF)}, {"alpha": 0.0}, {"Out": f32(2, -INF)}),
    "threshold heeded": ("mish", {"X": f32(0.8, -1.9, 0.3, 5, -5)}, {"threshold": 0.5},
        {"Out": f32(0.53122942, -0.28208006, 0.20800137, 4.99954602, -0.03368923)}),
    "sums are not got by subtracting": ("cumsum", {"X": f32(1e8, 1, 3)}, {"exclusive": True},
        {"Out": f32(0, 1e8, 1e8)}),
    "an infinity at the end": ("cumsum", {"X": f32(1, INF)}, {"exclusive": True}, {"Out": f32(0, 1)}),
    "from the end": ("cumsum", {"X": f32(1, 2, 4)}, {"exclusive": True, "reverse": True},
        {"Out": f32(6, 4, 0)}),
    "a row of zeros": ("cos_sim", {"X": f32([0, 0], [1e-3, 0]), "Y": f32([1, 2])}, {},
        {"Out": f32([0], [0.4472136]), "XNorm": f32([1e-4], [1e-3])}),
    "the offset counts along the later dimension": ("trace", {"Input": np.arange(12.0).reshape(3, 4)},
        {"offset": -1, "dim1": 1, "dim2": 0}, {"Out": np.array([13.0])}),
    "no total without a sum": ("nll_loss", {"X": f32([1, 2], [3, 4]), "Label": np.array([0, 1])},
        {"reduction": "none"}, {"Out": f32(-1, -4), "Total_weight": f32(0)}),
    "same shapes, any axis": ("elementwise_mul", {"X": f32([1, 2], [3, 4]), "Y": f32([1, 2], [3, 4])},
        {"axis": 3}, {"Out": f32([1, 4], [9, 16])}),
    "sign of NaN": ("sign", {"X": f32(NAN, -2, 0)}, {}, {"Out": f32(0, -1, 0)}),
    "NaN gives way to Y": ("elementwise_max", {"X": f32(NAN, 1), "Y": f32(2, NAN)}, {},
        {"Out": f32(2, NAN)}),
    "NaN gives way to Y, min": ("elementwise_min", {"X": f32(NAN, 1), "Y": f32(2, NAN)}, {},
        {"Out": f32(2, NAN)}),
    "NaN stays in a maximum": ("reduce_max", {"X": f32(1, NAN, 3)}, {"dim": [0]}, {"Out": f32(NAN)}),
    "NaN stays in a minimum": ("reduce_min", {"X": f32(1, NAN, 3)}, {"dim": [0]}, {"Out": f32(NAN)}),
    "the largest of nothing": ("reduce_max", {"X": np.zeros((0, 2), "float32")}, {"dim": [0]},
        {"Out": f32(-INF, -INF)}),
    "NaN is not the largest": ("arg_max", {"X": f32(NAN, 1, 0, 5)}, {}, {"Out": np.array([3])}),
    "NaN is not the smallest": ("arg_min", {"X": f32(1, NAN, 0, 0)}, {}, {"Out": np.array([2])}),
    "NaN in a norm": ("clip_by_norm", {"X": f32(1, NAN)}, {"max_norm": 9.0}, {"Out": f32(NAN, NAN)}),
    "all dropped, infinities too": ("dropout", {"X": f32(INF, NAN, 1)},
        {"dropout_prob": 1.0, "fix_seed": True, "seed": 3}, {"Out": f32(0, 0, 0)}),
    "NaN stays in a window": ("pool2d", {"X": f32([NAN, 1, 2, 3]).reshape(1, 1, 1, 4)},
        {"ksize": [1, 2], "strides": [1, 2]}, {"Out": f32(NAN, 3).reshape(1, 1, 1, 2)}),
    "no images": ("pool2d", {"X": np.zeros((0, 2, 3, 3), "float32")},
        {"ksize": [2, 2], "pooling_type": "avg"}, {"Out": np.zeros((0, 2, 2, 2), "float32")}),
    "integers that no double holds": ("scale", {"X": np.array([2**53 + 1, 2**63 - 1])}, {},
        {"Out": np.array([2**53 + 1, 2**63 - 1])}),
    "integers that overflow": ("scale", {"X": np.array([2**31 - 1], "int32")}, {"bias": 1.0},
        {"Out": np.array([-(2**31)], "int32")}),
    "NaN comes last": ("top_k", {"X": f32([1, NAN, 3, 2])}, {"k": 3},
        {"Out": f32([3, 2, 1]), "Indices": np.array([[2, 3, 0]])}),
    "NaN is not the first of them": ("top_k", {"X": f32([NAN, 1, 3, 2])}, {"k": 1},
        {"Out": f32([3]), "Indices": np.array([[2]])}),
    "a text with a fraction": ("fill_constant", {}, {"shape": [1], "dtype": 2, "str_value": "2.5"},
        {"Out": np.array([2], "int32")}),
    "integers to integers": ("exp", {"X": np.array([1, 2, -3])}, {}, {"Out": np.array([2, 7, 0])}),
    "all elements of a window in one place": ("conv2d", {"Input": IMAGE, "Filter": FILTER},
        {"dilations": [0, 0]}, {"Output": 10 * IMAGE}),
    "windows in the other direction": ("conv2d", {"Input": IMAGE, "Filter": FILTER},
        {"dilations": [-1, -1]}, {"Output": SPREAD[None, None]}),
    "results with a margin": ("depthwise_conv2d_transpose",
        {"Input": IMAGE.repeat(2, 1), "Filter": FILTER.repeat(2, 0)}, {"paddings": [-1, -1], "groups": 2},
        {"Output": np.pad(SPREAD, 1)[None, None].repeat(2, 1)}),
    "rows that fall together": ("conv2d_transpose", {"Input": IMAGE, "Filter": FILTER}, {"dilations": [0, 1]},
        {"Output": f32([4, 14, 24, 18], [16, 44, 54, 36], [28, 74, 84, 54])[None, None]}),
    "as many matrices": ("matmul", {"X": f32([[1, 2]], [[3, 4]]), "Y": f32([[[1], [2]], [[3], [4]]])}, {},
        {"Out": f32([[5]], [[25]])}),
    "an ignored infinity": ("sigmoid_cross_entropy_with_logits", {"X": f32([INF, 0]), "Label": f32([-1, 1])},
        {"ignore_index": -1}, {"Out": f32([0, 0.6931472])}),
    "one element each": ("unstack", {"X": f32(1)}, {"num": 1}, {"Y": [np.array(1, "float32")]}),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_outputs(name):
    op, inputs, attrs, outputs = FOUND[name]
    harness.check(op, inputs, attrs, outputs, programs=name != "sums are not got by subtracting")


@pytest.mark.parametrize(
    "name, slope",
    [
        ("all elements of a window in one place", 200 * IMAGE),
        ("windows in the other direction", f32([244, 438, 428], [644, 1000, 876], [792, 1142, 936])),
        ("results with a margin", f32([244, 438, 428], [644, 1000, 876], [792, 1142, 936])),
        ("rows that fall together", f32([200, 400, 408], [656, 1000, 864], [1112, 1600, 1320])),
        ("as many matrices", f32([[10, 20]], [[150, 200]])),
    ],
)
def test_slopes_of_squares(name, slope):
    op, inputs, attrs, outputs = FOUND[name]
    ((result, value),) = outputs.items()
    found = harness.gradients(op, inputs, attrs, {result: [2 * value]})
    got = next(iter(found.values()))[0]
    np.testing.assert_allclose(got, np.broadcast_to(slope, got.shape), rtol=1e-5)


@pytest.mark.parametrize(
    "op, attrs, x, slope",
    [
        ("hard_swish", {"threshold": 2.0}, 1.0, 1.0),
        ("soft_relu", {"threshold": 1.0}, -1.4207795, 0.26894143),
        ("soft_relu", {"threshold": 1.0}, 0.9, 0.0),
        ("mish", {"threshold": 0.5}, 0.8, 0.91032116),
        ("abs", {}, NAN, 0.0),
    ],
)
def test_slopes_of_fluid(op, attrs, x, slope):
    found = harness.gradients(op, {"X": f32(x)}, attrs, {"Out": [f32(1)]})
    np.testing.assert_allclose(found["X"][0], [slope], rtol=1e-5)


@pytest.mark.parametrize("width", [2, 1])
def test_transposed_convolution_of_which_nothing_is_left(width):
    inputs = {"Input": np.ones((1, 1, 1, 1), "float32"), "Filter": np.ones((1, 1, width, width), "float32")}
    with pytest.raises(ValueError, match="nothing is left of images of size"):
        harness.infer("conv2d_transpose", inputs, {"paddings": [1, 1]})


@pytest.mark.parametrize(
    "op, attrs",
    [
        ("reshape2", {"shape": [2, 1]}),
        ("transpose2", {"axis": [0]}),
        ("dropout", {"is_test": True, "dropout_implementation": "upscale_in_train"}),
    ],
)
@pytest.mark.parametrize("engine", ["interpret", "plan"])
def test_parts_of_a_variable_that_is_overwritten_later(op, attrs, engine):
    program = Program()
    block = program.global_block()
    w = block.create_var(name="w", shape=(2,), dtype="float32", persistable=True)
    out, extra = block.create_var(name="out"), block.create_var(name="extra")
    block.append_op(op, {"X": w}, {"Out": out, "Mask" if op == "dropout" else "XShape": extra}, attrs)
    block.append_op("scale", {"X": w}, {"Out": w}, {"scale": 10.0})
    with run_by(engine):
        scope, executor = Scope(), Executor(CPUPlace())
        scope.var("w").get_tensor().set(f32(1, 2), CPUPlace())
        for step in (1, 10, 100):
            (found,) = executor.run(program, fetch_list=["out"], scope=scope)
            np.testing.assert_array_equal(found.ravel(), f32(1, 2) * step)


@pytest.mark.parametrize(
    "op, inputs, attrs, message",
    [
        ("arg_min", {"X": np.zeros((2, 0), "float32")}, {"axis": 1}, "nothing to compare along dimension 1"),
        (
            "where",
            {"Condition": np.ones((3, 2), "bool"), "X": f32(1, 2), "Y": f32(1, 2)},
            {},
            "Condition must have the shape of X",
        ),
        ("tanh", {"X": np.array([1, 2])}, {}, "X must be of a float type, got VarType.INT64"),
        ("fill_constant", {}, {"shape": [1], "dtype": 2, "str_value": "inf"}, "cannot hold the value inf"),
    ],
)
def test_what_cannot_be(op, inputs, attrs, message):
    for function in (harness.infer, harness.run_kernel):
        try:
            function(op, inputs, attrs)
        except ValueError as error:
            assert message in str(error)
            return
    raise AssertionError(f"{op} ran")
