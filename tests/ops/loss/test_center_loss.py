"""add_position_encoding, center_loss and similarity_focus; recorded numbers are those of Fluid 1.8.5."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, gradients, infer, run_kernel

X = np.random.default_rng(0).uniform(-1, 1, (2, 4, 6)).astype("float32")
WAVES = [
    [0.0, 0.0, 0.0, 1.5, 1.5, 1.5],
    [1.2622064, 0.0149998, 0.00015, 0.8104535, 1.499925, 1.5],
    [1.3639462, 0.029998, 0.0003, -0.6242203, 1.4997, 1.5],
    [0.21168, 0.0449933, 0.00045, -1.4849887, 1.499325, 1.4999999],
]
ATTRS = {"alpha": 0.8, "beta": 1.5}


def test_places_in_padded_sequences():
    want = (0.8 * X + np.array(WAVES)).astype("float32")
    check("add_position_encoding", {"X": X}, ATTRS, {"Out": want}, grads=["X"])
    narrow = run_kernel("add_position_encoding", {"X": X[:, :, :2] * 0}, ATTRS)["Out"][0]
    np.testing.assert_allclose(
        narrow[1], [[0, 1.5], [0.00015, 1.5], [0.0003, 1.5], [0.00045, 1.5]], rtol=1e-5
    )


def test_places_begin_anew_in_each_sequence():
    lods = {"X": [[[0, 1, 4]]]}
    want = (0.8 * X[0] + np.array(WAVES)[[0, 0, 1, 2]]).astype("float32")
    check("add_position_encoding", {"X": X[0]}, ATTRS, {"Out": want}, grads=["X"], lods=lods)


def test_an_odd_width():
    with pytest.raises(OperatorError, match="the last dimension of X must be even"):
        infer("add_position_encoding", {"X": X[:, :, :5]})


ROWS = np.array(
    [[0.641986, -0.805797, 0.67589], [-0.807803, 0.952919, -0.062698], [0.953522, 0.209691, 0.478527]]
)
CENTERS = {
    "X": ROWS.astype("float32"),
    "Label": np.array([[1], [2], [1]]),
    "Centers": np.full((4, 3), 0.5, "float32"),
    "CenterUpdateRate": np.array([0.2], "float32"),
}


def test_centres_follow_their_rows():
    made = run_kernel("center_loss", CENTERS, {"cluster_num": 4})
    np.testing.assert_allclose(made["Loss"][0], [[0.8781022], [1.1160567], [0.1452114]], rtol=1e-5)
    np.testing.assert_allclose(
        made["CentersOut"][0],
        [[0.5] * 3, [0.5397006, 0.3935929, 0.5102944], [0.3692197, 0.5452919, 0.4437302], [0.5] * 3],
        rtol=1e-5,
    )
    still = run_kernel("center_loss", CENTERS, {"cluster_num": 4, "need_update": False})
    np.testing.assert_array_equal(still["CentersOut"][0], CENTERS["Centers"])
    weights = {"Loss": [np.array([[2.0], [1.0], [0.5]], "float32")]}
    found = gradients("center_loss", CENTERS, {"cluster_num": 4}, weights)["X"][0]
    np.testing.assert_allclose(found, weights["Loss"][0] * (CENTERS["X"] - 0.5), rtol=1e-5)


def test_labels_without_a_centre():
    with pytest.raises(OperatorError, match=r"Label must be in \[0, 4\)"):
        run_kernel("center_loss", {**CENTERS, "Label": CENTERS["Label"] + 2}, {"cluster_num": 4})
    with pytest.raises(OperatorError, match=r"Centers \[3, width\]"):
        infer("center_loss", CENTERS, {"cluster_num": 3})


SCORES = np.array(
    [
        [[-0.369143, -0.272578, 0.140394], [-0.122797, 0.976748, -0.79591], [-0.582246, -0.677381, 0.306217]],
        [
            [-0.493417, -0.067378, -0.511149],
            [-0.682061, -0.77925, 0.312659],
            [-0.723634, -0.606835, -0.26255],
        ],
    ],
    "float32",
)[None]


@pytest.mark.parametrize(
    ("axis", "indexes", "want"),
    [
        (1, [0], [[[1, 0, 0], [0, 1, 0], [0, 0, 1]]] * 2),
        (1, [0, 1], [[[1, 1, 0], [0, 1, 1], [1, 0, 1]]] * 2),
        (2, [1], [[[0, 1, 0]] * 3, [[0, 0, 1]] * 3]),
        (3, [0], [[[0] * 3, [1] * 3, [0] * 3], [[1] * 3, [0] * 3, [0] * 3]]),
    ],
)
def test_the_largest_of_each_row_and_column(axis, indexes, want):
    attrs = {"axis": axis, "indexes": indexes}
    check("similarity_focus", {"X": SCORES}, attrs, {"Out": np.array([want], "float32")})


def test_a_slice_that_is_not_there():
    with pytest.raises(OperatorError, match=r"indexes must be in \[0, 2\), got 5"):
        infer("similarity_focus", {"X": SCORES}, {"axis": 1, "indexes": [5]})
