"""Models optimized or quantized by onnxruntime, with nodes of its own domain; nodes of unknown domains."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from onnxruntime import quantization

import fluidlite as fluid
from fluidlite.base.errors import NotSupportedError
from fluidlite.onnx import load

from .test_export import PLACE
from .test_load import node, saved

pytestmark = pytest.mark.usefixtures("alone")
RANDOM = np.random.default_rng(5)


def numbers(*shape, far=0.5):
    return RANDOM.uniform(-far, far, shape).astype("float32")


def same(path, batches, rtol=1e-4, atol=1e-5):
    """Check that the loaded program computes the results of onnxruntime."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    program, _, fetches = load(path)
    exe = fluid.Executor(PLACE)
    for x in batches:
        got = exe.run(program, feed={"x": x}, fetch_list=fetches)
        for found, want in zip(got, session.run(None, {"x": x}), strict=True):
            assert found.shape == want.shape and found.dtype == want.dtype
            np.testing.assert_allclose(found, want, rtol, atol)


def kinds(path):
    return {made.op_type for made in onnx.load(path).graph.node if made.domain == "com.microsoft"}


TRANSFORMER = [
    node("MatMul", "x q", "a"),
    node("MatMul", "x k", "b"),
    node("Transpose", "b", "t", perm=[0, 2, 1]),
    node("MatMul", "a t", "s"),
    node("Div", "s eight", "m"),
    node("Softmax", "m", "p"),
    node("MatMul", "p x", "v"),
    node("Add", "v bias", "o"),
    node("Add", "o x", "r"),
    node("LayerNormalization", "r g bias", "n"),
    node("MatMul", "n q", "f"),
    node("Add", "f bias", "e"),
    node("Div", "e root", "d"),
    node("Erf", "d", "c"),
    node("Add", "c one", "u"),
    node("Mul", "e u", "w"),
    node("Mul", "w half", "gelu"),
    node("Mul", "gelu quick", "z"),
    node("Sigmoid", "z", "l"),
    node("Mul", "gelu l", "y"),
]
CONSTANTS = {
    "q": numbers(8, 8), "k": numbers(8, 8), "bias": numbers(8), "g": numbers(8), "eight": np.float32(2.8),
    "root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5), "quick": np.float32(1.702),
}  # fmt: skip
CNN = [
    node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
    node("Relu", "c", "r"),
    node("Conv", "r v", "d", pads=[1, 1, 1, 1]),
    node("Add", "d r", "s"),
    node("LeakyRelu", "s", "l", alpha=0.1),
    node("Sigmoid", "l", "g"),
    node("Mul", "l g", "m"),
    node("Concat", "m r", "n", axis=1),
    node("AveragePool", "n", "p", kernel_shape=[2, 2], strides=[2, 2]),
    node("GlobalAveragePool", "p", "a"),
    node("Flatten", "a", "f"),
    node("Gemm", "f k h", "o"),
    node("Softmax", "o", "y"),
]
WEIGHTS = {
    "w": numbers(4, 3, 3, 3),
    "b": numbers(4),
    "v": numbers(4, 4, 3, 3),
    "k": numbers(8, 5),
    "h": numbers(5),
}


@pytest.mark.parametrize(
    ("nodes", "held", "shape", "wanted"),
    [
        (TRANSFORMER, CONSTANTS, ["n", 5, 8], {"FusedMatMul", "SkipLayerNormalization", "BiasGelu", "QuickGelu"}),
        (CNN, WEIGHTS, ["n", 3, 8, 8], {"FusedConv"}),
    ],
)  # fmt: skip
def test_what_onnxruntime_optimized(nodes, held, shape, wanted, tmp_path):
    plain = saved(tmp_path / "plain.onnx", nodes, shape, held)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "model.onnx")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(plain), options, providers=["CPUExecutionProvider"])
    assert wanted <= kinds(tmp_path / "model.onnx")
    same(tmp_path / "model.onnx", [numbers(n, *shape[1:], far=1) for n in (2, 5)])


class Batches(quantization.CalibrationDataReader):
    def __init__(self, shape):
        self.left = [{"x": numbers(4, *shape[1:], far=1)} for _ in range(4)]

    def get_next(self):
        return self.left.pop() if self.left else None


@pytest.mark.parametrize("form", ["QOperator", "QDQ"])
def test_what_onnxruntime_quantized(form, tmp_path):
    """A number that lies between two bytes may become either: one part in 256 of the largest, no more."""
    plain = saved(tmp_path / "plain.onnx", CNN, ["n", 3, 8, 8], WEIGHTS)
    quantization.quantize_static(
        plain,
        tmp_path / "model.onnx",
        Batches(["n", 3, 8, 8]),
        quant_format=quantization.QuantFormat[form],
        reduce_range=True,
    )
    if form == "QOperator":
        assert len(kinds(tmp_path / "model.onnx")) > 5
    same(tmp_path / "model.onnx", [numbers(n, 3, 8, 8, far=1) for n in (2, 5)], 0, 1.5 / 256)


def test_products_by_bytes(tmp_path):
    plain = saved(
        tmp_path / "plain.onnx", TRANSFORMER[:1] + [node("Add", "a bias", "y")], ["n", 5, 8], CONSTANTS
    )
    # Weights of seven bits: onnxruntime without VNNI is exact for these.
    quantization.quantize_dynamic(plain, tmp_path / "bytes.onnx", reduce_range=True)
    same(tmp_path / "bytes.onnx", [numbers(3, 5, 8)])
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "model.onnx")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    onnxruntime.InferenceSession(str(tmp_path / "bytes.onnx"), options, providers=["CPUExecutionProvider"])
    assert kinds(tmp_path / "model.onnx")
    same(tmp_path / "model.onnx", [numbers(3, 5, 8)])


OWN = {
    "FastGelu": ("x b", {}, {"b": numbers(6)}),
    "Gelu": ("x", {}, {}),
    "QuickGelu": ("x", {"alpha": 1.3}, {}),
    "FusedGemm": ("x w b", {"activation": "LeakyRelu", "activation_alpha": 0.2, "transB": 1, "beta": 0.5},
                  {"w": numbers(4, 6), "b": numbers(4)}),
    "SkipSimplifiedLayerNormalization": ("x x g b", {"epsilon": 1e-5}, {"g": numbers(6), "b": numbers(6)}),
    "SkipLayerNormalization": ("x x g", {"epsilon": 1e-5}, {"g": numbers(6)}),
}  # fmt: skip


def own_model(path, kind, inputs, attrs, held, domain="com.microsoft"):
    """The only node of a model, behind an Identity."""
    saved(
        path,
        [node("Identity", "x", "h"), node("Identity", "h", "z")],
        ["n", 3, 6] if "Norm" in kind else ["n", 6],
        held,
        outputs="z",
    )
    model = onnx.load(path)
    model.graph.node[1].input[0] = "y"
    model.graph.node.insert(
        1, helper.make_node(kind, inputs.replace("x", "h").split(), ["y"], domain=domain, **attrs)
    )
    model.opset_import.append(helper.make_opsetid(domain, 1))
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("kind", OWN)
def test_nodes_of_onnxruntime(kind, tmp_path):
    shape = (3, 6) if "Norm" in kind else (6,)
    same(own_model(tmp_path / "model.onnx", kind, *OWN[kind]), [numbers(n, *shape, far=2) for n in (2, 5)])


@pytest.mark.parametrize(
    ("kind", "domain"), [("Relu", "mine"), ("Relu", "com.microsoft"), ("RotaryEmbedding", "com.microsoft")]
)
def test_names_of_other_domains_mean_other_things(kind, domain, tmp_path):
    with pytest.raises(NotSupportedError, match=f"no counterpart: {domain}.{kind}"):
        load(own_model(tmp_path / "model.onnx", kind, "x", {}, {}, domain))
