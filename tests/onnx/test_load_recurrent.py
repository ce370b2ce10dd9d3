"""LSTM, GRU and RNN of ONNX models, and what opsets from 18 on have changed, against onnxruntime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import fluidlite as fluid
from fluidlite.base.errors import NotSupportedError
from fluidlite.onnx import load

from .test_load import compared, node, saved

pytestmark = pytest.mark.usefixtures("alone")
RANDOM = np.random.default_rng(9)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
SIZE, WIDTH, BATCH = 4, 3, 2


def model(path, kind, outputs, direction="forward", given="", **attrs):
    """A recurrent node with those of its inputs that are `given`: bias, lengths, hidden, cell, peepholes."""
    count, gates = 2 if direction == "bidirectional" else 1, GATES[kind]
    shapes = {
        "w": (count, gates * SIZE, WIDTH), "r": (count, gates * SIZE, SIZE), "bias": (count, 2 * gates * SIZE),
        "hidden": (count, BATCH, SIZE), "cell": (count, BATCH, SIZE), "peepholes": (count, 3 * SIZE),
    }  # fmt: skip
    inputs = [
        "w",
        "r",
        *(name if name in given else "" for name in ("bias", "lengths", "hidden", "cell", "peepholes")),
    ]
    held = {
        name: RANDOM.uniform(-0.8, 0.8, shapes[name]).astype("float32") for name in inputs if name in shapes
    }
    made = node(kind, "x", outputs, hidden_size=SIZE, direction=direction, **attrs)
    made.input.extend(inputs[:7] if kind == "LSTM" else inputs[:5])
    while not made.input[-1]:
        made.input.pop()
    more = [("lengths", TensorProto.INT32, [BATCH])] if "lengths" in given else []
    shape = ["t", BATCH, WIDTH]
    return saved(path / "model.onnx", [made], shape, held, outputs=outputs.split(), more=more)


STEPS = [RANDOM.uniform(-1, 1, (t, BATCH, WIDTH)).astype("float32") for t in (5, 1, 8)]


@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("kind", "given", "attrs"),
    [
        ("LSTM", "", {}),
        ("LSTM", "bias hidden cell", {}),
        ("LSTM", "bias cell peepholes", {}),
        ("LSTM", "bias cell", {"input_forget": 1}),
        ("GRU", "bias", {"linear_before_reset": 1}),
        ("GRU", "bias hidden", {"linear_before_reset": 0}),
        ("RNN", "bias hidden", {}),
    ],
)
def test_recurrence(kind, given, attrs, direction, tmp_path):
    outputs = "y last cells" if kind == "LSTM" else "y last"
    compared(model(tmp_path, kind, outputs, direction, given, **attrs), STEPS)


def test_activations_and_a_single_result(tmp_path):
    compared(model(tmp_path, "RNN", "y", "bidirectional", "bias", activations=["Relu", "Tanh"]), STEPS)


LENGTHS = [(5, 2), (1, 0), (3, 8)]


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("kind", "given", "attrs"),
    [
        ("LSTM", "bias lengths cell peepholes", {"clip": 0.4}),
        ("GRU", "bias lengths hidden", {"linear_before_reset": 1, "clip": 0.3}),
        ("RNN", "lengths", {}),
    ],
)
def test_lengths_of_sequences(kind, given, attrs, direction, tmp_path):
    """Elements beyond the end of a sequence, NaN here, do not affect any result."""
    outputs = "y last cells" if kind == "LSTM" else "y last"
    batches = [
        {"x": steps.copy(), "lengths": np.array(long, "int32")}
        for steps, long in zip(STEPS, LENGTHS, strict=True)
    ]
    for batch in batches:
        for place, long in enumerate(batch["lengths"]):
            batch["x"][long:, place] = np.nan
    compared(model(tmp_path, kind, outputs, direction, given, **attrs), batches)


@pytest.mark.parametrize(
    ("names", "alphas", "betas"),
    [
        (["HardSigmoid", "ScaledTanh"], [0.3, 0.7], [0.4, 0.6]),
        (["Affine", "LeakyRelu"], [0.3, 0.2], [0.1]),
        (["Elu", "Softplus"], [0.8], []),
        (["HardSigmoid", "Softsign"], [], []),
    ],
)
def test_activations_with_numbers(names, alphas, betas, tmp_path):
    numbers = {"activation_alpha": alphas, "activation_beta": betas}
    given = {name: values for name, values in numbers.items() if values}
    compared(model(tmp_path, "GRU", "y last", "forward", "bias", activations=names, **given), STEPS)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_batches_first(kind, tmp_path):
    """With `layout` 1, which onnxruntime has not: what the model with steps first gives, turned."""
    path = model(tmp_path, kind, "y last", "bidirectional", "bias")
    program, _, fetches = load(path)
    exe = fluid.Executor(fluid.CPUPlace())
    y, last = exe.run(program, feed={"x": STEPS[0]}, fetch_list=fetches)
    batch_first = onnx.load(path)
    batch_first.graph.node[0].attribute.append(helper.make_attribute("layout", 1))
    batch_first.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", 1, [BATCH, "t", WIDTH]))
    path.write_bytes(batch_first.SerializeToString())
    with fluid.scope_guard(fluid.Scope()):
        program, _, fetches = load(path)
        got = exe.run(program, feed={"x": STEPS[0].transpose(1, 0, 2)}, fetch_list=fetches)
    np.testing.assert_allclose(got[0], y.transpose(2, 0, 1, 3), 1e-5, 1e-6)
    np.testing.assert_allclose(got[1], last.transpose(1, 0, 2), 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("kind", "attrs", "named"),
    [
        ("RNN", {"activations": ["Affine"]}, "activation Affine without its alpha and beta"),
        ("RNN", {"activations": ["Cosine"]}, "activations .*Cosine"),
    ],
)
def test_what_of_recurrence_is_not_here(kind, attrs, named, tmp_path):
    with pytest.raises(NotSupportedError, match=named):
        load(model(tmp_path, kind, "y", **attrs))


@pytest.mark.parametrize("opset", [18, 20, 22])
@pytest.mark.parametrize(
    ("nodes", "since"),
    [
        ([node("ReduceMean", "x last", "h", keepdims=0), node("Softmax", "h", "y")], 18),
        ([node("Split", "x", "h y k", axis=2, num_outputs=3)], 18),
        ([helper.make_node("Pad", ["x", "pads", "", "last"], ["y"])], 18),
        ([node("Mish", "x", "y")], 18),
        ([node("Gelu", "x", "h"), node("Gelu", "h", "y", approximate="tanh")], 20),
        ([node("Transpose", "x", "h", perm=[0, 2, 1]), node("GroupNormalization", "h s s", "g", num_groups=1),
          node("Cast", "g", "c", to=1), node("Reshape", "c rows")], 21),
    ],
)  # fmt: skip
def test_newer_opsets(nodes, since, opset, tmp_path):
    if opset < since:
        pytest.skip("this opset has no such node")
    constants = {
        "last": np.array([-1]),
        "pads": np.array([1, 2]),
        "rows": np.array([-1, 6]),
        "s": np.array([0.5, 2, 3], "float32"),
    }
    read = {name for each in nodes for name in each.input}
    kept = {name: array for name, array in constants.items() if name in read}
    compared(
        saved(tmp_path / "model.onnx", nodes, ["t", BATCH, WIDTH], kept, TensorProto.FLOAT, opset=opset),
        STEPS,
    )
