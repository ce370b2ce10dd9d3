"""edit_distance and chunk_eval: against plain Python and recorded numbers of Fluid 1.8.5."""

import itertools

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from .. import in_native
from ..harness import check, infer, run_kernel


def column(*tokens):
    return np.array(tokens, "int64").reshape(-1, 1)


def steps_between(a, b):
    if not a or not b:
        return len(a) + len(b)
    return min(
        steps_between(a[1:], b) + 1, steps_between(a, b[1:]) + 1, steps_between(a[1:], b[1:]) + (a[0] != b[0])
    )


HYPS, REFS = [[1, 2, 3], [], [4, 5], [6]], [[1, 3], [2, 2], [9, 9, 4, 5], [6]]


def offsets(sequences):
    return [0, *np.cumsum([len(one) for one in sequences]).tolist()]


def wide(sequences, width):
    return np.array([one + [8] * (width - len(one)) for one in sequences])


LODS = {"Hyps": [[offsets(HYPS)]], "Refs": [[offsets(REFS)]]}


@pytest.mark.parametrize("normalized", [False, True])
def test_edit_distance(normalized):
    want = [steps_between(a, b) / (len(b) if normalized else 1) for a, b in zip(HYPS, REFS, strict=True)]
    outputs = {"Out": np.array(want, "float32").reshape(-1, 1), "SequenceNum": np.array([4])}
    attrs = {"normalized": normalized}
    rows = {"Hyps": column(*itertools.chain(*HYPS)), "Refs": column(*itertools.chain(*REFS))}
    check("edit_distance", rows, attrs, outputs, lods=LODS)
    in_native.check("edit_distance", rows, attrs, LODS)
    lengths = {"HypsLength": np.array([3, 0, 2, 1]), "RefsLength": np.array([[2], [2], [4], [1]])}
    padded = {"Hyps": wide(HYPS, 4), "Refs": wide(REFS, 5), **lengths}
    check("edit_distance", padded, attrs, outputs)
    in_native.check("edit_distance", padded, attrs)


def test_edit_distance_of_random_sequences():
    rng = np.random.default_rng(0)
    a, b = ([rng.integers(0, 3, n).tolist() for n in rng.integers(1, 6, 30)] for _ in range(2))
    want = [[steps_between(x, y)] for x, y in zip(a, b, strict=True)]
    inputs = {"Hyps": column(*itertools.chain(*a)), "Refs": column(*itertools.chain(*b))}
    lods = {"Hyps": [[offsets(a)]], "Refs": [[offsets(b)]]}
    assert run_kernel("edit_distance", inputs, {}, lods)["Out"][0].tolist() == want
    in_native.check("edit_distance", inputs, {}, lods)


def test_an_empty_reference():
    inputs, lods = (
        {"Hyps": column(1, 2), "Refs": column(1, 3)},
        {"Hyps": [[[0, 1, 2]]], "Refs": [[[0, 0, 2]]]},
    )
    assert run_kernel("edit_distance", inputs, {}, lods)["Out"][0].tolist() == [[1], [2]]
    with pytest.raises(OperatorError, match="sequence 0 of Refs is empty"):
        run_kernel("edit_distance", inputs, {"normalized": True}, lods)


# Labels of two sequences of 5 and 3, found and wanted, and what Fluid 1.8.5 makes of them: scheme, types, excluded
# types, then found, wanted and correct chunks.
FOUND, WANTED = column(0, 1, 4, 2, 3, 4, 0, 1), column(0, 1, 4, 2, 3, 3, 0, 0)
SEEN = [
    ("IOB", 2, [], [3, 5, 2]), ("IOE", 2, [], [3, 4, 3]), ("IOBES", 1, [], [4, 6, 3]),
    ("plain", 4, [], [6, 6, 4]), ("IOB", 2, [0], [1, 2, 1]), ("IOB", 2, [5], [3, 5, 2]),
]  # fmt: skip


def shares(inferred, labelled, correct):
    precision, recall = correct / inferred, correct / labelled
    return [precision, recall, 2 * precision * recall / (precision + recall)]


@pytest.mark.parametrize(("scheme", "types", "excluded", "counts"), SEEN)
def test_chunks(scheme, types, excluded, counts):
    inputs, lods = {"Inference": FOUND, "Label": WANTED}, {"Inference": [[[0, 5, 8]]], "Label": [[[0, 5, 8]]]}
    attrs = {"chunk_scheme": scheme, "num_chunk_types": types, "excluded_chunk_types": excluded}
    names = ("NumInferChunks", "NumLabelChunks", "NumCorrectChunks")
    outputs = {name: np.array([count]) for name, count in zip(names, counts, strict=True)}
    for name, share in zip(("Precision", "Recall", "F1-Score"), shares(*counts), strict=True):
        outputs[name] = np.array([share], "float32")
    check("chunk_eval", inputs, attrs, outputs, lods=lods)
    in_native.check("chunk_eval", inputs, attrs, lods)
    padded = {
        "Inference": wide([FOUND[:5, 0].tolist(), FOUND[5:, 0].tolist()], 6),
        "Label": wide([WANTED[:5, 0].tolist(), WANTED[5:, 0].tolist()], 6),
        "SeqLength": np.array([5, 3]),
    }
    in_native.check("chunk_eval", padded, attrs)
    check("chunk_eval", padded, attrs, outputs)


@pytest.mark.parametrize(
    ("scheme", "tags", "counts"),
    [("IOB", 2, [90, 90, 36]), ("IOE", 2, [90, 90, 36]), ("IOBES", 4, [900, 900, 528])],
)
def test_chunks_of_all_short_sequences(scheme, tags, counts):
    """All pairs of sequences of two labels of one type; the counts are those of Fluid 1.8.5."""
    every = list(itertools.product(range(tags + 1), repeat=2))
    pairs = np.array(list(itertools.product(every, every)))
    inputs = {"Inference": pairs[:, 0], "Label": pairs[:, 1], "SeqLength": np.full(len(pairs), 2)}
    attrs = {"chunk_scheme": scheme, "num_chunk_types": 1}
    made = run_kernel("chunk_eval", inputs, attrs)
    assert [int(made[f"Num{kind}Chunks"][0][0]) for kind in ("Infer", "Label", "Correct")] == counts
    in_native.check("chunk_eval", inputs, attrs)


def test_no_chunks_at_all():
    inputs, lods = (
        {"Inference": column(4, 4), "Label": column(4, 4)},
        {"Inference": [[[0, 2]]], "Label": [[[0, 2]]]},
    )
    made = run_kernel("chunk_eval", inputs, {"num_chunk_types": 2}, lods)
    assert [float(items[0][0]) for items in made.values()] == [0] * 6
    in_native.check("chunk_eval", inputs, {"num_chunk_types": 2}, lods)


def test_what_does_not_fit():
    inputs, lods = {"Inference": FOUND, "Label": WANTED}, {"Inference": [[[0, 5, 8]]], "Label": [[[0, 5, 8]]]}
    with pytest.raises(OperatorError, match=r"Inference must be in \[0, 3\): 1 types of 2 tags"):
        run_kernel("chunk_eval", inputs, {"num_chunk_types": 1}, lods)
    with pytest.raises(OperatorError, match="must have the same sequences"):
        run_kernel("chunk_eval", inputs, {"num_chunk_types": 2}, {**lods, "Label": [[[0, 3, 8]]]})
    with pytest.raises(OperatorError, match="must be of one shape"):
        infer("chunk_eval", {**inputs, "Label": WANTED[:7]}, {})
    with pytest.raises(OperatorError, match="HypsLength and RefsLength must be given together"):
        infer("edit_distance", {"Hyps": FOUND, "Refs": WANTED, "HypsLength": np.array([1])})
    with pytest.raises(OperatorError, match="Hyps has 2 sequences and Refs 1"):
        run_kernel(
            "edit_distance", {"Hyps": FOUND, "Refs": WANTED}, {}, {"Hyps": [[[0, 3, 8]]], "Refs": [[[0, 8]]]}
        )
