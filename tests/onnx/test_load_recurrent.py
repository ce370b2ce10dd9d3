"""LSTM, GRU and RNN of ONNX models, and what opsets from 18 on have changed, against onnxruntime."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from fluidlite.base.errors import NotSupportedError
from fluidlite.onnx import load

from .test_load import compared, node, saved

pytestmark = pytest.mark.usefixtures("alone")
RANDOM = np.random.default_rng(9)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
SIZE, WIDTH, BATCH = 4, 3, 2


def model(path, kind, outputs, direction="forward", given="", **attrs):
    """A recurrent node with those of its inputs that are `given`: bias, hidden, cell, peepholes."""
    count, gates = 2 if direction == "bidirectional" else 1, GATES[kind]
    shapes = {
        "w": (count, gates * SIZE, WIDTH), "r": (count, gates * SIZE, SIZE), "bias": (count, 2 * gates * SIZE),
        "hidden": (count, BATCH, SIZE), "cell": (count, BATCH, SIZE), "peepholes": (count, 3 * SIZE),
    }  # fmt: skip
    inputs = [
        "w",
        "r",
        *(name if name in given else "" for name in ("bias", "", "hidden", "cell", "peepholes")),
    ]
    held = {name: RANDOM.uniform(-0.8, 0.8, shapes[name]).astype("float32") for name in inputs if name}
    made = node(kind, "x", outputs, hidden_size=SIZE, direction=direction, **attrs)
    made.input.extend(inputs[:7] if kind == "LSTM" else inputs[:5])
    while not made.input[-1]:
        made.input.pop()
    return saved(path / "model.onnx", [made], ["t", BATCH, WIDTH], held, outputs=outputs.split())


STEPS = [RANDOM.uniform(-1, 1, (t, BATCH, WIDTH)).astype("float32") for t in (5, 1, 8)]


@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("kind", "given", "attrs"),
    [
        ("LSTM", "", {}),
        ("LSTM", "bias hidden cell", {}),
        ("LSTM", "bias cell peepholes", {}),
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


@pytest.mark.parametrize("attrs", [{"clip": 0.5}, {"activations": ["Affine"]}])
def test_what_of_recurrence_is_not_here(attrs, tmp_path):
    with pytest.raises(NotSupportedError, match=next(iter(attrs))):
        load(model(tmp_path, "RNN", "y", **attrs))


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
