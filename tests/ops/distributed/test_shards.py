"""Operators that part gradients and ids between servers; numbers of SelectedRows are those of Paddle 1.8.5."""

import numpy as np
import pytest

from fluidlite.base.selected_rows import SelectedRows
from fluidlite.ops.registry import OperatorError, find

from ..harness import check, infer

X = np.arange(12, dtype="float32").reshape(6, 2)


def test_split_byref():
    check("split_byref", {"X": X}, {"sections": [2, 4]}, {"Out": [X[:2], X[2:]]})


def test_split_byref_refuses_other_sections():
    with pytest.raises(OperatorError, match=r"must add up to the 6 rows"):
        infer("split_byref", {"X": X}, {"sections": [2, 3]})


def test_split_selected_rows():
    rows = SelectedRows(np.array([7, 1, 5, 7, 0, 9]), X, 10)
    parts = find("split_selected_rows").call(np, {"X": [rows]}, {"height_sections": [4, 4, 2]})[0]
    assert [part.rows.tolist() for part in parts] == [[1, 0], [3, 1, 3], [1]]
    assert [part.height for part in parts] == [4, 4, 2]
    np.testing.assert_array_equal(parts[1].values, X[[0, 2, 3]])
    with pytest.raises(OperatorError, match="must be from 0 to 7, got 0 to 9"):
        find("split_selected_rows").call(np, {"X": [rows]}, {"height_sections": [4, 4]})


def test_split_ids():
    ids = np.array([[0], [7], [4], [3], [7], [10]])
    parts = find("split_ids").call(np, {"Ids": [ids], "Out": [None] * 3}, {})[0]
    assert [part.reshape(-1).tolist() for part in parts] == [[0, 3], [4, 7, 10], []]
    rows = SelectedRows(np.array([0, 5, 7, 2]), X[:4], 10)
    even, odd = find("split_ids").call(np, {"Ids": [rows], "Out": [None] * 2}, {})[0]
    assert even.rows.tolist() == [0, 2] and odd.rows.tolist() == [5, 7]
    np.testing.assert_array_equal(odd.values, X[1:3])


def test_merge_ids():
    ids = [np.array([[0], [7], [4], [3], [7]]), np.array([[4], [3]])]
    rows = [np.array([[0], [4]]), np.array([[7], [3]])]
    values = [np.array([[0, 0.5], [4, 4.5]], "float32"), np.array([[7, 7.5], [3, 3.5]], "float32")]
    first, second = find("merge_ids").call(np, {"Ids": ids, "Rows": rows, "X": values}, {})[0]
    assert first[:, 0].tolist() == [0, 7, 4, 3, 7] and second.tolist() == [[4, 4.5], [3, 3.5]]
    with pytest.raises(OperatorError, match="lack ids"):
        find("merge_ids").call(np, {"Ids": [np.array([[5]])], "Rows": rows, "X": values}, {})


def test_ref_by_trainer_id():
    check("ref_by_trainer_id", {"X": [X, X + 1], "TrainerId": np.array([1])}, {}, {"Out": X + 1})


def test_fake_init_has_the_shape():
    check("fake_init", {}, {"shape": [3, 2]}, {"Out": np.zeros((3, 2), "float32")})


@pytest.mark.parametrize(
    ("op_type", "attrs"),
    [
        ("send", "epmap merge_add num sections send_varnames trainer_id use_send_handler"),
        ("recv", "do_not_run epmap recv_varnames trainer_id varnames with_barrier"),
        ("send_barrier", "endpoints half_async trainer_id"),
        ("fetch_barrier", "endpoints trainer_id"),
        ("checkpoint_notify", "dir epmap lookup_table trainer_id"),
        (
            "recv_save",
            "dtype endpoints file_path overwrite remote_varnames shape slice_shapes slice_varnames trainer_id",
        ),
        (
            "listen_and_serv",
            "Fanin checkpint_block_id dc_asgd distributed_mode endpoint grad_to_block_id lr_decay_block_id "
            "optimize_blocks prefetch_var_name_to_block_id pserver_id rpc_get_thread_num rpc_prefetch_thread_num "
            "rpc_send_thread_num sparse_grad_to_param",
        ),
    ],
)
def test_attributes_are_those_of_fluid(op_type, attrs):
    assert " ".join(sorted(find(op_type).attrs)) == attrs
