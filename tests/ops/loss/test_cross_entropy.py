"""Cross entropies."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

rng = np.random.default_rng(0)
LABEL = np.array([[0], [3], [1], [2], [2]])


def logits(*shape):
    return rng.normal(0, 2, shape).astype("float32")


def probabilities(*shape):
    return softmax(logits(*shape), axis=-1)


@pytest.mark.parametrize("ignore", [-100, 2])
@pytest.mark.parametrize("op_type", ["cross_entropy", "cross_entropy2"])
def test_of_class_numbers(op_type, ignore):
    p = probabilities(5, 4)
    want = np.where(LABEL == ignore, 0, -np.log(np.take_along_axis(p, LABEL, 1))).astype("float32")
    attrs = {"ignore_index": ignore}
    check(op_type, {"X": p, "Label": LABEL}, attrs, {"Y": want}, grads=("X",))
    check(op_type, {"X": p, "Label": LABEL[:, 0]}, attrs, {"Y": want[:, 0]}, grads=("X",))


def test_what_cross_entropy2_keeps():
    p = probabilities(2, 3, 4)
    label = rng.integers(0, 4, (2, 3, 1))
    outputs = {"MatchX": np.take_along_axis(p, label, 2), "XShape": np.zeros((2, 3, 4, 0), "float32")}
    check("cross_entropy2", {"X": p, "Label": label}, {}, outputs, grads=("X",))


def test_of_soft_labels():
    p, q = probabilities(5, 4), probabilities(5, 4)
    want = -(q * np.log(p)).sum(1, keepdims=True)
    check("cross_entropy", {"X": p, "Label": q}, {"soft_label": True}, {"Y": want}, grads=("X",))


def test_of_an_impossible_label_is_finite():
    p = np.array([[0, 1]], "float32")
    label = np.array([[0]])
    for op_type in ("cross_entropy", "cross_entropy2"):
        np.testing.assert_allclose(run_kernel(op_type, {"X": p, "Label": label})["Y"][0], [[1e20]])
    soft = {"X": p, "Label": p}
    assert run_kernel("cross_entropy", soft, {"soft_label": True})["Y"][0] == 0
    dy = np.ones((1, 1), "float32")
    found = run_kernel("cross_entropy_grad", {**soft, "Y@GRAD": dy}, {"soft_label": True})["X@GRAD"][0]
    np.testing.assert_array_equal(found, [[0, -1]])


@pytest.mark.parametrize("ignore", [-100, 2])
def test_with_softmax(ignore):
    x = logits(5, 4)
    want = np.where(LABEL == ignore, 0, -np.take_along_axis(log_softmax(x, axis=1), LABEL, 1))
    outputs = {"Softmax": softmax(x, axis=1), "Loss": want.astype("float32")}
    inputs = {"Logits": x, "Label": LABEL}
    attrs = {"ignore_index": ignore}
    check("softmax_with_cross_entropy", inputs, attrs, outputs, grads=("Logits",))


def test_with_softmax_along_another_axis():
    x, label = logits(2, 4, 3), rng.integers(0, 4, (2, 1, 3))
    want = -np.take_along_axis(log_softmax(x, axis=1), label, 1)
    inputs = {"Logits": x, "Label": label}
    check("softmax_with_cross_entropy", inputs, {"axis": 1}, {"Loss": want}, grads=("Logits",))


def test_with_softmax_of_soft_labels():
    x, q = logits(5, 4), probabilities(5, 4)
    want = -(q * log_softmax(x, axis=1)).sum(1, keepdims=True)
    inputs = {"Logits": x, "Label": q}
    check("softmax_with_cross_entropy", inputs, {"soft_label": True}, {"Loss": want}, grads=("Logits",))


def test_with_softmax_is_bounded_as_in_fluid():
    inputs = {"Logits": np.array([[0, 1000, 0]], "float32"), "Label": np.array([[0]])}
    np.testing.assert_allclose(run_kernel("softmax_with_cross_entropy", inputs)["Loss"][0], [[64]])


@pytest.mark.parametrize(
    ("op_type", "slot"),
    [("cross_entropy", "X"), ("cross_entropy2", "X"), ("softmax_with_cross_entropy", "Logits")],
)
@pytest.mark.parametrize("bad", [4, -1])
def test_labels_out_of_range(op_type, slot, bad):
    label = LABEL.copy()
    label[2] = bad
    message = rf"operator {op_type}: Label must be in \[0, 4\).* 4 classes; got {bad} at position 2"
    with pytest.raises(OperatorError, match=message):
        run_kernel(op_type, {slot: probabilities(5, 4), "Label": label})


@pytest.mark.parametrize(
    ("label", "attrs", "message"),
    [
        (np.zeros((5, 2), "int64"), {}, r"Label must have shape \[5, 1\], .* got \[5, 2\]"),
        (np.zeros((4, 1), "int64"), {}, r"Label must have shape \[5, 1\], .* got \[4, 1\]"),
        (np.zeros((5, 1), "float32"), {}, "Label must be int64 or int32 class numbers, got VarType.FP32"),
        (
            np.zeros((5, 1), "float32"),
            {"soft_label": True},
            r"soft labels must have the shape of X, \[5, 4\]",
        ),
    ],
)
def test_labels_that_do_not_fit(label, attrs, message):
    with pytest.raises(OperatorError, match=message):
        infer("cross_entropy", {"X": probabilities(5, 4), "Label": label}, attrs, exact=True)


@pytest.mark.parametrize("normalize", [False, True])
def test_of_yes_no_questions(normalize):
    x, label = logits(4, 3), rng.integers(0, 2, (4, 3)).astype("float32")
    p = expit(x.astype(float))
    cost = -label * np.log(p) - (1 - label) * np.log(1 - p)
    cost = np.where(label == 0, 0, cost) / ((label != 0).sum() if normalize else 1)
    attrs = {"normalize": normalize, "ignore_index": 0}
    check(
        "sigmoid_cross_entropy_with_logits",
        {"X": x, "Label": label},
        attrs,
        {"Out": cost.astype("float32")},
        grads=("X",),
    )


@pytest.mark.parametrize(("ignored", "kept"), [(1, "0001111"), (0, "1110011"), (-1, "1111100")])
def test_of_yes_no_questions_ignores_by_the_whole_part_of_labels(ignored, kept):
    label = np.array([[1.0, 1.4, 1.999, 0.3, -0.5, -1.0, -1.2]], "float32")
    x, weights = np.full((1, 7), 0.5, "float32"), np.array([list(kept)], "float32")
    cost = (0.5 - 0.5 * label + np.log1p(np.exp(-0.5))) * weights
    inputs = {"X": x, "Label": label}
    # How many count is asked of labels with their fraction.
    for normalize, shares in ((False, 1), (True, (label != ignored).sum())):
        attrs = {"ignore_index": ignored, "normalize": normalize}
        want = {"Out": (cost / shares).astype("float32")}
        check("sigmoid_cross_entropy_with_logits", inputs, attrs, want, grads=["X"])


def test_of_yes_no_questions_with_large_logits():
    inputs = {"X": np.array([[-200, 200]], "float32"), "Label": np.array([[1, 0]], "float32")}
    np.testing.assert_allclose(
        run_kernel("sigmoid_cross_entropy_with_logits", inputs)["Out"][0], [[200, 200]]
    )
