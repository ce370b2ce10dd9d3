"""linear_chain_crf and crf_decoding: against all paths one by one, recorded numbers of Fluid 1.8.5, and far from 0."""

import itertools

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from .. import in_native
from ..harness import check, gradients, infer, run_kernel

RNG = np.random.default_rng(7)
LOD = [0, 3, 3, 4, 8]
TAGS = 3
X = RNG.uniform(-1, 1, (8, TAGS)).astype("float32")
W = RNG.uniform(-1, 1, (TAGS + 2, TAGS)).astype("float32")
LABEL = RNG.integers(0, TAGS, (8, 1))
ROWS = {"Emission": X, "Transition": W, "Label": LABEL}
LODS = {"Emission": [[LOD]], "Label": [[LOD]]}


def padded(x, width):
    """Rows of LOD as [4, width, ...], with arbitrary padding."""
    whole = np.full((4, width, *x.shape[1:]), 7, x.dtype)
    for s in range(4):
        whole[s, : LOD[s + 1] - LOD[s]] = x[LOD[s] : LOD[s + 1]]
    return whole


PADDED = {
    "Emission": padded(X, 5),
    "Transition": W,
    "Label": padded(LABEL, 5),
    "Length": np.diff(LOD).reshape(-1, 1),
}


def score(x, path):
    inner = sum(W[2 + a, b] for a, b in itertools.pairwise(path))
    return W[0, path[0]] + W[1, path[-1]] + inner + sum(row[tag] for row, tag in zip(x, path, strict=True))


def sequences():
    return [X[a:b].astype("float64") for a, b in itertools.pairwise(LOD)]


def costs():
    found = []
    for x, begin in zip(sequences(), LOD, strict=False):
        every = [score(x, path) for path in itertools.product(range(TAGS), repeat=len(x)) if path]
        own = LABEL[begin : begin + len(x), 0]
        found.append(np.log(np.exp(every).sum()) - score(x, own) if every else 0.0)
    return np.array(found, "float32").reshape(-1, 1)


def best_paths():
    found = []
    for x in sequences():
        found += (
            max(itertools.product(range(TAGS), repeat=len(x)), key=lambda p: score(x, p)) if len(x) else ()
        )  # noqa: B023
    return np.array(found).reshape(-1, 1)


def test_costs_and_gradients_of_sequences():
    check(
        "linear_chain_crf",
        ROWS,
        {},
        {"LogLikelihood": costs()},
        ["Emission", "Transition"],
        lods=LODS,
        rtol=1e-5,
    )


def test_costs_and_gradients_of_padded_sequences():
    check("linear_chain_crf", PADDED, {}, {"LogLikelihood": costs()}, ["Emission", "Transition"], rtol=1e-5)
    plain = {**PADDED, "Label": PADDED["Label"].reshape(4, 5), "Length": np.diff(LOD)}
    made = run_kernel("linear_chain_crf", plain)
    np.testing.assert_allclose(made["LogLikelihood"][0], costs(), rtol=1e-5)


def test_what_else_fluid_keeps():
    made = run_kernel("linear_chain_crf", ROWS, {}, LODS)
    np.testing.assert_allclose(made["TransitionExps"][0], np.exp(W), rtol=1e-6)
    np.testing.assert_allclose(made["EmissionExps"][0], np.exp(X - X.max(axis=1, keepdims=True)), rtol=1e-6)
    alpha = made["Alpha"][0]
    first = np.exp(W[0].astype("float64") + X[3])
    np.testing.assert_allclose(alpha[3], first / first.sum(), rtol=1e-6)
    np.testing.assert_allclose(alpha.sum(axis=1), np.ones(8), rtol=1e-6)
    alpha = run_kernel("linear_chain_crf", PADDED)["Alpha"][0]
    assert not alpha[1].any() and not alpha[0, 3:].any()


def test_recorded_numbers():
    x = np.random.RandomState(0).uniform(-1, 1, (6, 3)).astype("float32")
    rng = np.random.RandomState(0)
    rng.uniform(-1, 1, (6, 3))
    w = rng.uniform(-1, 1, (5, 3)).astype("float32")
    label = np.array([0, 1, 2, 2, 1, 0]).reshape(-1, 1)
    inputs, lods = (
        {"Emission": x, "Transition": w, "Label": label},
        {"Emission": [[[0, 2, 6]]], "Label": [[[0, 2, 6]]]},
    )
    made = run_kernel("linear_chain_crf", inputs, {}, lods)
    np.testing.assert_allclose(made["LogLikelihood"][0], [[3.1229999], [3.1737568]], rtol=1e-6)
    np.testing.assert_allclose(made["Alpha"][0][5], [0.2739135, 0.1786433, 0.5474432], rtol=1e-6)
    found = gradients("linear_chain_crf", inputs, {}, {"LogLikelihood": [np.ones((2, 1), "float32")]}, lods)
    np.testing.assert_allclose(found["Emission"][0][2], [0.0894294, 0.3700395, -0.4594688], rtol=1e-5)
    np.testing.assert_allclose(found["Transition"][0][4], [0.1608033, -0.3362806, -0.6559862], rtol=1e-5)
    path = run_kernel("crf_decoding", inputs, {}, lods)["ViterbiPath"][0]
    assert path.ravel().tolist() == [0, 0, 1, 0, 1, 0], "where the labels are those of the best path"


def test_best_paths():
    lods = {"Emission": [[LOD]]}
    inputs = {"Emission": X, "Transition": W}
    check("crf_decoding", inputs, {}, {"ViterbiPath": best_paths()}, lods=lods)
    same = {"ViterbiPath": (best_paths() == LABEL).astype("int64")}
    check("crf_decoding", {**inputs, "Label": LABEL}, {}, same, lods={**lods, "Label": [[LOD]]})
    wide = {slot: PADDED[slot] for slot in ("Emission", "Transition", "Length")}
    path = run_kernel("crf_decoding", wide)["ViterbiPath"][0]
    assert path.shape == (4, 5) and path[0, :3].tolist() == best_paths()[:3, 0].tolist()
    assert not path[1].any() and not path[0, 3:].any()
    zeros = {**wide, "Label": np.zeros((4, 5), "int64")}
    found = run_kernel("crf_decoding", zeros)["ViterbiPath"][0]
    assert found[0].tolist() == [*(path[0, :3] == 0).astype(int), 0, 0], "nothing is right behind the end"


def test_of_equally_good_tags_the_first():
    inputs = {"Emission": X[:4] * 0, "Transition": W * 0}
    in_native.check("crf_decoding", inputs, {}, {"Emission": [[[0, 4]]]})
    assert not run_kernel("crf_decoding", inputs, {}, {"Emission": [[[0, 4]]]})["ViterbiPath"][0].any()


@pytest.mark.parametrize(
    ("lengths", "tags"),
    [([2, 0, 4], 3), ([1], 1), ([1, 1, 5], 1), ([0, 0], 4), ([3, 7, 2], 9), ([17, 30], 33)],
    ids=str,
)
def test_kernels(lengths, tags):
    offsets, count, steps = [0, *np.cumsum(lengths).tolist()], len(lengths), max(lengths) + 1
    moves = RNG.uniform(-1, 1, (tags + 2, tags))
    for shape, more, lods in (
        ((offsets[-1],), {}, {"Emission": [[offsets]], "Label": [[offsets]]}),
        ((count, steps), {"Length": np.array(lengths)}, None),
    ):
        x, label = RNG.uniform(-1, 1, (*shape, tags)), RNG.integers(0, tags, (*shape, 1))
        inputs = {"Emission": x, "Transition": moves, "Label": label, **more}
        in_native.check("linear_chain_crf", inputs, {}, lods)
        in_native.check("crf_decoding", inputs, {}, lods)
        del inputs["Label"]
        in_native.check("crf_decoding", inputs, {}, lods and {"Emission": lods["Emission"]})


@pytest.mark.parametrize(("lengths", "far", "kind"), [([1000], 1.0, "float32"), ([9, 30], 300.0, "float64")])
def test_nothing_underflows(lengths, far, kind):
    """Many steps; scores far apart and transitions as good as forbidden, as masks make them."""
    offsets = [0, *np.cumsum(lengths).tolist()]
    moves = RNG.uniform(-1, 1, (6, 4))
    moves[2, 1] = moves[3, 0] = moves[4, :3] = -1e4
    inputs = {
        "Emission": RNG.uniform(-far, far, (offsets[-1], 4)),
        "Transition": moves,
        "Label": RNG.integers(0, 4, (offsets[-1], 1)),
    }
    lods = {"Emission": [[offsets]], "Label": [[offsets]]}
    in_native.check("linear_chain_crf", inputs, {}, lods, kinds=(kind,))
    assert np.isfinite(run_kernel("linear_chain_crf", inputs, {}, lods)["LogLikelihood"][0]).all()


def test_what_does_not_fit():
    with pytest.raises(OperatorError, match=r"Transition must be of shape \[5, 3\] for 3 tags, got \[4, 3\]"):
        infer("linear_chain_crf", {**ROWS, "Transition": W[:4]})
    with pytest.raises(OperatorError, match=r"Label must be of shape \[8, 1\], got \[7, 1\]"):
        infer("linear_chain_crf", {**ROWS, "Label": LABEL[:7]})
    with pytest.raises(OperatorError, match=r"Emission must be \[batch, time, tags\] with a Length"):
        infer("crf_decoding", {"Emission": X, "Transition": W, "Length": np.array([8])})
    with pytest.raises(OperatorError, match="Length must have 4 elements, one for each sequence, got 2"):
        infer("linear_chain_crf", {**PADDED, "Length": np.array([1, 2])})
    with pytest.raises(OperatorError, match=r"Label must be in \[0, 3\); got -1"):
        run_kernel("linear_chain_crf", {**ROWS, "Label": LABEL * 0 - 1}, {}, LODS)
    with pytest.raises(OperatorError, match="sequence 1 has 6 rows, which does not fit the 5 that there are"):
        run_kernel("linear_chain_crf", {**PADDED, "Length": np.array([1, 6, 0, 0])})
    with pytest.raises(OperatorError, match="Label has no LoD information"):
        run_kernel("linear_chain_crf", ROWS, {}, {"Emission": [[LOD]]})
