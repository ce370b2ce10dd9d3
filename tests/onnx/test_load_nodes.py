"""Single nodes: loaded programs compute the results of onnxruntime."""

import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import fluidlite as fluid
from fluidlite.base.errors import EnforceNotMet, FormatError, NotSupportedError
from fluidlite.onnx import load
from tests.onnx.test_export import PLACE

pytestmark = pytest.mark.usefixtures("alone")
RANDOM = np.random.default_rng(3)
CASES = {}
BIG = 2**53


def numbers(*shape):
    return RANDOM.uniform(-1, 1, shape).astype("float32")


def whole(*items):
    return np.array(items, "int64")


def node(kind, inputs, outputs="y", **attrs):
    """Of names with spaces between; `-` is an input that is left out."""
    given = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(kind, given, outputs.split(), **attrs)


def case(name, nodes, constants=None, opset=17, given=None, sizes=(2, 5), **inputs):
    """`inputs`: shapes, the first number of which is open, or (shape, type). `given` makes integers of a shape."""
    assert name not in CASES
    nodes = [nodes] if isinstance(nodes, onnx.NodeProto) else nodes
    CASES[name] = (
        nodes,
        constants or {},
        opset,
        given or (lambda shape: RANDOM.integers(0, 2, shape)),
        sizes,
        inputs,
    )


def written(path, nodes, constants, opset, inputs):
    declared = []
    for name, shape in inputs.items():
        kind = TensorProto.FLOAT if isinstance(shape, list) else shape[1]
        shape = shape if isinstance(shape, list) else shape[0]
        declared.append(helper.make_tensor_value_info(name, kind, ["n", *shape[1:]]))
    read = {name for each in nodes for name in each.input}
    made = [onnx.ValueInfoProto(name=name) for name in nodes[-1].output if name]
    made += [
        onnx.ValueInfoProto(name=name) for each in nodes[:-1] for name in each.output if name not in read
    ]
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "made", declared, made, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    path.write_bytes(onnx.shape_inference.infer_shapes(model, data_prop=True).SerializeToString())
    return path


INT64 = TensorProto.INT64
ROWS, INTS, PICTURE = [2, 6], ([2, 6], INT64), [2, 4, 6, 6]
ZERO = {"z": np.float32(0)}

for kind in (
    "Asinh", "Atanh", "Celu", "Round", "IsNaN", "IsInf", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare",
    "LpNormalization", "Shrink", "Size", "Softsign", "Sinh", "Cosh", "Tan", "Sign", "Erf", "LogSoftmax", "NonZero",
):  # fmt: skip
    case(kind, node(kind, "x"), x=ROWS)
for kind in ("Abs", "Neg", "Sign"):
    case(
        f"{kind} of integers",
        node(kind, "x"),
        x=INTS,
        given=lambda shape: RANDOM.integers(-9, 9, shape) + 2**55 + 1,
    )

case(
    "Acosh",
    [node("Exp", "x", "h"), node("Add", "h one", "k"), node("Acosh", "k")],
    {"one": np.float32(1)},
    x=ROWS,
)
case("ReduceLogSum", [node("Exp", "x", "h"), node("ReduceLogSum", "h", axes=[1], keepdims=0)], x=ROWS)
case(
    "Celu, Shrink with attributes",
    [node("Celu", "x", "h", alpha=2.0), node("Shrink", "h", lambd=0.2, bias=0.1)],
    x=ROWS,
)
case(
    "special numbers",
    [
        node("Div", "x z", "h"),
        node("IsInf", "h", "q", detect_negative=0),
        node("IsNaN", "h", "r"),
        node("Or", "q r"),
    ],
    {"z": np.float32([0, 1, 0, 1, 0, 1])},
    x=ROWS,
)
case(
    "halves",
    [node("Mul", "x c", "h"), node("Round", "h", "r"), node("Div", "r two", "q"), node("Round", "q")],
    {"c": np.float32(9), "two": np.float32(2)},
    x=ROWS,
)
for kind in ("LogSoftmax", "Softmax", "ReduceLogSumExp"):
    case(
        f"{kind} of large numbers",
        [node("Mul", "x c", "h"), node(kind, "h", "y", **({} if "Soft" in kind else {"axes": [1]}))],
        {"c": np.float32(300)},
        x=ROWS,
    )
case(
    "Equal of truths",
    [node("Greater", "x z", "a"), node("Less", "x d", "b"), node("Equal", "a b")],
    {**ZERO, "d": np.float32(0.5)},
    x=ROWS,
)
case("Mean", node("Mean", "x s x"), {"s": numbers(6)}, x=ROWS)
case("Max of NaN", node("Max", "x c"), {"c": np.float32(np.nan)}, x=ROWS)
case(
    "Where of integers",
    [node("Greater", "x z", "c"), node("Where", "c a b")],
    {**ZERO, "a": np.int64(2**62 + 1), "b": whole(7)},
    x=ROWS,
)
case(
    "Where of infinities",
    [node("Greater", "x z", "c"), node("Where", "c b t")],
    {**ZERO, "b": np.float32(-np.inf), "t": np.float32([[np.nan]])},
    x=ROWS,
)
case(
    "Where with a smaller condition",
    [node("Greater", "t z", "c"), node("Where", "c x b")],
    {**ZERO, "b": np.float32(-np.inf)},
    x=[2, 3, 6],
    t=[2, 1, 6],
)
for divisor in (0.3, -0.3):
    case(f"Mod by {divisor}", node("Mod", "x c", fmod=1), {"c": np.float32(divisor)}, x=ROWS)
for divisor in (4, -4):
    case(
        f"integers by {divisor}",
        [node("Mod", "x c", "h"), node("Div", "x c", "k"), node("Add", "h k")],
        {"c": whole(divisor)},
        x=INTS,
        given=lambda shape: RANDOM.integers(-9, 9, shape),
    )
case("Pow by an integer", node("Pow", "x c"), {"c": whole(2)}, x=ROWS)
case(
    "Pow of integers",
    node("Pow", "x c"),
    {"c": np.float32(2)},
    x=INTS,
    given=lambda shape: RANDOM.integers(-9, 9, shape),
)
case(
    "Clip by what is computed",
    [node("ReduceMax", "x", "m", keepdims=0), node("Mul", "m h", "k"), node("Clip", "x - k")],
    {"h": np.float32(0.5)},
    x=ROWS,
)
case("CastLike", node("CastLike", "x s"), {"s": np.int64(1)}, x=ROWS)
for kind, constant in (("Sub", 2), ("Mul", 3), ("Equal", BIG)):
    case(
        f"{kind} of large integers",
        node(kind, "x c"),
        {"c": whole(constant)},
        x=INTS,
        given=lambda shape: RANDOM.integers(-1, 2, shape) + BIG,
    )
case(
    "sums of large integers",
    [node("ReduceSum", "x a", "s"), node("CumSum", "s b")],
    {"a": whole(1), "b": np.int64(1)},
    x=INTS,
    given=lambda shape: RANDOM.integers(-1, 2, shape) + BIG,
)
case("ReduceSum of no axes", node("ReduceSum", "x", noop_with_empty_axes=1), x=ROWS)
case("MatMul of stacks", node("MatMul", "x w"), {"w": numbers(3, 5, 2)}, x=[2, 3, 4, 5])
case("MatMul by stacks", node("MatMul", "w x"), {"w": numbers(4, 1, 5, 5)}, x=[2, 5, 3])

case(
    "GatherElements",
    node("GatherElements", "x k", axis=1),
    {"k": whole(1, -6, 3).reshape(1, 3)},
    x=[1, 6],
    sizes=(1,),
)
case("GatherElements of rows", node("GatherElements", "x k", axis=0), x=[2, 6, 3], k=([2, 4, 2], INT64))
case("ScatterND", node("ScatterND", "x k u"), {"k": np.array([[0, 1], [1, -3]]), "u": numbers(2)}, x=ROWS)
case(
    "ScatterND of rows from the end",
    node("ScatterND", "x k u"),
    {"k": np.array([[-1], [0]]), "u": numbers(2, 6)},
    x=ROWS,
)
case(
    "ScatterND of integers",
    node("ScatterND", "x k u"),
    {"k": np.array([[0, 1], [1, 3]]), "u": whole(100, 200)},
    x=INTS,
)
case(
    "ScatterND into infinities",
    [node("Div", "x z", "h"), node("ScatterND", "h k u")],
    {**ZERO, "k": np.array([[1]]), "u": numbers(1, 6)},
    x=ROWS,
)
case(
    "ScatterND that adds",
    node("ScatterND", "x k u", reduction="add"),
    {"k": np.array([[0], [0]]), "u": numbers(2, 6)},
    x=ROWS,
)
for how in ("none", "add"):
    case(
        f"ScatterElements {how}",
        node("ScatterElements", "x k u", axis=1, reduction=how),
        x=ROWS,
        u=[2, 2],
        k=([2, 2], INT64),
        given=lambda shape: np.array([[1, 4]] * shape[0]),
    )
case("Compress", node("Compress", "x c", axis=1), {"c": np.array([1, 0, 1, 1], bool)}, x=ROWS)
case(
    "Compress all",
    [node("Greater", "x z", "g"), node("Reshape", "g m", "c"), node("Compress", "x c")],
    {**ZERO, "m": whole(-1)},
    x=ROWS,
)
case(
    "Gather of places along 1", node("Gather", "x k", axis=1), {"k": np.array([[0, -1], [2, 1]])}, x=[2, 6, 3]
)
case(
    "Gather of places along 2",
    node("Gather", "x k", axis=2),
    {"k": np.array([[0, -1], [2, 1]])},
    x=[2, 4, 6, 3],
)
case("Gather by computed places", node("Gather", "w x", axis=0), {"w": numbers(4, 5, 2)}, x=([2, 3], INT64))
case("Gather from the end", node("Gather", "x k", axis=0), {"k": whole(-1, 0)}, x=ROWS)
case("Gather the last but one", node("Gather", "x k", axis=1), {"k": np.int64(-2)}, x=[2, 6, 3])
case("GatherND", node("GatherND", "x k"), {"k": np.array([[0, -1], [-1, 2]])}, x=[2, 6, 3])
case("GatherND of each", node("GatherND", "x k", batch_dims=1), x=[2, 6, 3], k=([2, 2, 1], INT64))
case("TopK of the smallest", node("TopK", "x k", "y z", largest=0, axis=-2), {"k": whole(2)}, x=[2, 6, 3])
for largest in (0, 1):
    case(
        f"TopK of equal ones {largest}",
        node("TopK", "x k", "y z", largest=largest),
        {"k": whole(7)},
        x=([2, 40], INT64),
        given=lambda shape: RANDOM.integers(0, 3, shape),
    )
case("TopK of integers", node("TopK", "x k", "y z"), {"k": whole(3)}, x=INTS)
case("TopK of all", [node("Shape", "x", "s", end=1), node("TopK", "x s", "y z", axis=0)], x=[2, 3])
case(
    "ReverseSequence",
    node("ReverseSequence", "x l", time_axis=1, batch_axis=0),
    x=[2, 6, 3],
    l=([2], INT64),
    given=lambda shape: RANDOM.integers(1, 6, shape),
)
case(
    "OneHot with values",
    node("OneHot", "x d v", axis=1),
    {"d": whole(4), "v": np.float32([-1, 5])},
    x=([2, 3], INT64),
)
case(
    "OneHot from the end",
    node("OneHot", "x d v"),
    {"d": whole(4), "v": whole(0, 1)},
    x=([2, 3], INT64),
    given=lambda shape: RANDOM.integers(-6, 6, shape),
)
case(
    "Trilu",
    [node("Trilu", "x k", "h", upper=0), node("Trilu", "h", upper=1)],
    {"k": np.int64(1)},
    x=[2, 4, 5],
)
case("Trilu of truths", [node("Less", "x z", "h"), node("Trilu", "h")], ZERO, x=[2, 4, 5])
case(
    "Tile as often as there are rows",
    [node("Shape", "x", "s", end=1), node("Concat", "o s", "r", axis=0), node("Tile", "w r")],
    {"w": numbers(2, 3), "o": whole(1)},
    x=ROWS,
)
for mode in ("reflect", "edge", "wrap"):
    case(f"Pad {mode}", node("Pad", "x p", mode=mode), {"p": whole(0, 1, 2, 0, 0, 1)}, opset=19, x=[2, 4, 6])
case("Pad less", node("Pad", "x p"), {"p": whole(0, -1, 0, 2)}, x=ROWS)

for rule in ("bij,jk->bik", "bij,jk", "bij,jk->kib"):
    case(f"Einsum {rule}", node("Einsum", "x w", equation=rule), {"w": numbers(4, 5)}, x=[2, 3, 4])
case(
    "Einsum of heads",
    node("Einsum", "x k", equation="b i h d, b j h d -> b h i j"),
    x=[2, 3, 4, 5],
    k=[2, 6, 4, 5],
)
case(
    "Einsum of several axes",
    node("Einsum", "x w", equation="abc,cde->abde"),
    {"w": numbers(4, 5, 2)},
    x=[2, 3, 4],
)
case("Einsum of all", node("Einsum", "x x", equation="ij,ij->"), x=ROWS)
case("Einsum of one", node("Einsum", "x", equation="ijk->kj"), x=[2, 3, 4])
case("Einsum of sums", node("Einsum", "x w", equation="bi,cj->bc"), {"w": numbers(4, 5)}, x=[2, 3])

case(
    "SpaceToDepth and back",
    [
        node("SpaceToDepth", "x", "h", blocksize=3),
        node("Relu", "h", "k"),
        node("DepthToSpace", "k", blocksize=3),
    ],
    x=PICTURE,
)
case("DepthToSpace", node("DepthToSpace", "x", blocksize=2), x=PICTURE)
case("SpaceToDepth", node("SpaceToDepth", "x", blocksize=2), x=PICTURE)
for corners in (0, 1):
    case(
        f"GridSample {corners}",
        [node("Mul", "g two", "h"), node("GridSample", "x h", align_corners=corners)],
        {"two": np.float32(2)},
        x=[2, 3, 5, 6],
        g=[2, 4, 4, 2],
    )
for mode, nearest in (
    ("nearest", "round_prefer_floor"),
    ("nearest", "round_prefer_ceil"),
    ("nearest", "floor"),
    ("nearest", "ceil"),
    ("linear", "floor"),
    ("cubic", "floor"),
):
    for how in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
        for scales in ((2, 2), (1.3, 0.7)):
            case(
                f"Resize {mode} {nearest} {how} {scales}",
                node("Resize", "x - s", mode=mode, coordinate_transformation_mode=how, nearest_mode=nearest),
                {"s": np.float32([1, 1, *scales])},
                x=[2, 2, 5, 7],
            )
case("Resize lines", node("Resize", "x - s", mode="linear"), {"s": np.float32([1, 1, 2])}, x=[2, 4, 6])
case(
    "Resize volumes",
    node("Resize", "x - s", mode="linear"),
    {"s": np.float32([1, 1, 2, 2, 2])},
    x=[2, 2, 3, 4, 4],
)
case(
    "Resize axes",
    node("Resize", "x - - s", mode="linear", axes=[2, 3]),
    {"s": whole(9, 7)},
    opset=18,
    x=PICTURE,
)

case(
    "Conv of lines",
    node("Conv", "x w b", strides=[2], pads=[1, 2], dilations=[2]),
    {"w": numbers(3, 4, 3), "b": numbers(3)},
    x=[2, 4, 9],
)
case("Conv of groups of lines", node("Conv", "x w", group=2), {"w": numbers(6, 2, 3)}, x=[2, 4, 9])
for side in ("SAME_UPPER", "SAME_LOWER"):
    case(
        f"Conv {side}",
        node("Conv", "x w", strides=[2, 1], auto_pad=side),
        {"w": numbers(3, 4, 3, 2)},
        x=[2, 4, 7, 8],
    )
    case(
        f"Conv of lines {side}",
        node("Conv", "x w", strides=[2], auto_pad=side),
        {"w": numbers(3, 4, 4)},
        x=[2, 4, 7],
    )
    case(
        f"ConvTranspose {side}",
        node("ConvTranspose", "x w", strides=[2, 2], auto_pad=side),
        {"w": numbers(4, 3, 3, 3)},
        x=PICTURE,
    )
    case(
        f"ConvTranspose to a shape {side}",
        node("ConvTranspose", "x w", strides=[2, 2], auto_pad=side, output_shape=[11, 12]),
        {"w": numbers(4, 3, 3, 3)},
        x=PICTURE,
    )
    case(f"MaxPool {side}", node("MaxPool", "x", kernel_shape=[2, 3], auto_pad=side), x=PICTURE)
case(
    "ConvTranspose with more",
    node("ConvTranspose", "x w", strides=[2, 2], pads=[1, 1, 1, 0], output_padding=[1, 1]),
    {"w": numbers(4, 3, 3, 3)},
    x=PICTURE,
)
case(
    "ConvTranspose of lines",
    node("ConvTranspose", "x w b", strides=[3], output_padding=[2]),
    {"w": numbers(4, 3, 3), "b": numbers(3)},
    x=[2, 4, 6],
)
case(
    "ConvTranspose of volumes",
    node("ConvTranspose", "x w", strides=[2, 2, 2]),
    {"w": numbers(4, 3, 2, 2, 2)},
    x=[2, 4, 3, 3, 3],
)
for kind in ("MaxPool", "AveragePool"):
    case(f"{kind} of lines", node(kind, "x", kernel_shape=[3], strides=[2], pads=[1, 1]), x=[2, 4, 9])
    case(f"Global{kind} of lines", node(f"Global{kind}", "x"), x=[2, 4, 9])
    for window, stride, pad, size in (
        (2, 2, 1, 5),
        (2, 2, 1, 6),
        (3, 2, 1, 6),
        (2, 3, 1, 7),
        (3, 3, 0, 8),
        (1, 2, 0, 6),
    ):
        for counted in (0, 1):
            attrs = {"count_include_pad": counted} if kind[0] == "A" else {}
            case(
                f"{kind} ceil {window} {stride} {pad} {size} {counted}",
                node(
                    kind,
                    "x",
                    kernel_shape=[window] * 2,
                    strides=[stride] * 2,
                    pads=[pad] * 4,
                    ceil_mode=1,
                    **attrs,
                ),
                opset=19,
                x=[2, 2, size, size],
            )

case(
    "bytes and back",
    [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z")],
    {"s": np.float32(0.02), "z": np.uint8(128)},
    x=ROWS,
)
case(
    "bytes of each column",
    [node("QuantizeLinear", "x s z", "q", axis=1), node("DequantizeLinear", "q s z", axis=1)],
    {"s": RANDOM.uniform(0.002, 0.02, 6).astype("float32"), "z": np.zeros(6, "int8")},
    x=ROWS,
)
case(
    "weights of bytes",
    [node("DequantizeLinear", "w s z", "h", axis=1), node("MatMul", "x h")],
    {
        "w": RANDOM.integers(-128, 127, (6, 3)).astype("int8"),
        "s": RANDOM.uniform(0.01, 0.02, 3).astype("float32"),
        "z": np.zeros(3, "int8"),
    },
    x=ROWS,
)
case(
    "products of bytes",
    [
        node("DynamicQuantizeLinear", "x", "q s z"),
        node("MatMulInteger", "q w z", "m"),
        node("Cast", "m", "c", to=1),
        node("Mul", "c s"),
    ],
    {
        "w": RANDOM.integers(-64, 64, (6, 3)).astype("int8")
    },  # onnxruntime without VNNI is exact for seven bits
    x=ROWS,
)

NMS = {"m": whole(10), "i": np.float32([0.4]), "t": np.float32([0.1])}
for name, attrs, constants in (
    ("", {}, {}),
    (" of centers", {"center_point_box": 1}, {}),
    (" of one", {}, {"m": whole(1)}),
    (" of none", {}, {"t": np.float32([2])}),
):
    case(
        f"NonMaxSuppression{name}",
        [node("Abs", "b", "c"), node("NonMaxSuppression", "c s m i t", "y", **attrs)],
        {**NMS, **constants},
        b=[2, 7, 4],
        s=[2, 3, 7],
    )
case(
    "RoiAlign",
    node(
        "RoiAlign",
        "x r k",
        output_height=3,
        output_width=2,
        spatial_scale=0.5,
        coordinate_transformation_mode="output_half_pixel",
    ),
    {"r": np.float32([[0, 0, 4, 4], [1, 1, 5, 6], [2, 0, 6, 6]]), "k": whole(1, 0, 1)},
    x=PICTURE,
)


def plain(path):
    """onnxruntime, every node by itself."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


for label, attrs in {
    "dilations": {"dilations": [2, 1]},
    "dilations of even windows": {"dilations": [2, 2], "pads": [1, 1, 0, 1], "strides": [2, 1]},
    "dilations and ceil_mode": {"dilations": [2, 2], "ceil_mode": 1, "strides": [2, 2]},
    "SAME_LOWER": {"strides": [2, 2], "auto_pad": "SAME_LOWER"},
}.items():
    case(f"MaxPool, {label}", node("MaxPool", "x", kernel_shape=[2, 2], **attrs), x=PICTURE)
    case(f"places, {label}", node("MaxPool", "x", "y k", kernel_shape=[2, 2], **attrs), x=PICTURE)
    if "ceil_mode" not in attrs:  # onnxruntime's rounds down there
        case(f"LpPool, {label}", node("LpPool", "x", kernel_shape=[2, 2], p=3, **attrs), opset=18, x=PICTURE)
case("places", node("MaxPool", "x", "y k", kernel_shape=[3, 2], strides=[2, 1]), x=PICTURE)
case("places by columns", node("MaxPool", "x", "y k", kernel_shape=[2, 2], storage_order=1), x=PICTURE)
case("places on a line", node("MaxPool", "x", "y k", kernel_shape=[2], dilations=[2]), x=[2, 3, 9])
case("places in a volume", node("MaxPool", "x", "y k", kernel_shape=[2, 1, 2]), x=[2, 3, 3, 3, 4])
case(
    "places of equal ones",
    [node("Sign", "x", "s"), node("MaxPool", "s", "y k", kernel_shape=[3, 3])],
    x=PICTURE,
)
case("LpPool", node("LpPool", "x", kernel_shape=[2, 3], strides=[2, 2], pads=[0, 1, 1, 1]), x=PICTURE)
case("sums of magnitudes", node("LpPool", "x", kernel_shape=[2, 2], p=1), x=PICTURE)
case("GlobalLpPool", node("GlobalLpPool", "x", p=3), x=PICTURE)
for rows in (1, 2, 3, 4):
    case(f"Det of {rows} rows", node("Det", "x"), x=[2, rows, rows])
case("Det of several", node("Det", "x"), x=[2, 3, 2, 2])
for rule in (0, 1):
    case(f"Unique, sorted={rule}", node("Unique", "x", "y", sorted=rule), x=INTS)
    whole_of = node("Unique", "x", "y first inverse count", sorted=rule)
    case(
        f"Unique and places, sorted={rule}",
        whole_of,
        x=INTS,
        given=lambda shape: RANDOM.integers(-3, 3, shape),
    )
case("Unique of floats", [node("Round", "x", "r"), node("Unique", "r", "y first inverse count")], x=ROWS)
for mode, outside, corners in itertools.product(("bilinear", "nearest"), ("zeros", "border"), (0, 1)):
    grid = RANDOM.uniform(-1.4, 1.4, (5, 4, 3, 2)).astype("float32")
    attrs = {"mode": mode, "padding_mode": outside, "align_corners": corners}
    case(f"GridSample, {attrs}", node("GridSample", "x g", **attrs), {"g": grid}, sizes=(5,), x=PICTURE)
case("Swish", node("Swish", "x", alpha=1.5), opset=24, x=ROWS)
case("RMSNormalization", node("RMSNormalization", "x w"), {"w": numbers(6)}, opset=23, x=ROWS)
for opset in (23, 24, 25, 26):
    nodes = [
        node("Conv", "x w", "c"),
        node("Relu", "c", "r"),
        node("Flatten", "r", "f"),
        node("Softmax", "f"),
    ]
    case(f"opset {opset}", nodes, {"w": numbers(3, 4, 3, 3)}, opset=opset, x=PICTURE)

LARGE = {"given": lambda shape: RANDOM.integers(-(2**63), 2**63, shape)}
MASKS = np.array([-1, 0, 1, -(2**63), 2**63 - 1, 0x0F0F], "int64")
for kind in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
    case(kind, node(kind, "x m"), {"m": MASKS}, opset=18, x=INTS, **LARGE)
    case(f"{kind} of rows", node(kind, "m x"), {"m": MASKS[:, None, None]}, opset=18, x=INTS, **LARGE)
    for wide in (TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32):
        nodes = [node("Cast", "x", "a", to=wide), node("Cast", "k", "b", to=wide), node(kind, "a b")]
        given = (
            (lambda shape: RANDOM.integers(0, 256, shape))
            if wide == 2
            else (lambda shape: RANDOM.integers(-128, 128, shape))
        )
        case(f"{kind} of type {wide}", nodes, opset=18, x=INTS, k=INTS, given=given)
case("BitwiseNot", node("BitwiseNot", "x"), opset=18, x=INTS, **LARGE)
case("BitwiseNot of bytes", [node("Cast", "x", "a", to=2), node("BitwiseNot", "a")], opset=18, x=INTS)
for direction in ("LEFT", "RIGHT"):
    nodes = [
        node("Cast", "x", "a", to=2),
        node("Cast", "k", "b", to=2),
        node("BitShift", "a b", direction=direction),
    ]
    case(
        f"BitShift {direction}",
        nodes,
        x=INTS,
        k=INTS,
        given=lambda shape: RANDOM.integers(0, 8, shape) * 31 % 8,
    )
    case(f"BitShift {direction} of all", [nodes[0], node("BitShift", "a b", direction=direction)], {"b": np.uint8([3])},
         x=INTS, given=lambda shape: RANDOM.integers(0, 256, shape))  # fmt: skip

PLACES = np.array([[[0, 1]], [[1, -3]], [[0, 1]], [[0, 1]], [[1, 3]]])
for how in ("max", "min", "mul"):
    case(
        f"ScatterND {how}",
        node("ScatterND", "x k u", reduction=how),
        {"k": PLACES, "u": numbers(5, 1)},
        opset=18,
        x=ROWS,
    )
    case(
        f"ScatterND {how} of rows",
        node("ScatterND", "x k u", reduction=how),
        {"k": np.array([[0], [-1], [0], [0]]), "u": numbers(4, 3, 2)},
        opset=18,
        x=[2, 3, 2],
    )
    case(
        f"ScatterElements {how}",
        node("ScatterElements", "x k u", axis=1, reduction=how),
        {"k": np.array([[0, -1, 0, 2, 0], [1, 1, 1, 1, 1]]), "u": RANDOM.integers(-9, 9, (2, 5))},
        opset=18,
        x=INTS,
        given=lambda shape: RANDOM.integers(-9, 9, shape),
    )
for how in ("max", "min"):
    case(
        f"ScatterElements {how} of as many as come",
        node("ScatterElements", "w k u", axis=0, reduction=how),
        {"w": numbers(4, 3)},
        opset=18,
        k=([6, 3], INT64),
        u=[6, 3],
        given=lambda shape: RANDOM.integers(0, 4, shape),
    )

for outside, corners in itertools.product(("zeros", "border", "reflection"), (0, 1)):
    attrs = {"padding_mode": outside, "align_corners": corners}
    grid = RANDOM.uniform(-1.4, 1.4, (5, 4, 3, 2)).astype("float32")
    case(
        f"GridSample, cubic, {attrs}",
        node("GridSample", "x g", mode="cubic", **attrs),
        {"g": grid},
        opset=20,
        sizes=(5,),
        x=PICTURE,
    )
    volume = RANDOM.uniform(-1.4, 1.4, (5, 2, 4, 3, 3)).astype("float32")
    for mode in ("linear", "nearest"):
        case(
            f"GridSample of volumes, {mode}, {attrs}",
            node("GridSample", "x g", mode=mode, **attrs),
            {"g": volume},
            opset=20,
            sizes=(5,),
            x=[2, 2, 4, 3, 5],
        )
        if outside == "reflection":
            case(
                f"GridSample, {mode}, {attrs}",
                node("GridSample", "x g", mode=mode, **attrs),
                {"g": grid},
                opset=20,
                sizes=(5,),
                x=PICTURE,
            )
case("GridSample of a line", node("GridSample", "x g"), x=[2, 3, 1, 6], g=[2, 4, 4, 2])

for masked, biased in ((0, 0), (1, 1)):
    case(
        f"DeformConv {masked} {biased}",
        node("DeformConv", "x w o" + (" b m" if masked else ""), strides=[2, 1], pads=[1, 1, 1, 1], dilations=[1, 2],
             offset_group=2, group=2),
        {"w": numbers(6, 2, 3, 2), "b": numbers(6)} if masked else {"w": numbers(6, 2, 3, 2)},
        opset=19,
        x=PICTURE,
        o=[2, 24, 3, 6],
        **({"m": [2, 12, 3, 6]} if masked else {}),
    )  # fmt: skip
for window, attrs, length in (
    ([2, 3], {}, 16),
    ([2, 2], {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 0, 0, 2]}, 3 * 6),
    ([1, 5], {"pads": [0, 2, 0, 2]}, 5 * 6),
):
    case(
        f"Col2Im {window} {attrs}",
        node("Col2Im", "x s b", **attrs),
        {"s": whole(5, 6), "b": whole(*window)},
        opset=18,
        x=[2, 3 * int(np.prod(window)), length],
    )
case(
    "Col2Im of lines",
    node("Col2Im", "x s b", strides=[2]),
    {"s": whole(9), "b": whole(3)},
    opset=18,
    x=[2, 6, 4],
)
case(
    "MaxUnpool",
    [
        node("MaxPool", "x", "h k", kernel_shape=[2, 2], strides=[2, 2]),
        node("MaxUnpool", "h k", kernel_shape=[2, 2], strides=[2, 2]),
    ],
    x=PICTURE,
)
case(
    "MaxUnpool to a shape",
    [
        node("MaxPool", "x", "h k", kernel_shape=[2, 2], strides=[2, 2]),
        node("MaxUnpool", "h k s", kernel_shape=[2, 2], strides=[2, 2]),
    ],
    {"s": whole(2, 4, 7, 7)},
    sizes=(2,),
    x=[2, 4, 7, 7],
)

for attrs in ({}, {"onesided": 1}, {"inverse": 1}):
    case(f"DFT {attrs}", node("DFT", "x", axis=1, **attrs), x=[2, 7, 1])
case(
    "DFT of complex numbers",
    node("DFT", "x l a"),
    {"l": np.int64(8), "a": np.int64(2)},
    opset=20,
    x=[2, 3, 6, 2],
)
case("DFT of the beginning", node("DFT", "x l"), {"l": np.int64(4)}, opset=20, x=[2, 6, 1])
case("STFT", node("STFT", "x s w"), {"s": np.int64(3), "w": numbers(8)}, x=[2, 24])
case(
    "STFT of both sides",
    node("STFT", "x s - l", onesided=0),
    {"s": np.int64(4), "l": np.int64(6)},
    x=[2, 25, 1],
)
case("STFT of a window", [node("HannWindow", "l", "w"), node("STFT", "x s w l")], {"l": np.int64(16), "s": np.int64(8)},
     x=[2, 64])  # fmt: skip
case(
    "MelWeightMatrix",
    [node("MelWeightMatrix", "k z r e t", "m"), node("MatMul", "x m")],
    {"k": np.int64(5), "z": np.int64(16), "r": np.int64(8000), "e": np.float32(0), "t": np.float32(4000)},
    x=[2, 9],
)
for kind in ("HannWindow", "HammingWindow", "BlackmanWindow"):
    case(kind, [node(kind, "l", "w", periodic=0), node("Mul", "x w")], {"l": np.int64(6)}, x=ROWS)

HEADS = [2, 3, 5, 4]
case("Attention", node("Attention", "q k v"), opset=23, q=HEADS, k=HEADS, v=HEADS)
case(
    "Attention, causal",
    node("Attention", "q k v", is_causal=1, scale=0.3),
    opset=23,
    q=HEADS,
    k=HEADS,
    v=HEADS,
)
case(
    "Attention with a mask",
    node("Attention", "q k v m"),
    {"m": numbers(5, 5)},
    opset=23,
    q=HEADS,
    k=HEADS,
    v=HEADS,
)
case(
    "Attention of three axes",
    node("Attention", "q k v", q_num_heads=4, kv_num_heads=2),
    opset=23,
    q=[2, 5, 16],
    k=[2, 5, 8],
    v=[2, 5, 8],
)
case("RotaryEmbedding", node("RotaryEmbedding", "x c s"), opset=23, x=[2, 3, 5, 8], c=[2, 5, 4], s=[2, 5, 4])
case("AffineGrid", node("AffineGrid", "t s"), {"s": whole(2, 3, 5, 6)}, opset=20, sizes=(2,), t=[2, 2, 3])
case("CenterCropPad", node("CenterCropPad", "x s", axes=[1, 2]), {"s": whole(4, 9)}, opset=18, x=[2, 6, 7])
for attrs in ({}, {"reduction": "none"}, {"reduction": "sum", "ignore_index": 1}):
    case(
        f"SoftmaxCrossEntropyLoss {attrs}",
        node("SoftmaxCrossEntropyLoss", "x l", **attrs),
        x=ROWS,
        l=([2], INT64),
    )
case(
    "Einsum of three",
    node("Einsum", "x w v", equation="ij,jk,kl->il"),
    {"w": numbers(6, 4), "v": numbers(4, 3)},
    x=ROWS,
)
case(
    "Einsum of three rows",
    node("Einsum", "x w v", equation="i,j,k"),
    {"w": numbers(4), "v": numbers(3)},
    x=[2],
)
for rule in ("...ij,jk->...ik", "b...d,dk->b...k", "...d,dk", "...k,kd->d..."):
    case(f"Einsum {rule}", node("Einsum", "x w", equation=rule), {"w": numbers(6, 4)}, x=[2, 3, 6])
case("Einsum of dots", node("Einsum", "x w", equation="i...d,d->..."), {"w": numbers(6)}, x=[2, 3, 6])

case("RotaryEmbedding, mixed", node("RotaryEmbedding", "x c s", interleaved=1, rotary_embedding_dim=4), opset=23,
     x=[2, 3, 5, 8], c=[2, 5, 2], s=[2, 5, 2])  # fmt: skip
case(
    "RotaryEmbedding of places",
    node("RotaryEmbedding", "x c s p", num_heads=2),
    {"c": numbers(7, 4), "s": numbers(7, 4)},
    opset=23,
    x=[2, 5, 16],
    p=([2, 5], INT64),
)


@pytest.mark.parametrize("name", CASES)
def test_nodes_compute_what_onnxruntime_does(name, tmp_path):
    nodes, constants, opset, integers, sizes, inputs = CASES[name]
    path = written(tmp_path / "model.onnx", nodes, constants, opset, inputs)
    program, feeds, fetches = load(path)
    exe, running = fluid.Executor(PLACE), plain(path)
    for size in sizes:
        given = {}
        for feed in feeds:
            floats = isinstance(inputs[feed], list)
            shape = [size, *(inputs[feed] if floats else inputs[feed][0])[1:]]
            given[feed] = numbers(*shape) if floats else integers(shape).astype("int64")
        got = exe.run(program, feed=given, fetch_list=fetches)
        for found, want in zip(got, running.run(None, given), strict=True):
            assert found.shape == (want.shape or (1,)) and found.dtype == want.dtype
            np.testing.assert_allclose(found, want, 1e-4, 1e-5)


def test_places_from_the_end_that_a_run_finds_are_errors(tmp_path):
    nodes = [node("GatherElements", "x k", axis=1)]
    path = written(tmp_path / "model.onnx", nodes, {}, 17, {"x": ROWS, "k": ([2, 2], INT64)})
    program, _, fetches = load(path)
    with pytest.raises(EnforceNotMet, match="must be in"):
        fluid.Executor(PLACE).run(
            program, feed={"x": numbers(2, 6), "k": -np.ones([2, 2], "int64")}, fetch_list=fetches
        )


@pytest.mark.parametrize(
    ("made", "mean", "deviation"),
    [
        (node("RandomNormal", "", mean=2.0, scale=0.5, shape=[40, 50]), 2.0, 0.5),
        (node("RandomUniform", "", low=1.0, high=3.0, shape=[40, 50], seed=4.0), 2.0, 1 / 3**0.5),
        (node("RandomNormalLike", "x", scale=3.0), 0.0, 3.0),
        (node("RandomUniformLike", "x"), 0.5, 1 / 12**0.5),
        (node("Bernoulli", "x", dtype=TensorProto.DOUBLE), 0.25, 0.1875**0.5),
    ],
)
def test_random_numbers_are_distributed_as_they_should(made, mean, deviation, tmp_path):
    nodes = [node("Identity", "x", "z"), made]
    path = written(tmp_path / "model.onnx", nodes, {}, 17, {"x": [40, 50]})
    program, _, (drawn, _) = load(path)
    feed = {"x": np.full([40, 50], 0.25, "float32")}
    one, other = (fluid.Executor(PLACE).run(program, feed=feed, fetch_list=[drawn])[0] for _ in range(2))
    assert one.shape == (40, 50) and one.dtype == ("float64" if made.op_type == "Bernoulli" else "float32")
    assert abs(one.mean() - mean) < 0.1 * deviation and abs(one.std() - deviation) < 0.1 * deviation
    assert made.op_type == "RandomUniform" or not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("nodes", "constants", "named"),
    [
        (node("Resize", "x - s", mode="nearest"), {"s": np.float32([1.5, 1, 1, 1])}, "unknown until run time"),
        (node("Einsum", "x", equation="ijkk->ij"), {}, "computes ijkk->ij"),
        (node("ScatterElements", "x x x", reduction="mul"), {}, "whose number is unknown until run time"),
        (node("DFT", "x"), {}, "numbers of 6 parts"),
        (node("Pad", "x p", mode="reflect"), {"p": whole(1, 0, 0, 0, 1, 0, 0, 0)}, "unknown until run time"),
        (node("Unique", "x", axis=1), {}, "along an axis"),
        (node("Det", "x"), {}, "matrices of"),
        (node("MaxPool", "x", "y k", kernel_shape=[64, 64]), {}, "at most 1024 elements"),
        (node("MaxPool", "x", kernel_shape=[2, 2], dilations=[2, 2], auto_pad="SAME_UPPER"), {}, "auto_pad and"),
        (node("RandomNormalLike", "x", dtype=TensorProto.FLOAT16), {}, "FP16"),
        (node("Cast", "x", to=TensorProto.UINT32), {}, "elements of type uint32, which Fluid has not"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_named(nodes, constants, named, tmp_path):
    path = written(tmp_path / "model.onnx", [nodes], constants, 17, {"x": PICTURE})
    with pytest.raises(NotSupportedError, match=named):
        load(path)


def test_elements_of_feeds_that_fluid_has_not_are_named(tmp_path):
    path = written(
        tmp_path / "model.onnx", [node("Identity", "x")], {}, 17, {"x": ([2, 3], TensorProto.UINT64)}
    )
    with pytest.raises(NotSupportedError, match="input 'x' has elements of type uint64"):
        load(path)


def test_windows_that_cannot_be_are_damage(tmp_path):
    for attrs in (
        {"kernel_shape": [0, 2]},
        {"kernel_shape": [2, 2], "strides": [1, 0]},
        {"kernel_shape": [2]},
    ):
        path = tmp_path / "model.onnx"
        made = [node("MaxPool", "x", "y k", dilations=[1] * len(attrs["kernel_shape"]), **attrs)]
        declared = [helper.make_tensor_value_info("x", TensorProto.FLOAT, PICTURE)]
        result = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4, "h", "w"])
        graph = helper.make_graph(made, "made", declared, [result])
        path.write_bytes(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
        )
        with pytest.raises(FormatError, match="windows of"):
            load(path)
