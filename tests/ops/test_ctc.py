"""warpctc; expected numbers are those of Fluid 1.8.5."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from .harness import check, gradients, infer, run_kernel

X = np.sin(7 * np.linspace(-1, 1, 40).reshape(5, 2, 4).astype("float32")).astype("float32")
PADDED = {
    "Logits": X,
    "Label": np.array([[1, 2, 2], [3, 1, 0]], "int32"),
    "LogitsLength": np.array([5, 4]),
    "LabelLength": np.array([3, 2]),
}
ROWS = {"Logits": X.reshape(-1, 4)[:7], "Label": np.array([[1], [2], [3]], "int32")}
LODS = {"Logits": [[[0, 4, 7]]], "Label": [[[0, 2, 3]]]}


def test_padded():
    loss = np.array([[5.2296877], [2.7664533]], "float32")
    check("warpctc", PADDED, {}, {"Loss": loss}, grads=["Logits"])
    found = gradients("warpctc", PADDED, {}, {"Loss": [np.array([[1.0], [2.0]], "float32")]})["Logits"][0]
    np.testing.assert_allclose(
        found[0, 0], [-0.0084193, -0.6562122, 0.2745468, 0.3900844], rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(
        found[3, 1], [-0.0457315, -0.6487478, 0.3898947, 0.3045846], rtol=1e-4, atol=1e-6
    )
    assert not found[4, 1].any(), "nothing behind the end"


def test_sequences():
    check(
        "warpctc", ROWS, {}, {"Loss": np.array([[3.1544366], [2.207207]], "float32")}, ["Logits"], lods=LODS
    )


def test_gradients_by_length():
    ones = {"Loss": [np.ones((2, 1), "float32")]}
    found = gradients("warpctc", ROWS, {"norm_by_times": True}, ones, LODS)["Logits"][0]
    np.testing.assert_allclose(found[0], [-0.0262192, -0.1399386, 0.0686367, 0.0975211], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found[6], [-0.1204247, 0.094708, 0.0778059, -0.0520892], rtol=1e-4, atol=1e-6)
    plain = gradients("warpctc", PADDED, {}, ones)["Logits"][0]
    divided = gradients("warpctc", PADDED, {"norm_by_times": True}, ones)["Logits"][0]
    np.testing.assert_allclose(divided, plain / np.array([5, 4]).reshape(1, 2, 1), rtol=1e-5)


def test_too_short_sequences_cost_nothing():
    short = {**PADDED, "LogitsLength": np.array([3, 4])}
    loss = run_kernel("warpctc", short)["Loss"][0]
    assert loss[0, 0] == 0 and loss[1, 0] == pytest.approx(2.7664533)
    found = gradients("warpctc", short, {}, {"Loss": [np.ones((2, 1), "float32")]})["Logits"][0]
    assert not found[:, 0].any() and found[:, 1].any()


def test_another_blank():
    turned = {**PADDED, "Logits": np.ascontiguousarray(X[:, :, [1, 2, 3, 0]])}
    turned["Label"] = np.array([[0, 1, 1], [2, 0, 3]], "int32")
    np.testing.assert_allclose(
        run_kernel("warpctc", turned, {"blank": 3})["Loss"][0], [[5.2296877], [2.7664533]]
    )


def test_what_does_not_fit():
    with pytest.raises(OperatorError, match="LogitsLength and LabelLength come together"):
        infer("warpctc", {**ROWS, "LogitsLength": np.array([5])})
    with pytest.raises(OperatorError, match=r"blank must be in \[0, 4\), got 4"):
        infer("warpctc", PADDED, {"blank": 4})
    with pytest.raises(OperatorError, match=r"Label must be in \[0, 4\)"):
        run_kernel("warpctc", {**PADDED, "Label": PADDED["Label"] + 2})
    with pytest.raises(OperatorError, match="Logits has 2 sequences and Label 1"):
        run_kernel("warpctc", ROWS, {}, {**LODS, "Label": [[[0, 3]]]})
    with pytest.raises(OperatorError, match="a length is greater"):
        run_kernel("warpctc", {**PADDED, "LogitsLength": np.array([6, 4])})
