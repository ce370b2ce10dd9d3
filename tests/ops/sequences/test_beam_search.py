"""beam_search, beam_search_decode and gather_tree against what real Paddle 1.8.5 has given."""

import numpy as np
import pytest

from fluidlite.base.lod import as_lists, as_lod
from fluidlite.base.tensor_array import TensorArray
from fluidlite.ops import registry
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer

LOD = [[0, 2, 4], [0, 1, 2, 3, 4]]
BEFORE = ([1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4])
IDS = [[4, 2, 5], [2, 1, 3], [3, 5, 2], [8, 2, 1]]
SCORES = [[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.9, 0.5, 0.1], [0.7, 0.5, 0.1]]
TIES = [[0.5, 0.5, 0.5], [0.5, 0.5, 0.5], [0.9, 0.5, 0.9], [0.9, 0.9, 0.9]]
ENDED = ([0, 2, 3, 0], [0.55, 0.2, 0.3, 0.4])
BOTH_ENDED = ([0, 0, 3, 0], [0.55, 0.2, 0.3, 0.4])

# What goes in, the attributes, then tokens, scores, rows they come from, and the levels of sequences.
STEPS = {
    "plain": (BEFORE, IDS, SCORES, LOD, {}, [4, 2, 3, 8], [0.5, 0.6, 0.9, 0.7], [0, 1, 2, 3], LOD),
    "ties": (
        BEFORE, IDS, TIES, LOD, {}, [2, 3, 8, 1], [0.5, 0.5, 0.9, 0.9], [1, 1, 3, 3], [[0, 2, 4], [0, 0, 2, 2, 4]],
    ),
    "ties of three": (
        BEFORE, IDS, TIES, LOD, {"beam_size": 3}, [2, 1, 3, 8, 2, 1], [0.5, 0.5, 0.5, 0.9, 0.9, 0.9],
        [1, 1, 1, 3, 3, 3],        [[0, 2, 4], [0, 0, 3, 3, 6]],
    ),
    "ended": (
        ENDED, IDS, SCORES, LOD, {}, [0, 2, 3, 5], [0.55, 0.6, 0.9, 0.5], [0, 1, 2, 2],
        [[0, 2, 4], [0, 1, 2, 4, 4]],
    ),
    "a source has ended": (
        BOTH_ENDED, IDS, SCORES, LOD, {}, [3, 5], [0.9, 0.5], [2, 2], [[0, 2, 4], [0, 0, 0, 2, 2]],
    ),
    "ends now": (
        BEFORE, [[0, 2, 5], [0, 1, 3], [3, 5, 2], [8, 2, 1]], SCORES, LOD, {}, [0, 0, 3, 8], [0.5, 0.6, 0.9, 0.7],
        [0, 1, 2, 3], LOD,
    ),
    "tokens are places": (BEFORE, None, SCORES, LOD, {}, [0, 0, 0, 0], [0.5, 0.6, 0.9, 0.7], [0, 1, 2, 3], LOD),
    "probabilities": (
        BEFORE, IDS, SCORES, LOD, {"is_accumulated": False}, [4, 2, 3, 8],
        [-0.5931471586227417, -0.3108255863189697, 0.19463947415351868, 0.0433250367641449], [0, 1, 2, 3], LOD,
    ),
    "one": (BEFORE, IDS, SCORES, LOD, {"beam_size": 1}, [2, 3], [0.6, 0.9], [1, 2], [[0, 2, 4], [0, 0, 1, 2, 2]]),
    "more than there are": (
        BEFORE, IDS, SCORES, LOD, {"beam_size": 20}, [4, 2, 5, 2, 1, 3, 3, 5, 2, 8, 2, 1], sum(SCORES, []),
        [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], [[0, 2, 4], [0, 3, 6, 9, 12]],
    ),
    "level 1": (
        BEFORE, IDS, SCORES, LOD, {"level": 1}, [4, 2, 2, 1, 3, 5, 8, 2], [0.5, 0.3, 0.6, 0.3, 0.9, 0.5, 0.7, 0.5],
        [0, 0, 1, 1, 2, 2, 3, 3], [[0, 1, 2, 3, 4], [0, 2, 4, 6, 8]],
    ),
    "offsets of offsets": (
        BEFORE, IDS, SCORES, [[0, 1, 2], [0, 2, 4]], {}, [4, 2, 3, 8], [0.5, 0.6, 0.9, 0.7], [0, 1, 2, 3], LOD,
    ),
    "an empty source": (
        BEFORE, IDS, SCORES, [[0, 0, 4], [0, 1, 2, 3, 4]], {}, [3, 8], [0.9, 0.7], [2, 3],
        [[0, 0, 4], [0, 0, 0, 1, 2]],
    ),
}  # fmt: skip


def step(before, ids, scores, lod, attrs):
    definition = registry.find("beam_search")
    inputs = {
        "pre_ids": [np.array(before[0], "int64").reshape(-1, 1)],
        "pre_scores": [np.array(before[1], "float32").reshape(-1, 1)],
        "ids": [] if ids is None else [np.array(ids, "int64")],
        "scores": [np.array(scores, "float32")],
    }
    lods = {slot: [as_lod(lod)] * len(arrays) for slot, arrays in inputs.items()}
    return definition.call(
        np, inputs, {"beam_size": 2, "end_id": 0, "level": 0, "is_accumulated": True, **attrs}, lods
    )


@pytest.mark.parametrize("name", STEPS)
def test_step(name):
    *given, tokens, scores, rows, levels = STEPS[name]
    chosen, best, parents = step(*given)
    assert chosen.array.tolist() == [[token] for token in tokens]
    np.testing.assert_allclose(best.array, np.array(scores).reshape(-1, 1), rtol=1e-6)
    assert parents.tolist() == rows
    assert [as_lists(one.lod) for one in (chosen, best)] == [levels, levels]
    assert [a.dtype.name for a in (chosen.array, best.array, parents)] == ["int64", "float32", "int32"]


def test_step_refuses():
    with pytest.raises(OperatorError, match="level 2, and have 2 levels"):
        step(BEFORE, IDS, SCORES, LOD, {"level": 2})
    with pytest.raises(OperatorError, match="have 2 rows, scores 4"):
        step(BEFORE, IDS, SCORES, [[0, 1], [0, 2]], {})
    for before, ids, message in (
        (tuple(part[:3] for part in BEFORE), IDS, r"pre_ids must be of shape \[4, 1\], .* got \[3, 1\]"),
        (BEFORE, IDS[:3], r" ids must be of shape \[4, 3\], .* got \[3, 3\]"),
    ):
        with pytest.raises(OperatorError, match=message):
            step(before, ids, SCORES, LOD, {})
    one = np.zeros((1, 1), "int64")
    with pytest.raises(OperatorError, match="beam_size must be positive"):
        infer(
            "beam_search", {"pre_ids": one, "pre_scores": one, "scores": np.zeros((1, 2))}, {"beam_size": 0}
        )


def test_whole_hypotheses():
    steps = [
        ([0, 0], [[0, 1, 2], [0, 1, 2]]),
        ([0, 1, 0, 1], [[0, 1, 2], [0, 2, 4]]),
        ([0, 5, 1, 0, 2, 1], [[0, 2, 4], [0, 2, 3, 5, 6]]),
        ([4, 1, 1, 3, 2, 1], [[0, 3, 6], [0, 2, 2, 3, 4, 5, 6]]),
    ]
    ids, scores = TensorArray(), TensorArray()
    for at, (tokens, lod) in enumerate(steps):
        ids.write(at, np.array(tokens, "int64").reshape(-1, 1), as_lod(lod))
        values = [at + 0.1 * k for k in range(len(tokens))]
        scores.write(at, np.array(values, "float32").reshape(-1, 1), as_lod(lod))
    given = {"Ids": [ids], "Scores": [scores]}
    definition = registry.find("beam_search_decode")
    tokens, values = definition.call(np, given, {"beam_size": 3, "end_id": 1}, dict.fromkeys(given, [()]))
    assert tokens.array.tolist() == WHOLE[0]
    np.testing.assert_allclose(values.array, WHOLE[1], rtol=1e-6)
    assert as_lists(tokens.lod) == as_lists(values.lod) == WHOLE[2]


WHOLE = (
    [0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 1, 0, 0, 2, 2, 0, 0, 0, 3],
    [0.0, 3.2, 0.0, 1.0, 2.0, 3.1, 0.0, 1.0, 2.0, 3.0, 0.1, 3.5, 0.1, 1.2, 2.4, 3.4, 0.1, 1.2, 2.3, 3.3],
    [[0, 3, 6], [0, 2, 6, 10, 12, 16, 20]],
)
TOKENS = [[[5, 0, 3], [3, 7, 3]], [[5, 2, 4], [7, 6, 8]], [[8, 1, 6], [7, 7, 8]], [[1, 5, 8], [4, 3, 0]]]
PARENTS = [[[1, 2, 0], [2, 0, 1]], [[1, 2, 0], [1, 1, 1]], [[0, 2, 0], [2, 2, 0]], [[2, 0, 0], [0, 1, 1]]]
TREE = [[[0, 0, 0], [7, 7, 7]], [[5, 5, 5], [8, 8, 8]], [[6, 8, 8], [7, 7, 7]], [[1, 5, 8], [4, 3, 0]]]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("steps", [4, 1])
def test_gather_tree(dtype, steps):
    ids, parents = np.array(TOKENS[-steps:], dtype), np.array(PARENTS[-steps:], dtype)
    check("gather_tree", {"Ids": ids, "Parents": parents}, {}, {"Out": np.array(TREE[-steps:], dtype)})


def test_gather_tree_refuses():
    ids = np.zeros((2, 1, 2), "int64")
    with pytest.raises(OperatorError, match="must be \\[time, batch, beam\\] both"):
        infer("gather_tree", {"Ids": ids, "Parents": ids[:, 0]})
    with pytest.raises(OperatorError, match="dtype of Ids"):
        infer("gather_tree", {"Ids": ids, "Parents": ids.astype("int32")})
