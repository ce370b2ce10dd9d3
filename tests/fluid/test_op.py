"""`fluid.op.Operator` on scopes, and `fluid.default_scope_funcs`; as in Paddle 1.8.5."""

import threading

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import default_scope_funcs as scopes
from fluidlite.base.errors import EnforceNotMet
from fluidlite.op import Operator

from ..refusals import refuses

CPU = fluid.CPUPlace()


@pytest.fixture
def scope():
    made = fluid.Scope()
    for name, value in {
        "a": np.arange(6, dtype="float32").reshape(2, 3),
        "b": np.ones((3, 4), "float32"),
        "rate": np.ones(1, "float32"),
    }.items():
        made.var(name).get_tensor().set(value, CPU)
    made.var("out").get_tensor()
    return made


def value(scope, name):
    return np.array(scope.find_var(name).get_tensor())


def test_an_operator_runs_on_a_scope(scope):
    op = Operator("mul", X="a", Y="b", Out="out")
    op.run(scope, CPU)
    assert value(scope, "out").tolist() == [[3.0] * 4, [12.0] * 4]
    assert (op.type(), op.inputs(), op.outputs()) == ("mul", {"X": ["a"], "Y": ["b"]}, {"Out": ["out"]})
    assert (op.input_vars(), op.output_vars()) == (["a", "b"], ["out"])
    assert str(op) == "Op(mul), inputs:{X[a], Y[b]}, outputs:{Out[out]}."


def test_slots_that_are_left_out_are_shown_empty():
    op = Operator("scale", X="a", Out="out", scale=2.0)
    assert list(op.inputs().items()) == [("ScaleTensor", []), ("X", ["a"])]
    assert str(op) == "Op(scale), inputs:{ScaleTensor[], X[a]}, outputs:{Out[out]}."
    op = Operator(
        "batch_norm", X="x", Scale="s", Bias="b", Mean="m", Variance="v", Y="y", MeanOut="m", VarianceOut="v"
    )
    assert op.input_vars() == ["b", "m", "s", "v", "x"]
    assert list(op.outputs().items()) == [
        ("MeanOut", ["m"]), ("ReserveSpace", []), ("SavedMean", []), ("SavedVariance", []), ("VarianceOut", ["v"]),
        ("Y", ["y"]),
    ]  # fmt: skip


def test_an_operator_with_empty_slots_runs(scope):
    Operator("scale", X="a", Out="out", scale=2.0).run(scope, CPU)
    Operator("concat", X=["a", "out"], Out="out", axis=1).run(scope, CPU)
    assert value(scope, "out")[0].tolist() == [0.0, 1.0, 2.0, 0.0, 2.0, 4.0]


def test_lists_attributes_and_variables_that_are_both(scope):
    Operator("sum", X=["a", "a"], Out="out").run(scope, CPU)
    assert value(scope, "out").tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    Operator("scale", X="a", Out="a", scale=2).run(scope, CPU)
    assert value(scope, "a").tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    Operator("sgd", Param="a", Grad="a", LearningRate="rate", ParamOut="a").run(scope, CPU)
    assert not value(scope, "a").any()
    Operator(type="uniform_random", Out="out", shape=[2, 2], seed=3).run(scope, CPU)
    assert np.allclose(value(scope, "out"), [[-0.99986511, -0.48980528], [0.60811567, 0.34966767]])
    Operator("transpose", X="a", Out="out", axis=[1, 0]).run(scope, CPU)
    assert value(scope, "out").shape == (3, 2)


def set_rows(scope, name, rows, height, values):
    found = scope.var(name).get_selected_rows()
    found.set_height(height)
    found.set_rows(rows)
    found.get_tensor().set(values, CPU)
    return found


@pytest.mark.parametrize("heights", [(8, 10), (10, 10), (10, 8)])
def test_sgd_updates_the_rows_of_a_parameter_that_is_selected_rows(scope, heights):
    held = set_rows(scope, "table", [0, 7, 4], heights[0], np.full((3, 2), 5, "float32"))
    set_rows(scope, "rows", [4, 0, 4], heights[1], np.arange(6, dtype="float32").reshape(3, 2))
    op = Operator("sgd", Param="table", Grad="rows", LearningRate="rate", ParamOut="table")
    op.run(scope, CPU)
    assert np.array(held.get_tensor()).tolist() == [[3.0, 2.0], [5.0, 5.0], [1.0, -1.0]]
    assert (held.rows(), held.height()) == ([0, 7, 4], heights[0])
    set_rows(scope, "rows", [4, 3], heights[1], np.ones((2, 2), "float32"))
    refuses(lambda: op.run(scope, CPU), EnforceNotMet, "Param holds no row 3 of Grad")


def test_rows_of_a_table(scope):
    rows = scope.var("rows").get_selected_rows()
    rows.set_height(3)
    rows.set_rows([2, 2])
    rows.get_tensor().set(np.ones((2, 4), "float32"), CPU)
    Operator("sgd", Param="b", Grad="rows", LearningRate="rate", ParamOut="b").run(scope, CPU)
    assert value(scope, "b")[:, 0].tolist() == [1.0, 1.0, -1.0]
    assert (rows.height(), rows.rows(), rows.numel()) == (3, [2, 2], 8)


def test_sequences_go_through(scope):
    scope.find_var("a").get_tensor().set_recursive_sequence_lengths([[1, 1]])
    Operator("relu", X="a", Out="out").run(scope, CPU)
    assert scope.find_var("out").get_tensor().recursive_sequence_lengths() == [[1, 1]]


@pytest.mark.parametrize(
    "slots, message",
    [
        ({"X": "nobody", "Y": "b", "Out": "out"}, "nobody"),
        ({"X": "a", "Y": "b", "Out": "nobody"}, r"No Output\(Out\)"),
        ({"X": "a", "Out": "out"}, "input Y is missing"),
        ({"X": "a", "Y": "b"}, r"No Output\(Out\)"),
        ({"X": "b", "Y": "a", "Out": "out"}, "mul"),
    ],
)
def test_what_cannot_run(scope, slots, message):
    refuses(lambda: Operator("mul", **slots).run(scope, CPU), EnforceNotMet, message)
    assert not scope.find_var("out").is_set()


@pytest.mark.parametrize(
    "arguments, keywords, error",
    [
        (("no_such_operator",), {}, ValueError),
        ((), {"X": "a"}, ValueError),
        (("mul", "a"), {}, ValueError),
        (("relu_grad",), {"Out": "a"}, ValueError),
        (("mul",), {"X": ["a", "a"]}, ValueError),
        (("mul",), {"X": 3}, TypeError),
        (("mul",), {"X": None}, TypeError),
        (("mul",), {"X": "a", "x_num_col_dims": "q"}, TypeError),
    ],
)
def test_what_cannot_be_made(arguments, keywords, error):
    refuses(lambda: Operator(*arguments, **keywords), error)


def test_what_operators_take():
    assert Operator.get_op_input_names("mul") == ["X", "Y"] and Operator.get_op_inputs("sum") == [("X", True)]
    assert Operator.get_op_output_names("top_k") == ["Out", "Indices"]
    assert Operator.get_op_outputs("mul") == [("Out", False)]
    assert "y_num_col_dims" in Operator.get_op_attr_names("mul") and "op_role" in Operator.get_op_attr_names(
        "relu"
    )
    assert "mul" in Operator.types() and "mul_grad" not in Operator.types()
    assert Operator("mul", X="a", nothing=1).type() == "mul"


def test_scopes_of_a_thread():
    outer = scopes.get_cur_scope()
    made = scopes.var("kept")
    scopes.enter_local_scope()
    scopes.var("inner")
    assert scopes.find_var("kept") is made and scopes.find_var("inner") is not None
    scopes.leave_local_scope()
    assert scopes.find_var("inner") is None and scopes.get_cur_scope() is outer is not fluid.global_scope()
    seen = []
    assert scopes.scoped_function(lambda: seen.append(scopes.var("inner"))) is None
    refuses(lambda: scopes.scoped_function(lambda: 1 / 0), ZeroDivisionError)
    assert scopes.get_cur_scope() is outer and seen and scopes.find_var("inner") is None
    thread = threading.Thread(target=lambda: seen.append(scopes.find_var("kept")))
    thread.start()
    thread.join()
    assert seen[-1] is None
    scopes.leave_local_scope()
    assert scopes.find_var("kept") is None


def tensor(elements, dtype, lod):
    made = fluid.LoDTensor()
    made.set(np.array(elements, dtype), CPU)
    made.set_lod(lod)
    return made


def test_an_operator_reads_arrays_of_a_scope():
    """The beams of two sentences after five steps; numbers of Paddle 1.8.5."""
    scope = fluid.Scope()
    steps = [
        ([0, 0], [[0, 1, 2], [0, 1, 2]]),
        ([2, 3, 4, 5], [[0, 1, 2], [0, 2, 4]]),
        ([3, 1, 5, 4], [[0, 2, 4], [0, 2, 2, 4, 4]]),
        ([1, 1, 3, 5], [[0, 2, 4], [0, 1, 2, 3, 4]]),
        ([5, 1], [[0, 2, 4], [0, 0, 0, 2, 2]]),
    ]
    for name, dtype in (("ids", "int64"), ("scores", "float32")):
        scope.var(name).get_lod_tensor_array().extend(tensor(ids, dtype, lod) for ids, lod in steps)
    for name in ("found", "weights"):
        scope.var(name)
    outputs = {"SentenceIds": "found", "SentenceScores": "weights"}
    Operator("beam_search_decode", Ids="ids", Scores="scores", beam_size=2, end_id=1, **outputs).run(
        scope, CPU
    )
    for name in ("found", "weights"):
        assert scope.find_var(name).get_tensor().lod() == [[0, 2, 4], [0, 4, 7, 12, 17]]
        assert value(scope, name).tolist() == [0, 2, 3, 1, 0, 2, 1, 0, 4, 5, 3, 5, 0, 4, 5, 3, 1]


@pytest.mark.parametrize("kind", ["unset", "empty"])
def test_an_operator_writes_into_arrays_of_a_scope(scope, kind):
    made = scope.var("array")
    if kind == "empty":
        made.get_lod_tensor_array()
    scope.var("index").get_tensor().set(np.array([2], "int64"), CPU)
    Operator("write_to_array", X="a", I="index", Out="array").run(scope, CPU)
    array = scope.find_var("array").get_lod_tensor_array()
    assert [element._is_initialized() for element in array] == [False, False, True]
    Operator("lod_array_length", X="array", Out="out").run(scope, CPU)
    assert value(scope, "out").tolist() == [3]
    Operator("read_from_array", X="array", I="index", Out="out").run(scope, CPU)
    assert value(scope, "out").tolist() == [[0, 1, 2], [3, 4, 5]]


def test_an_operator_writes_rows_into_what_was_meant_for_rows():
    scope = fluid.Scope()
    given = scope.var("X").get_selected_rows()
    given.set_rows([0, 0, 1, 2])
    given.get_tensor().set(np.array([[1], [2], [4], [12]], "float32"), CPU)
    found = scope.var("Out").get_selected_rows()
    Operator("clip_by_norm", max_norm=1.0, X="X", Out="Out").run(scope, CPU)
    assert found.rows() == [0, 1, 2]
    np.testing.assert_allclose(np.array(found.get_tensor()), np.array([[3], [4], [12]]) / 13, rtol=1e-6)
