"""Losses of predicted probabilities."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype("float32")


def test_bce_loss():
    x, y = rng.uniform(0.1, 0.9, (4, 3)).astype("float32"), rng.uniform(0, 1, (4, 3)).astype("float32")
    want = (-y * np.log(x) - (1 - y) * np.log(1 - x)).astype("float32")
    check("bce_loss", {"X": x, "Label": y}, {}, {"Out": want}, grads=("X",), rtol=1e-4)


def test_bce_loss_at_the_ends():
    """The numbers of real Paddle 1.8.5."""
    x, y = np.array([0, 1, 0, 1], "float32"), np.array([1, 1, 0, 0], "float32")
    assert run_kernel("bce_loss", {"X": x, "Label": y})["Out"][0].tolist() == [100, 0, 0, 100]
    inputs = {"X": x, "Label": y, "Out@GRAD": np.ones(4, "float32")}
    np.testing.assert_allclose(run_kernel("bce_loss_grad", inputs)["X@GRAD"][0], [-1e12, 0, 0, 1e12])


def test_bce_loss_takes_probabilities():
    with pytest.raises(OperatorError, match=r"in \[0, 1\], got 0.5 to 2.0"):
        run_kernel("bce_loss", {"X": np.array([0.5, 2], "float32"), "Label": np.ones(2, "float32")})
    with pytest.raises(OperatorError, match="the shape of X"):
        infer("bce_loss", {"X": normal(2, 3), "Label": normal(3, 2)})


WEIGHT = np.array([0.5, 1, 2], "float32")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 2, 2)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_nll_loss(reduction, shape, weighted):
    x, label = normal(*shape), rng.integers(0, 3, (shape[0], *shape[2:]))
    weight = WEIGHT[label] if weighted else np.ones(label.shape, "float32")
    weight = np.where(label == 1, 0, weight).astype("float32")
    each = -weight * np.take_along_axis(x, label[:, None], 1)[:, 0]
    want = {"none": each, "sum": [each.sum()], "mean": [each.sum() / weight.sum()]}[reduction]
    inputs = {"X": x, "Label": label, **({"Weight": WEIGHT} if weighted else {})}
    attrs = {"reduction": reduction, "ignore_index": 1}
    outputs = {
        "Out": np.array(want, "float32"),
        "Total_weight": np.array([0 if reduction == "none" else weight.sum()], "float32"),
    }
    check("nll_loss", inputs, attrs, outputs, grads=("X",), rtol=1e-4)


def test_nll_loss_of_ignored_rows_only():
    inputs = {"X": normal(2, 3), "Label": np.zeros(2, "int64")}
    assert run_kernel("nll_loss", inputs, {"ignore_index": 0})["Out"][0].tolist() == [0]


def test_nll_loss_refuses():
    x = normal(2, 3)
    with pytest.raises(
        OperatorError, match="in .0, 3. .or -100, which is ignored., since there are 3 classes; got 5"
    ):
        run_kernel("nll_loss", {"X": x, "Label": np.array([5, 0])})
    with pytest.raises(OperatorError, match="Label must be .2. for X"):
        infer("nll_loss", {"X": x, "Label": np.array([0, 1, 2])})
    with pytest.raises(OperatorError, match="Weight must be .3."):
        infer("nll_loss", {"X": x, "Label": np.array([0, 1]), "Weight": normal(2)})
    with pytest.raises(OperatorError, match=r"X must be \[N, C\]"):
        infer("nll_loss", {"X": normal(2, 3, 4), "Label": np.array([0, 1])})
    with pytest.raises(OperatorError, match="reduction must be"):
        infer("nll_loss", {"X": x, "Label": np.array([0, 1])}, {"reduction": "most"})
