"""Losses that compare numbers."""

import numpy as np
import pytest
from scipy.special import huber, log_expit, softmax

from fluidlite.ops.registry import OperatorError

from ..harness import check, gradients, infer

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype("float32")


def bits(*shape):
    return rng.integers(0, 2, shape).astype("float32")


def test_log_loss():
    p, y = rng.uniform(0.1, 0.9, (5, 1)).astype("float32"), bits(5, 1)
    want = np.where(y == 1, -np.log(p + 1e-4), -np.log(1 - p + 1e-4)).astype("float32")
    check("log_loss", {"Predicted": p, "Labels": y}, {}, {"Loss": want}, grads=("Predicted",))


def test_huber_loss():
    x, y = normal(5, 3), normal(5, 3)
    outputs = {"Out": huber(0.5, (y - x).astype(float)).astype("float32"), "Residual": y - x}
    check("huber_loss", {"X": x, "Y": y}, {"delta": 0.5}, outputs, grads=("X", "Y"))


def test_smooth_l1_loss():
    x, y, inside, outside = (normal(5, 2, 3) for _ in range(4))
    d = (inside * (x - y)).astype(float)
    each = np.where(np.abs(d) < 0.25, 2 * d * d, np.abs(d) - 0.125) * outside
    want = each.reshape(5, -1).sum(1, keepdims=True).astype("float32")
    inputs = {"X": x, "Y": y, "InsideWeight": inside, "OutsideWeight": outside}
    check("smooth_l1_loss", inputs, {"sigma": 2.0}, {"Out": want}, grads=("X", "Y"), rtol=1e-4)
    check("smooth_l1_loss", {"X": x, "Y": y}, {}, grads=("X", "Y"))


def test_smooth_l1_loss_with_one_weight():
    x, y = normal(5, 3), normal(5, 3)
    with pytest.raises(OperatorError, match="needs an OutsideWeight"):
        infer("smooth_l1_loss", {"X": x, "Y": y, "InsideWeight": x})
    d = (x - y).astype(float)
    each = np.where(np.abs(d) < 1, d * d / 2, np.abs(d) - 0.5)
    outputs = {"Out": each.sum(1, keepdims=True).astype("float32")}
    check("smooth_l1_loss", {"X": x, "Y": y, "OutsideWeight": x}, {}, outputs, grads=("X", "Y"))


@pytest.mark.parametrize(
    ("reduction", "reduce"),
    [
        ("none", lambda each: each),
        ("sum", lambda each: [each.sum()]),
        ("mean", lambda each: [each.mean()]),
        ("batchmean", lambda each: [each.sum() / 4]),
    ],
)
def test_kldiv_loss(reduction, reduce):
    x, target = np.log(softmax(normal(4, 3), axis=1)), softmax(normal(4, 3), axis=1)
    target[0, 0] = 0
    each = np.where(target > 0, target * (np.log(np.where(target > 0, target, 1)) - x), 0)
    want = np.array(reduce(each), "float32")
    check("kldiv_loss", {"X": x, "Target": target}, {"reduction": reduction}, {"Loss": want}, grads=("X",))


def test_kldiv_loss_refuses_other_reductions():
    with pytest.raises(OperatorError, match="reduction must be .* got 'max'"):
        infer("kldiv_loss", {"X": normal(2, 2), "Target": normal(2, 2)}, {"reduction": "max"})


def test_bpr_loss():
    x, label = normal(3, 4), np.array([[1], [0], [3]])
    want = [
        [-np.mean([log_expit(row[at] - row[k]) for k in range(4) if k != at])]
        for row, (at,) in zip(x.astype(float), label, strict=True)
    ]
    check("bpr_loss", {"X": x, "Label": label}, {}, {"Y": np.array(want, "float32")}, grads=("X",))


def test_rank_loss():
    left, right, label = normal(5, 1), normal(5, 1), bits(5, 1)
    d = (left - right).astype(float)
    want = (np.log(1 + np.exp(d)) - label * d).astype("float32")
    inputs = {"Left": left, "Right": right, "Label": label}
    check("rank_loss", inputs, {}, {"Out": want}, grads=("Left", "Right"))
    flat = {**inputs, "Left": left[:, 0]}
    check("rank_loss", flat, {}, {"Out": want}, grads=("Left", "Right"))
    flat = {**inputs, "Label": label[:, 0]}
    check("rank_loss", flat, {}, {"Out": want[:, 0]}, grads=("Left", "Right"))


def test_margin_rank_loss():
    x, y, label = normal(6, 1), normal(6, 1), bits(6, 1) * 2 - 1
    want = np.maximum(0, -label * (x - y) + np.float32(0.1))
    outputs = {"Out": want, "Activated": (want > 0).astype("float32")}
    inputs = {"X1": x, "X2": y, "Label": label}
    check("margin_rank_loss", inputs, {"margin": 0.1}, outputs, grads=("X1", "X2"))


def test_hinge_loss():
    x, label = normal(6, 1), bits(6, 1)
    want = np.maximum(0, 1 - x * (2 * label - 1))
    check("hinge_loss", {"Logits": x, "Labels": label}, {}, {"Loss": want}, grads=("Logits",))


def test_label_smooth():
    x, prior = bits(3, 4), softmax(normal(1, 4), axis=1)
    want = (0.8 * x + 0.2 * prior).astype("float32")
    check("label_smooth", {"X": x, "PriorDist": prior}, {"epsilon": 0.2}, {"Out": want}, grads=("X",))
    uniform = (0.8 * x + 0.05).astype("float32")
    check("label_smooth", {"X": x}, {"epsilon": 0.2}, {"Out": uniform}, grads=("X",))


def test_teacher_student_sigmoid_loss_as_in_fluid():
    label = np.array([[-2], [-1], [0], [0.3], [1], [1.3]], "float32")
    want = np.array([[0.8543553, 0.55435526, 1.7087106, 1.6187105, 1.4087105, 1.3187104]], "float32").T
    inputs = {"X": np.full((6, 1), 0.3, "float32"), "Label": label}
    check("teacher_student_sigmoid_loss", inputs, {}, {"Y": want}, grads=("X",))


def test_gradient_of_teacher_student_sigmoid_loss_is_nan_where_the_loss_is():
    x = np.array([[np.nan], [16.0], [0.0]], "float32")
    inputs = {"X": x, "Label": np.zeros((3, 1), "float32")}
    found = gradients("teacher_student_sigmoid_loss", inputs, {}, {"Y": [np.ones((3, 1), "float32")]})
    np.testing.assert_array_equal(found["X"][0], [[np.nan], [0], [1]])


def test_shapes_must_agree():
    with pytest.raises(OperatorError, match=r"Y must have the shape of X, \[2, 3\], got \[2, 1\]"):
        infer("huber_loss", {"X": normal(2, 3), "Y": normal(2, 1)})
