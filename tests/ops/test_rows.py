"""merge_selected_rows, get_tensor_from_selected_rows, dense_from_selected_rows, and the rules of other operators."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.selected_rows import SelectedRows
from fluidlite.op import Operator
from fluidlite.ops.registry import OperatorError, find

RNG = np.random.default_rng(3)
ROWS = np.array([4, 1, 4, 0])


def sparse(rows=ROWS, height=6, width=3):
    return SelectedRows(rows, RNG.uniform(-1, 1, (len(rows), width)).astype("float32"), height)


def call(op_type, inputs, **attrs):
    return find(op_type).call(np, {slot: [value] for slot, value in inputs.items()}, attrs)


def test_merge_selected_rows():
    x = sparse()
    (merged,) = call("merge_selected_rows", {"X": x})
    np.testing.assert_array_equal(merged.rows, [0, 1, 4])
    np.testing.assert_allclose(merged.dense(), x.dense(), rtol=1e-6)


def test_get_tensor_from_selected_rows():
    x = sparse()
    assert call("get_tensor_from_selected_rows", {"X": x})[0] is x.values


@pytest.mark.parametrize(
    "op_type", ["merge_selected_rows", "get_tensor_from_selected_rows", "dense_from_selected_rows"]
)
def test_dense_arrays_stay_as_they_are(op_type):
    x = np.ones((2, 3), "float32")
    assert call(op_type, {"X": x})[0] is x


def test_dense_from_selected_rows():
    x = sparse()
    np.testing.assert_array_equal(call("dense_from_selected_rows", {"X": x})[0], x.dense())


def test_lookup_sparse_table():
    table = SelectedRows(np.array([7, 2, 5]), np.arange(12, dtype="float32").reshape(3, 4), 10)
    ids = np.array([[2], [5], [7], [2]])
    assert call("lookup_sparse_table", {"W": table, "Ids": ids})[0][:, 0].tolist() == [4, 8, 0, 4]
    (found,) = call("lookup_sparse_table", {"W": table, "Ids": ids + 1}, is_test=True)
    assert not found.any() and found.shape == (4, 4)
    (found,) = call("lookup_sparse_table", {"W": table, "Ids": np.array([[3], [2], [9]])}, is_test=True)
    assert found[:, 1].tolist() == [0, 5, 0]
    with pytest.raises(OperatorError, match="W holds 3, and has no room for others, such as 3"):
        call("lookup_sparse_table", {"W": table, "Ids": np.array([[2], [3]])})
    with pytest.raises(OperatorError, match="SelectedRows, got a tensor"):
        call("lookup_sparse_table", {"W": table.values, "Ids": ids})
    none = SelectedRows(np.zeros(0, "int64"), np.zeros((0, 4), "float32"), 10)
    assert not call("lookup_sparse_table", {"W": none, "Ids": ids}, is_test=True)[0].any()


def test_rows_of_a_scope_are_looked_up():
    scope = fluid.core.Scope()
    rows = scope.var("table").get_selected_rows()
    rows.set_height(10)
    rows.set_rows([7, 2, 5])
    rows.get_tensor().set(np.arange(12, dtype="float32").reshape(3, 4), fluid.CPUPlace())
    scope.var("ids").get_tensor().set(np.array([[3], [2]]), fluid.CPUPlace())
    scope.var("out")
    lookup = Operator("lookup_sparse_table", W="table", Ids="ids", Out="out", is_test=True)
    lookup.run(scope, fluid.CPUPlace())
    assert np.array(scope.find_var("out").get_tensor())[:, 0].tolist() == [0, 4]


def test_sum_keeps_the_rows_of_all():
    x, y = sparse(), sparse(np.array([2, 1]))
    (total,) = find("sum").call(np, {"X": [x, y]}, {})
    np.testing.assert_array_equal(total.rows, [4, 1, 4, 0, 2, 1])
    np.testing.assert_allclose(total.dense(), x.dense() + y.dense(), rtol=1e-6)
    (mixed,) = find("sum").call(np, {"X": [x, y.dense()]}, {})
    np.testing.assert_allclose(mixed, x.dense() + y.dense(), rtol=1e-6)


def test_scale_keeps_the_rows():
    x = sparse()
    (scaled,) = call("scale", {"X": x}, scale=0.5, bias=1.0, bias_after_scale=True)
    np.testing.assert_array_equal(scaled.rows, x.rows)
    np.testing.assert_array_equal(scaled.values, x.values * np.float32(0.5) + 1)


def test_product_with_one_element():
    x = sparse()
    (scaled,) = call("elementwise_mul", {"X": x, "Y": np.array([0.5], "float32")}, axis=-1)
    np.testing.assert_array_equal(scaled.rows, ROWS)
    np.testing.assert_array_equal(scaled.values, x.values * np.float32(0.5))
    with pytest.raises(ValueError, match="one element, got Y of shape"):
        call("elementwise_mul", {"X": x, "Y": x.dense()}, axis=-1)


@pytest.mark.parametrize(
    ("op_type", "attrs"), [("clip", {"min": -0.3, "max": 0.2}), ("clip_by_norm", {"max_norm": 0.7})]
)
def test_clipping_adds_up_first(op_type, attrs):
    x = sparse()
    (clipped,) = call(op_type, {"X": x}, **attrs)
    np.testing.assert_array_equal(clipped.rows, [0, 1, 4])
    (want,) = call(op_type, {"X": x.dense()}, **attrs)
    np.testing.assert_allclose(clipped.dense(), want, rtol=1e-6)


def test_operators_without_a_rule_get_an_array():
    x = sparse()
    np.testing.assert_array_equal(call("square", {"X": x})[0], x.dense() ** 2)


STATE = {"sgd": (), "adagrad": ("Moment",), "momentum": ("Velocity",)}


@pytest.mark.parametrize("op_type", STATE)
def test_updates_are_those_of_the_dense_gradient(op_type):
    grad = sparse()
    inputs = {
        "Param": RNG.uniform(-1, 1, (6, 3)).astype("float32"),
        "LearningRate": np.array([0.1], "float32"),
        **{slot: RNG.uniform(0, 1, (6, 3)).astype("float32") for slot in STATE[op_type]},
    }
    made = call(op_type, {**inputs, "Grad": grad})
    for got, want in zip(made, call(op_type, {**inputs, "Grad": grad.dense()}), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("lazy", [True, False])
def test_adam_is_one_step_ahead_and_may_be_lazy(lazy):
    grad = sparse()
    param, first, second = (RNG.uniform(0.1, 1, (6, 3)).astype("float32") for _ in range(3))
    rate, one, two = (np.array([n], "float32") for n in (0.1, 0.9, 0.999))
    state = {"Param": param, "Moment1": first, "Moment2": second, "LearningRate": rate}
    made = call("adam", {**state, "Beta1Pow": one, "Beta2Pow": two, "Grad": grad}, lazy_mode=lazy)
    powers = {"Beta1Pow": one * np.float32(0.9), "Beta2Pow": two * np.float32(0.999)}
    want = call("adam", {**state, **powers, "Grad": grad.dense()})
    touched = [0, 1, 4] if lazy else slice(None)
    for got, moved, before in zip(made[:3], want[:3], (param, first, second), strict=True):
        expected = before.copy()
        expected[touched] = moved[touched]
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    np.testing.assert_allclose(made[3], powers["Beta1Pow"], rtol=1e-6)


@pytest.mark.parametrize("op_type", ["lookup_table", "lookup_table_v2"])
def test_the_gradient_of_a_lookup(op_type):
    ids = np.array([[2], [0], [2]])
    dout = RNG.uniform(-1, 1, (3, 3) if op_type == "lookup_table" else (3, 1, 3)).astype("float32")
    inputs = {"W": np.zeros((6, 3), "float32"), "Ids": ids, "Out@GRAD": dout}
    (made,) = call(op_type + "_grad", inputs, is_sparse=True)
    np.testing.assert_array_equal(made.rows, [2, 0, 2])
    np.testing.assert_array_equal(made.values, dout.reshape(3, 3))
    (dense,) = call(op_type + "_grad", inputs, is_sparse=False)
    np.testing.assert_allclose(made.dense(), dense, rtol=1e-6)
