"""Elements picked by index, mask or place."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

A = np.linspace(-1, 1, 6).reshape(2, 3).astype("float32")
CUBE = np.linspace(-2, 2, 24).reshape(2, 3, 4).astype("float32")
COLUMNS, PER_ROW = np.array([2, 0, 2], "int32"), np.array([[2, 0], [1, 1]])

CASES = [
    ("index_select", {"X": A, "Index": COLUMNS}, {"dim": 1}, A[:, COLUMNS]),
    ("index_select", {"X": CUBE, "Index": COLUMNS}, {"dim": -2}, CUBE[:, COLUMNS]),
    ("index_sample", {"X": A, "Index": PER_ROW}, {}, np.take_along_axis(A, PER_ROW, 1)),
    ("roll", {"X": A}, {"shifts": [1, 2], "dims": [0, 1]}, np.roll(A, (1, 2), (0, 1))),
    ("roll", {"X": A}, {"shifts": [-4], "dims": []}, np.roll(A, -4)),
    ("trace", {"Input": CUBE}, {"offset": 1, "dim1": -1, "dim2": -2}, np.trace(CUBE, 1, 1, 2)),
    ("trace", {"Input": A}, {}, np.trace(A).reshape(1)),
    ("diag_embed", {"Input": A}, {"offset": -1}, np.stack([np.diag(row, -1) for row in A])),
    ("diag_embed", {"Input": A}, {"dim1": 2, "dim2": 0}, np.stack([np.diag(row) for row in A], axis=1)),
    ("tril_triu", {"X": CUBE}, {"diagonal": -1, "lower": True}, np.tril(CUBE, -1)),
    ("tril_triu", {"X": A}, {"diagonal": 1, "lower": False}, np.triu(A, 1)),
]


@pytest.mark.parametrize(("op_type", "inputs", "attrs", "expected"), CASES)
def test_value_and_gradient(op_type, inputs, attrs, expected):
    slot = "Input" if "Input" in inputs else "X"
    check(op_type, inputs, attrs, {"Out": np.ascontiguousarray(expected)}, grads=[slot])


def test_unbind():
    check("unbind", {"X": A}, {"axis": -1}, {"Out": [A[:, 0], A[:, 1], A[:, 2]]}, grads=["X"])
    with pytest.raises(OperatorError, match="dimension 0 of X has 2 entries, got 1 outputs"):
        infer("unbind", {"X": A}, {"axis": 0})


def test_meshgrid():
    vectors = [A[0], A[1, :2], np.array([5.0], "float32")]
    expected = list(np.meshgrid(*vectors, indexing="ij"))
    check("meshgrid", {"X": vectors}, {}, {"Out": expected}, grads=["X"])
    with pytest.raises(OperatorError, match="all X must be vectors"):
        infer("meshgrid", {"X": [A[0], A]}, outputs={"Out": 2})


def test_masked_select():
    mask = A > 0
    assert infer("masked_select", {"X": A, "Mask": mask})["Y"][0][0] == (-1,)
    check("masked_select", {"X": A, "Mask": mask}, {}, {"Y": A[mask]})
    inputs = {"X": A, "Mask": mask, "Y@GRAD": np.array([1, 2, 3], "float32")}
    back = run_kernel("masked_select_grad", inputs)["X@GRAD"][0]
    np.testing.assert_array_equal(back, [[0, 0, 0], [1, 2, 3]])


def test_indices_out_of_range():
    with pytest.raises(OperatorError, match=r"index_select: Index must be in \[0, 3\)"):
        run_kernel("index_select", {"X": A, "Index": COLUMNS + 1}, {"dim": 1})
    with pytest.raises(OperatorError, match=r"index_sample: Index must be in \[0, 3\)"):
        run_kernel("index_sample", {"X": A, "Index": PER_ROW - 1})
    with pytest.raises(OperatorError, match="dim1 and dim2 must differ, got 1"):
        infer("trace", {"Input": CUBE}, {"dim1": 1, "dim2": -2})
