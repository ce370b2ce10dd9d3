"""nce and hierarchical_sigmoid; expected numbers are those of Fluid 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite._ext import rng
from fluidlite.ops.registry import OperatorError, find

from ..harness import check, infer, run_kernel

X = np.linspace(-1, 2, 6).reshape(2, 3).astype("float32")
LABEL = np.array([[1], [5]])
WEIGHT = np.array(
    [
        [-0.77435291, 0.14752525, -0.4500899],
        [-0.40080893, 0.42709696, -0.26672709],
        [0.16240311, 0.4431603, 0.52725744],
        [-0.45765162, 0.196491, 0.6548897],
        [-0.65746552, 0.25866354, -0.55239356],
        [0.12701505, -0.56322891, 0.72129178],
        [-0.64526671, 0.4125185, -0.65110081],
    ],
    "float32",
)
NCE = {
    "Input": X,
    "Label": LABEL,
    "Weight": WEIGHT,
    "Bias": np.linspace(-1, 1, 7).reshape(7, 1).astype("float32"),
}
CHANCES = np.array([0.1, 0.2, 0.3, 0.1, 0.1, 0.1, 0.1], "float32")


def test_sampler_bits():
    # The generator of the C++ standard: its 10000th number for the default seed.
    assert rng.sampler_bits(5489, 10000)[-1] == 9981545732273789042


@pytest.mark.parametrize(
    ("sampler", "labels", "cost"),
    [
        (0, [[1, 1, 5, 2], [5, 4, 0, 1]], [[0.7362492], [0.501502]]),
        (1, [[1, 0, 3, 1], [5, 2, 0, 0]], [[0.725623], [0.4346454]]),
    ],
)
def test_nce_draws_and_costs_what_fluid_does(sampler, labels, cost):
    attrs = {"num_total_classes": 7, "num_neg_samples": 3, "seed": 11, "sampler": sampler}
    made = run_kernel("nce", {slot: NCE[slot] for slot in ("Input", "Label", "Weight")}, attrs)
    np.testing.assert_array_equal(made["SampleLabels"][0], labels)
    np.testing.assert_allclose(made["Cost"][0] / 4, cost, rtol=1e-5)


@pytest.mark.parametrize("sampler", [0, 1, 2])
def test_nce_gradients(sampler):
    custom = {
        "CustomDistProbs": CHANCES,
        "CustomDistAlias": np.array([2, 1, 2, 2, 2, 1, 1], "int32"),
        "CustomDistAliasProbs": np.array([0.7, 1, 1, 0.7, 0.7, 0.7, 0.7], "float32"),
    }
    inputs = {**NCE, "SampleWeight": np.array([[0.5], [2.0]], "float32"), **(custom if sampler == 2 else {})}
    attrs = {"num_total_classes": 7, "num_neg_samples": 4, "seed": 5, "sampler": sampler}
    check("nce", inputs, attrs, grads=["Input", "Weight", "Bias"])


def test_nce_with_several_labels_and_given_negatives():
    attrs = {"num_total_classes": 7, "num_neg_samples": 2, "custom_neg_classes": [0, 6]}
    inputs = {**NCE, "Label": np.array([[1, 2], [5, 5]])}
    assert run_kernel("nce", inputs, attrs)["SampleLabels"][0].tolist() == [[1, 2, 0, 6], [5, 5, 0, 6]]
    check("nce", inputs, attrs, grads=["Input", "Weight", "Bias"])


def test_nce_draws_anew_without_a_seed():
    attrs = {"num_total_classes": 1000, "num_neg_samples": 50}
    inputs = {"Input": X, "Label": LABEL, "Weight": np.zeros((1000, 3), "float32")}
    first, second = (run_kernel("nce", inputs, attrs)["SampleLabels"][0] for _ in range(2))
    assert (first != second).any() and first.min() >= 0 and first.max() < 1000


def test_custom_distribution_is_followed():
    inputs = {
        "Input": X,
        "Label": LABEL[:, :1] * 0,
        "Weight": np.zeros((2, 3), "float32"),
        "CustomDistProbs": np.array([0.25, 0.75], "float32"),
        "CustomDistAlias": np.array([1, 1], "int32"),
        "CustomDistAliasProbs": np.array([0.5, 1.0], "float32"),
    }
    attrs = {"num_total_classes": 2, "num_neg_samples": 4000, "seed": 3, "sampler": 2}
    drawn = run_kernel("nce", inputs, attrs)["SampleLabels"][0][:, 1:]
    assert abs(drawn.mean() - 0.75) < 0.02


def _drawn(sampler, classes, rows, seed, **tables):
    inputs = {"Input": np.ones((rows, 1), "float32"), "Label": np.zeros((rows, 1), "int64")}
    inputs |= {"Weight": np.zeros((classes, 1), "float32"), **tables}
    attrs = {"num_total_classes": classes, "num_neg_samples": 300, "seed": seed, "sampler": sampler}
    return run_kernel("nce", inputs, attrs)["SampleLabels"][0][:, 1:].ravel()


def test_many_classes_are_drawn_as_fluid_rounds():
    drawn = _drawn(1, 1000003, 1, 77)
    assert drawn[:5].tolist() == [24, 914, 13, 941012, 3751]
    assert drawn[[135, 143, 236]].tolist() == [381566, 642159, 843950]


def test_a_number_beyond_the_columns_is_redrawn():
    classes, rows = 100000, 61
    tables = {
        "CustomDistProbs": np.full(classes, 1 / classes, "float32"),
        "CustomDistAlias": np.full(classes, -1, "int32"),
        "CustomDistAliasProbs": np.ones(classes, "float32"),
    }
    words = iter(np.frombuffer(np.random.RandomState(3).bytes(16 * 300 * rows), "<u4").tolist())
    wanted, redrawn = [], 0
    scale = (2**32 - 1) // classes
    for _ in range(300 * rows):
        while (column := next(words) // scale) >= classes:
            redrawn += 1
        wanted.append(column)
        next(words), next(words)  # they choose between the classes of a column, all of which are its own here
    assert redrawn == 1
    np.testing.assert_array_equal(_drawn(2, classes, rows, 3, **tables), wanted)


SPARSE = {
    "nce": (
        {**NCE, "Label": np.array([[1], [1]])},
        {"num_total_classes": 7, "num_neg_samples": 4, "seed": 5},
        "Weight",
    ),
    "hierarchical_sigmoid": (
        {
            "X": X,
            "W": np.linspace(-1, 1, 18).reshape(6, 3).astype("float32"),
            "Label": LABEL,
            "Bias": np.linspace(-1, 1, 6).reshape(6, 1).astype("float32"),
            "PathTable": np.array([[0, 1, -1, 4], [0, 2, 5, -1]]),
            "PathCode": np.array([[1, 0, -1, 1], [0, 1, 1, -1]]),
        },
        {"num_classes": 6},
        "W",
    ),
}


@pytest.mark.parametrize("op_type", SPARSE)
def test_sparse_gradients_name_each_row_once(op_type):
    inputs, attrs, table = SPARSE[op_type]
    made = run_kernel(op_type, inputs, attrs)
    out = next(iter(made))
    given = {
        **inputs,
        **{slot: made[slot][0] for slot in ("PreOut", "SampleLogits", "SampleLabels") if slot in made},
    }
    given[out + "@GRAD"] = np.array([[1.0], [-0.5]], "float32")
    dense = run_kernel(op_type + "_grad", given, attrs)
    definition = find(op_type + "_grad")
    lists = {slot: [value] for slot, value in given.items()}
    found = definition.call(np, lists, {**attrs, "is_sparse": True})
    sparse = dict(zip([slot.name for slot in definition.output_slots], found, strict=True))
    rows = sparse[table + "@GRAD"]
    looked_at = made["SampleLabels"][0] if op_type == "nce" else np.array([0, 1, 2, 5])
    np.testing.assert_array_equal(rows.rows, np.unique(looked_at))
    np.testing.assert_allclose(rows.dense(), dense[table + "@GRAD"][0], rtol=1e-6, atol=1e-7)
    for slot in set(dense) - {table + "@GRAD"}:
        np.testing.assert_array_equal(sparse[slot], dense[slot][0])


def test_nce_takes_the_first_of_more_weights():
    attrs = {"num_total_classes": 7, "num_neg_samples": 2, "seed": 3}
    weights = np.array([[0.5], [2.0], [9.0]], "float32")
    more, enough = (run_kernel("nce", {**NCE, "SampleWeight": weights[:count]}, attrs) for count in (3, 2))
    np.testing.assert_array_equal(more["Cost"][0], enough["Cost"][0])


def test_nce_says_what_does_not_fit():
    attrs = {"num_total_classes": 7, "num_neg_samples": 2}
    with pytest.raises(OperatorError, match=r"Weight must be of shape \[6, 3\], got \[7, 3\]"):
        infer("nce", NCE, {**attrs, "num_total_classes": 6})
    with pytest.raises(OperatorError, match="operator nce: Label must be in \\[0, 7\\)"):
        run_kernel("nce", {**NCE, "Label": LABEL + 2}, attrs)
    with pytest.raises(OperatorError, match="Label must have 2 rows, as many as Input, got 3"):
        infer("nce", {**NCE, "Label": LABEL[[0, 0, 1]]}, attrs)
    with pytest.raises(
        OperatorError, match="SampleWeight must have 2 rows, as many as Input, or more, got 1"
    ):
        infer("nce", {**NCE, "SampleWeight": np.ones((1, 1), "float32")}, attrs)
    with pytest.raises(OperatorError, match="sampler custom_dist needs CustomDistProbs"):
        infer("nce", NCE, {**attrs, "sampler": 2})


NODES = np.array(
    [
        [-0.86575288, 0.16493815, -0.50321579],
        [-0.448118, 0.47750896, -0.29820997],
        [0.18157214, 0.4954682, 0.58949167],
        [-0.51166999, 0.21968359, 0.732189],
        [-0.73506874, 0.28919452, -0.61759472],
    ],
    "float32",
)
PATHS = {"PathTable": np.array([[0, 1, -1], [0, 2, 3]]), "PathCode": np.array([[1, 0, -1], [0, 1, 1]])}


def test_hierarchical_sigmoid():
    inputs = {"X": X, "W": NODES, "Label": LABEL}
    made = run_kernel("hierarchical_sigmoid", inputs, {"num_classes": 6})
    np.testing.assert_allclose(made["Out"][0], [[1.9292454], [2.6890535]], rtol=1e-5)
    inputs["Bias"] = np.linspace(-1, 1, 5).reshape(5, 1).astype("float32")
    check("hierarchical_sigmoid", inputs, {"num_classes": 6}, grads=["X", "W", "Bias"])


def test_hierarchical_sigmoid_along_given_paths():
    inputs = {"X": X, "W": NODES, "Label": LABEL, **PATHS}
    check("hierarchical_sigmoid", inputs, {"num_classes": 5}, grads=["X", "W"])


def test_hierarchical_sigmoid_says_what_does_not_fit():
    inputs = {"X": X, "W": NODES, "Label": LABEL}
    with pytest.raises(OperatorError, match="PathTable and PathCode must be given together"):
        infer("hierarchical_sigmoid", {**inputs, "PathTable": PATHS["PathTable"]}, {"num_classes": 6})
    with pytest.raises(OperatorError, match="Label must be in \\[0, 6\\)"):
        run_kernel("hierarchical_sigmoid", {**inputs, "Label": LABEL + 1}, {"num_classes": 6})
    longer = {"PathTable": PATHS["PathTable"], "PathCode": np.zeros((2, 4), "int64")}
    with pytest.raises(OperatorError, match=r"must be of one shape, got \[2, 3\] and \[2, 4\]"):
        infer("hierarchical_sigmoid", {**inputs, **longer}, {"num_classes": 6})
    with pytest.raises(OperatorError, match="PathTable must have 2 rows, as many as X, got 1"):
        infer("hierarchical_sigmoid", {**inputs, **{k: v[:1] for k, v in PATHS.items()}}, {"num_classes": 6})
    with pytest.raises(OperatorError, match="PathTable must be in \\[0, 5\\)"):
        run_kernel(
            "hierarchical_sigmoid",
            {**inputs, **PATHS, "PathTable": PATHS["PathTable"] + 2},
            {"num_classes": 6},
        )


LOGITS = np.random.default_rng(1).uniform(-1, 1, (3, 20)).astype("float32")
SAMPLED = {"Logits": LOGITS, "Labels": np.array([[1], [5], [8]])}


def test_sampled_classes_are_those_of_fluid():
    made = run_kernel("sample_logits", SAMPLED, {"num_samples": 5, "seed": 7})
    assert made["Samples"][0].tolist() == [[label, 8, 16, 0, 14, 11] for label in (1, 5, 8)]
    chances = [0.2184976, 0.1242447, 0.8360847, 0.1392774, 0.1701394]
    np.testing.assert_allclose(made["Probabilities"][0][0], [0.6322882, *chances], rtol=1e-5)
    scores = np.take_along_axis(LOGITS, made["Samples"][0], 1) - np.log(made["Probabilities"][0])
    np.testing.assert_allclose(made["SampledLogits"][0][:2], scores[:2], rtol=1e-5)
    assert made["SampledLogits"][0][2, 1] < -1e19, "a drawn class that is the true one is left out"
    kept = run_kernel(
        "sample_logits", SAMPLED, {"num_samples": 5, "seed": 7, "remove_accidental_hits": False}
    )
    np.testing.assert_allclose(kept["SampledLogits"][0], scores, rtol=1e-5)


def test_sampled_gradients():
    attrs = {"num_samples": 5, "seed": 7, "remove_accidental_hits": False}
    check("sample_logits", SAMPLED, attrs, grads=["Logits"])
    custom = {
        "CustomizedSamples": np.array([[1, 4, 4], [5, 0, 2], [8, 3, 9]]),
        "CustomizedProbabilities": np.full((3, 3), 0.25, "float32"),
    }
    check(
        "sample_logits",
        {**SAMPLED, **custom},
        {"num_samples": 2, "use_customized_samples": True},
        {"Samples": custom["CustomizedSamples"]},
        grads=["Logits"],
    )


def test_more_samples_than_classes():
    with pytest.raises(OperatorError, match="num_samples must be at most 20, got 21"):
        run_kernel("sample_logits", SAMPLED, {"num_samples": 21})
    with pytest.raises(OperatorError, match="use_customized_samples needs CustomizedSamples"):
        infer("sample_logits", SAMPLED, {"num_samples": 2, "use_customized_samples": True})


def test_cost_alone(programs):
    """The drawn classes are passed on from kernel to kernel though no other operator reads them."""
    x, label = fluid.data("x", [None, 3], "float32"), fluid.data("label", [None, 1], "int64")
    cost = fluid.layers.nce(x, label, num_total_classes=7, num_neg_samples=2, seed=1)
    samples = x.block.ops[0].output("SampleLabels")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = {"x": X, "label": LABEL}
    (alone,) = exe.run(feed=feed, fetch_list=[cost])
    fetched, _ = exe.run(feed=feed, fetch_list=[cost, *samples])
    np.testing.assert_array_equal(alone, fetched)
    assert np.isfinite(alone).all() and alone.shape == (2, 1)
