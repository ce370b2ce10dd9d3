"""Table lookup and one-hot vectors."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

TABLE = np.arange(15, dtype="float32").reshape(5, 3) + 1


@pytest.mark.parametrize("padding", [-1, 2])
@pytest.mark.parametrize(
    ("op_type", "ids", "lead"),
    [("lookup_table", [[0], [2], [2], [4]], (4,)), ("lookup_table_v2", [[0, 2], [2, 4]], (2, 2))],
)
def test_lookup(op_type, ids, lead, padding):
    ids = np.array(ids)
    want = TABLE[ids.reshape(-1)]
    want[ids.reshape(-1) == padding] = 0
    inputs = {"W": TABLE, "Ids": ids}
    check(op_type, inputs, {"padding_idx": padding}, {"Out": want.reshape(*lead, 3)}, grads=("W",))


@pytest.mark.parametrize("op_type", ["lookup_table", "lookup_table_v2"])
@pytest.mark.parametrize("bad", [5, -1])
def test_ids_out_of_range(op_type, bad):
    message = rf"operator {op_type}: Ids must be in \[0, 5\).* 5 rows in W; got {bad} at position 1"
    with pytest.raises(OperatorError, match=message):
        run_kernel(op_type, {"W": TABLE, "Ids": np.array([[0], [bad]])})


@pytest.mark.parametrize(
    ("op_type", "ids", "attrs", "message"),
    [
        (
            "lookup_table",
            np.zeros((2, 3), "int64"),
            {},
            r"last dimension of Ids must be 1, got shape \[2, 3\]",
        ),
        ("lookup_table_v2", np.zeros((2, 3), "float32"), {}, "Ids must be int64 or int32"),
    ],
)
def test_what_does_not_fit_is_refused(op_type, ids, attrs, message):
    with pytest.raises(OperatorError, match=message):
        infer(op_type, {"W": TABLE, "Ids": ids}, attrs, exact=True)


@pytest.mark.parametrize("op_type", ["lookup_table", "lookup_table_v2"])
def test_padding_may_be_an_index_beyond_the_table(op_type):
    ids = np.array([[1], [5], [0], [5]])
    rows = np.where(ids == 5, np.zeros((), "float32"), TABLE[np.where(ids == 5, 0, ids).ravel()])
    out = rows[:, None] if op_type.endswith("v2") else rows
    check(op_type, {"W": TABLE, "Ids": ids}, {"padding_idx": 5}, {"Out": out}, grads=["W"])
    for attrs in ({"padding_idx": 6}, {"padding_idx": -2}, {"padding_idx": 5, "is_sparse": True}):
        # A sparse gradient would have that row; Fluid refuses its update.
        with pytest.raises(OperatorError, match=r"\[0, 5\)"):
            run_kernel(op_type, {"W": TABLE, "Ids": ids}, attrs)


def test_one_hot():
    ids = np.array([[0], [2], [1]])
    check("one_hot", {"X": ids}, {"depth": 4}, {"Out": np.eye(4, dtype="float32")[[0, 2, 1]]})


def test_one_hot_v2_keeps_the_shape():
    ids = np.array([[0, 2], [1, 1]])
    check("one_hot_v2", {"X": ids}, {"depth": 3}, {"Out": np.eye(3, dtype="float32")[ids]})


def test_depth_may_be_a_tensor():
    made = run_kernel("one_hot_v2", {"X": np.array([1]), "depth_tensor": np.array([3], "int32")})
    np.testing.assert_array_equal(made["Out"][0], [[0, 1, 0]])


def test_classes_out_of_range():
    ids = np.array([[0], [3]])
    with pytest.raises(OperatorError, match=r"one_hot: X must be in \[0, 3\), .* got 3 at position 1"):
        run_kernel("one_hot", {"X": ids}, {"depth": 3})
    want = np.array([[1, 0, 0], [0, 0, 0]], "float32")
    check("one_hot", {"X": ids}, {"depth": 3, "allow_out_of_range": True}, {"Out": want})
