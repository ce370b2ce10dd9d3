"""Models of opset 7 to 12, whose nodes say by attributes, or mean, what later ones do not; own functions."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import fluidlite as fluid
from fluidlite.base.errors import FormatError
from fluidlite.onnx import load

from .test_load import compared, node, saved

pytestmark = pytest.mark.usefixtures("alone")
RANDOM = np.random.default_rng(11)
LINES, PICTURES = ["n", 3, 4], ["n", 4, 6, 6]


def drawn(shape, kind="float32", count=(2, 5)):
    """Batches of two sizes."""
    made = []
    for n in count:
        whole = [n if size == "n" else size for size in shape]
        numbers = RANDOM.uniform(-2, 2, whole) if kind == "float32" else RANDOM.integers(0, 255, whole)
        made.append(numbers.astype(kind))
    return made


@pytest.mark.parametrize("opset", [7, 9, 11, 12, 13])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax", "Hardmax"])
def test_softmax_of_several_axes_together(kind, axis, opset, tmp_path):
    attrs = {} if axis is None else {"axis": axis}
    path = saved(tmp_path / "model.onnx", [node(kind, "x", **attrs)], LINES, opset=opset)
    compared(path, drawn(LINES))


@pytest.mark.parametrize(
    ("nodes", "shape", "last"),
    [
        ([node("Clip", "x", min=-0.3, max=0.2)], LINES, 10),
        ([node("Slice", "x", starts=[0, -2], ends=[9999, -1], axes=[0, 2])], LINES, 9),
        ([node("Slice", "x", starts=[0, 1], ends=[9999, 3])], LINES, 9),
        ([node("Pad", "x", pads=[0, 1, 0, 0, 0, 2], value=0.5)], LINES, 10),
        ([node("Pad", "x", pads=[0, 0, 1, 2, 0, 0, 2, 1], mode="reflect")], PICTURES, 10),
        ([node("TopK", "x", "y z", k=3)], LINES, 9),
        ([node("Split", "x", "y z", axis=2, split=[1, 3])], LINES, 12),
        ([node("Unsqueeze", "x", "h", axes=[1, 4]), node("Squeeze", "h", axes=[4])], LINES, 12),
        ([node("ReduceSum", "x", axes=[1], keepdims=0)], LINES, 12),
        ([node("Dropout", "x", "h", ratio=0.3), node("Upsample", "h", mode="nearest", scales=[1.0, 1.0, 2.0, 3.0])],
         PICTURES, 8),
        ([node("Upsample", "x", mode="linear", scales=[1.0, 1.0, 1.5, 2.5])], PICTURES, 8),
    ],
)  # fmt: skip
def test_attributes_that_are_inputs_later(nodes, shape, last, tmp_path):
    outputs = ("y", "z") if "z" in nodes[-1].output else ("y",)
    for opset in range(7, last + 1):
        compared(saved(tmp_path / "model.onnx", nodes, shape, opset=opset, outputs=outputs), drawn(shape))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(
    ("kind", "opset", "scales"),
    [
        *[("Upsample", 9, scales) for scales in ((2, 2), (1.5, 2.5), (3, 3))],
        *[("Resize", 10, scales) for scales in ((2, 2), (1.5, 2.5), (0.5, 0.5), (0.6, 0.7))],
    ],
)
def test_resizing_before_opset_11(kind, opset, scales, mode, tmp_path):
    held = {"s": np.array([1, 1, *scales], "float32")}
    path = saved(tmp_path / "model.onnx", [node(kind, "x s", mode=mode)], PICTURES, held, opset=opset)
    compared(path, drawn(PICTURES))


@pytest.mark.parametrize("opset", [9, 10])
def test_scatter(opset, tmp_path):
    held = {"k": np.array([[[1, 0, 2, 1]]] * 2), "u": RANDOM.uniform(-1, 1, (2, 1, 4)).astype("float32")}
    path = saved(tmp_path / "model.onnx", [node("Scatter", "x k u", axis=1)], [2, 3, 4], held, opset=opset)
    compared(path, drawn([2, 3, 4]))


@pytest.mark.parametrize("opset", [9, 13, 17])
@pytest.mark.parametrize("axes", [None, [1, 3]])
def test_mean_and_variance(axes, opset, tmp_path):
    made = node("MeanVarianceNormalization", "x", **({} if axes is None else {"axes": axes}))
    path = saved(tmp_path / "model.onnx", [made], PICTURES, opset=opset)
    compared(path, drawn(PICTURES))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
def test_the_last_of_equal_ones(kind, axis, tmp_path):
    nodes = [node("Round", "x", "h"), node(kind, "h", axis=axis, select_last_index=1, keepdims=0)]
    compared(saved(tmp_path / "model.onnx", nodes, LINES), drawn(LINES))


BYTES = {
    "w": RANDOM.integers(-64, 64, (3, 4, 3, 3)).astype("int8"),
    "m": RANDOM.integers(-64, 64, (6, 3)).astype("int8"), "z": np.uint8(7), "v": np.int8(3), "xs": np.float32(0.02),
    "xz": np.uint8(120), "ws": np.float32([0.01, 0.02, 0.03]),
    "wz": np.zeros(3, "int8"), "ys": np.float32(0.05), "yz": np.uint8(100),
    "b": RANDOM.integers(-500, 500, 3).astype("int32"),
}  # fmt: skip


@pytest.mark.parametrize("opset", [10, 17])
@pytest.mark.parametrize(
    "made",
    [
        node("ConvInteger", "x w z", pads=[1, 1, 1, 1]),
        node("QLinearConv", "x xs xz w ws wz ys yz b", strides=[2, 2]),
        node("MatMulInteger", "x m z v"),
        node("QLinearMatMul", "x xs xz m ws wz ys yz"),
    ],
    ids=lambda made: made.op_type,
)
def test_products_of_bytes(made, opset, tmp_path):
    """Weights have seven bits: without VNNI, onnxruntime adds pairs of products in 16 bits, which more exceed."""
    held = {name: array for name, array in BYTES.items() if name in made.input}
    path = saved(tmp_path / "model.onnx", [made], PICTURES, held, TensorProto.UINT8, opset=opset)
    compared(path, drawn(PICTURES, "uint8"))


@pytest.mark.parametrize("kind", ["MatMulInteger", "ConvInteger"])
def test_products_of_the_largest_bytes_are_exact(kind, tmp_path):
    x = np.full((2, 3, 4, 6), 255, "uint8")
    x[1] = RANDOM.integers(0, 256, x.shape[1:])
    shape = (6, 5) if kind == "MatMulInteger" else (5, 3, 1, 1)
    w = RANDOM.integers(-128, 128, shape).astype("int8")
    w[0], w[1] = 127, -128
    path = saved(tmp_path / "model.onnx", [node(kind, "x w")], ["n", 3, 4, 6], {"w": w}, TensorProto.UINT8)
    program, _, fetches = load(path)
    (got,) = fluid.Executor(fluid.CPUPlace()).run(program, feed={"x": x}, fetch_list=fetches)
    wide, weights = x.astype("int64"), w.astype("int64")
    if kind == "MatMulInteger":
        want = wide @ weights
    else:
        want = np.einsum("nchw,oc->nohw", wide, weights[:, :, 0, 0])
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, want)


def function(name, nodes):
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, ["a"], ["b"], nodes, imports)


def call(name, inputs, outputs="b"):
    return helper.make_node(name, inputs.split(), outputs.split(), domain="own")


def test_functions_of_a_model(tmp_path):
    twice = function("Twice", [node("Add", "a a", "b")])
    functions = [twice, function("Wave", [call("Twice", "a", "h"), node("Sin", "h", "b")])]
    nodes = [call("Wave", "x", "h"), call("Twice", "h", "y")]
    compared(saved(tmp_path / "model.onnx", nodes, LINES, functions=functions), drawn(LINES))


def test_functions_without_end(tmp_path):
    functions = [function("There", [call("Back", "a")]), function("Back", [call("There", "a")])]
    path = saved(tmp_path / "model.onnx", [node("Sin", "x")], LINES)
    model = onnx.load(path)
    model.graph.node[0].CopyFrom(call("There", "x", "y"))
    model.functions.extend(functions)
    model.opset_import.append(helper.make_opsetid("own", 1))
    path.write_bytes(model.SerializeToString())
    with pytest.raises(FormatError, match="'There' calls itself"):
        load(path)
    del model.functions[:]
    more = [function(f"F{k}", [call(f"F{k + 1}", "a", "h"), call(f"F{k + 1}", "h")]) for k in range(40)]
    model.functions.extend([*more, function("F40", [node("Sin", "a", "b")])])
    model.graph.node[0].op_type = "F0"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(FormatError, match="more than 1048576 nodes"):
        load(path)


def test_an_output_without_shape(tmp_path):
    """As some exporters leave it."""
    path = saved(tmp_path / "model.onnx", [node("Sin", "x")], LINES)
    model = onnx.load(path)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    path.write_bytes(model.SerializeToString())
    compared(path, drawn(LINES))
