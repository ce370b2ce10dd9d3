"""warpctc and ctc_align; expected numbers are those of Fluid 1.8.5, or those of all paths one by one."""

import itertools

import numpy as np
import pytest

from fluidlite.ops import registry
from fluidlite.ops.registry import OperatorError

from .. import in_native
from ..harness import check, gradients, infer, run_kernel

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


@pytest.mark.parametrize(
    ("tokens", "costs"), [([1, 0, 0], [3.699549, 3.016829]), ([0, 2, 3], [3.4397497, 2.207207])]
)
def test_gradients_of_labels_equal_to_the_blank_are_those_of_the_cost(tokens, costs):
    rows = {**ROWS, "Label": np.array(tokens, "int32").reshape(-1, 1)}
    check("warpctc", rows, {}, {"Loss": np.array(costs, "float32").reshape(-1, 1)}, ["Logits"], lods=LODS)


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
    rotated = {**PADDED, "Logits": np.ascontiguousarray(X[:, :, [1, 2, 3, 0]])}
    rotated["Label"] = np.array([[0, 1, 1], [2, 0, 3]], "int32")
    np.testing.assert_allclose(
        run_kernel("warpctc", rotated, {"blank": 3})["Loss"][0], [[5.2296877], [2.7664533]]
    )


def test_what_does_not_fit():
    with pytest.raises(OperatorError, match="LogitsLength and LabelLength must be given together"):
        infer("warpctc", {**ROWS, "LogitsLength": np.array([5])})
    with pytest.raises(OperatorError, match=r"blank must be in \[0, 4\), got 4"):
        infer("warpctc", PADDED, {"blank": 4})
    with pytest.raises(OperatorError, match=r"Label must be in \[0, 4\)"):
        run_kernel("warpctc", {**PADDED, "Label": PADDED["Label"] + 2})
    with pytest.raises(OperatorError, match="Logits has 2 sequences and Label 1"):
        run_kernel("warpctc", ROWS, {}, {**LODS, "Label": [[[0, 3]]]})
    with pytest.raises(OperatorError, match="sequence 0 has 6 rows, which does not fit the 5 that there are"):
        run_kernel("warpctc", {**PADDED, "LogitsLength": np.array([6, 4])})


def collapsed(path, blank):
    return [token for token, _ in itertools.groupby(path) if token != blank]


@pytest.mark.parametrize("label", [[], [1], [1, 1], [0, 1], [1, 0]])
def test_all_paths_one_by_one(label):
    x = np.random.default_rng(3).uniform(-2, 2, (4, 3))
    shares = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    paths = [p for p in itertools.product(range(3), repeat=4) if collapsed(p, 2) == label]
    total = sum(np.prod([shares[t, k] for t, k in enumerate(path)]) for path in paths)
    inputs = {"Logits": x, "Label": np.array(label, "int32").reshape(-1, 1)}
    lods = {"Logits": [[[0, 4]]], "Label": [[[0, len(label)]]]}
    made = run_kernel("warpctc", inputs, {"blank": 2}, lods)["Loss"][0]
    np.testing.assert_allclose(made, [[-np.log(total)]], rtol=1e-9)
    in_native.check("warpctc", inputs, {"blank": 2}, lods)


@pytest.mark.parametrize(
    ("frames", "labels", "classes", "blank", "kind"),
    [
        ([4, 3], [2, 1], 4, 0, "int32"),
        ([1, 5, 0], [1, 2, 1], 5, 0, "int32"),
        ([3, 0, 2], [0, 0, 2], 3, 1, "int64"),
        ([20, 12], [9, 3], 6, 5, "int64"),
        ([6, 7], [3, 2], 2, 0, "int32"),
    ],
)
@pytest.mark.parametrize("norm_by_times", [False, True])
def test_kernels(frames, labels, classes, blank, kind, norm_by_times):
    rng = np.random.default_rng(4)
    attrs = {"blank": blank, "norm_by_times": norm_by_times}
    ends, marks = ([0, *np.cumsum(sizes).tolist()] for sizes in (frames, labels))
    rows = {
        "Logits": rng.uniform(-2, 2, (ends[-1], classes)),
        "Label": rng.integers(0, classes, (marks[-1], 1)).astype(kind),
    }
    in_native.check("warpctc", rows, attrs, {"Logits": [[ends]], "Label": [[marks]]})
    count = len(frames)
    padded = {
        "Logits": rng.uniform(-2, 2, (max(frames) + 1, count, classes)),
        "Label": rng.integers(0, classes, (count, max(labels) + 2)).astype(kind),
        "LogitsLength": np.array(frames),
        "LabelLength": np.array(labels).reshape(-1, 1),
    }
    in_native.check("warpctc", padded, attrs)


@pytest.mark.parametrize(
    ("steps", "label", "far", "kind"),
    [(1000, 200, 2.0, "float32"), (30, 10, 500.0, "float64"), (400, 150, 60.0, "float32")],
)
def test_nothing_underflows(steps, label, far, kind):
    rng = np.random.default_rng(5)
    inputs = {
        "Logits": rng.uniform(-far, far, (steps, 6)),
        "Label": rng.integers(1, 6, (label, 1)).astype("int32"),
    }
    lods = {"Logits": [[[0, steps]]], "Label": [[[0, label]]]}
    in_native.check("warpctc", inputs, {}, lods, kinds=(kind,))
    loss = run_kernel("warpctc", inputs, {}, lods)["Loss"][0]
    assert np.isfinite(loss).all() and loss > 100


def test_nothing_at_all_is_impossible():
    inputs = {"Logits": X.reshape(-1, 4)[:7], "Label": np.array([[1], [2], [3]], "int32")}
    lods = {"Logits": [[[0, 0, 7]]], "Label": [[[0, 0, 3]]]}
    in_native.check("warpctc", inputs, {}, lods)
    loss = run_kernel("warpctc", inputs, {}, lods)["Loss"][0]
    assert loss[0, 0] == np.inf and np.isfinite(loss[1, 0])


def test_sequences_of_two_levels():
    deep = {"Logits": [[[0, 1, 2], [0, 4, 7]]], "Label": [[[0, 1, 2], [0, 2, 3]]]}
    plain = run_kernel("warpctc", ROWS, {}, LODS)["Loss"][0]
    np.testing.assert_array_equal(run_kernel("warpctc", ROWS, {}, deep)["Loss"][0], plain)
    in_native.check("warpctc", ROWS, {}, deep)


def column(*tokens):
    return np.array(tokens, "int64").reshape(-1, 1)


@pytest.mark.parametrize(
    ("tokens", "ends", "attrs", "rows", "made"),
    [
        ([1, 1, 0, 1, 2, 2, 3, 0], [0, 5, 8], {}, [1, 1, 2, 2, 3], [0, 3, 5]),
        ([1, 1, 0, 2, 2], [0, 3, 5], {"merge_repeated": False}, [1, 1, 2, 2], [0, 2, 4]),
        ([0, 0, 0, 1], [0, 3, 3, 4], {}, [1], [0, 0, 0, 1]),
        ([0, 0, 0], [0, 1, 3], {}, [-1], [0, 0, 0]),
        ([1, 1, 0], [0, 1, 3], {"blank": 9}, [1, 1, 0], [0, 1, 3]),
    ],
)
def test_what_is_left_of_paths(tokens, ends, attrs, rows, made):
    inputs, lods = {"Input": column(*tokens)}, {"Input": [[ends]]}
    found, count = registry.find("ctc_align").call(np, {"Input": [inputs["Input"]]}, attrs, lods)
    assert found.array.tolist() == column(*rows).tolist() and found.lod[0].tolist() == made and count is None
    if found.lod[0][-1] == len(rows):
        check("ctc_align", inputs, attrs, {"Output": column(*rows)}, lods=lods)


def test_what_is_left_of_padded_paths():
    paths = np.array([[1, 1, 0, 2], [0, 3, 3, 1]])
    inputs = {"Input": paths, "InputLength": np.array([[4], [3]])}
    outputs = {"Output": np.array([[1, 2, -1, -1], [3, -1, -1, -1]]), "OutputLength": np.array([[2], [1]])}
    check("ctc_align", inputs, {"padding_value": -1}, outputs)
    in_native.check("ctc_align", inputs, {"padding_value": -1})
    in_native.check("ctc_align", {**inputs, "InputLength": np.array([0, 4])}, {"merge_repeated": False})
