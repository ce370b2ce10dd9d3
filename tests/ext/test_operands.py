"""The compiled parts of operators, their views, and aliases of variables."""

import copy

import pytest

import fluidlite as fluid
from fluidlite._ext.operands import Aliases, Types, fits, names_by_slot
from fluidlite.ops.registry import OpView, find

pytestmark = pytest.mark.usefixtures("alone")


def test_aliases_follow_the_owner_of_their_memory():
    aliases = Aliases()
    aliases.merge("b", "a")
    aliases.merge("c", "b")
    aliases.merge("e", "d")
    aliases.merge("a", "e")
    assert [aliases.root(name) for name in "abcdex"] == [*"ddddd", "x"]
    assert sorted(aliases) == [*"abce"]


def test_a_copy_of_an_operator_has_its_own_attributes():
    x = fluid.data("x", [None, 2], "float32")
    op = fluid.layers.relu(x).op
    made = copy.copy(op)
    made.inputs, made.type = {"X": ["y"]}, "tanh"
    assert (op.type, op.reads()) == ("relu", ["x"])
    assert (made.block, made.line, made.writes()) == (op.block, op.line, op.writes())


def test_a_view_knows_what_was_set():
    types = Types({"x": (2, 3)}, {"x": "float"})
    view = OpView(find("relu"), {"X": ["x"]}, {"Out": ["y"]}, {}, types)
    view.set("Out", [2, 3], "float")
    view.set("Missing", [1], "float")
    assert (view.shape("Out"), view.dtype("Out"), [*types.shapes]) == ((2, 3), "float", ["x", "y"])
    assert view.has("X") and not view.has("Y") and view.name_or_none("Y") is None
    assert copy.copy(view).shape("X") == (2, 3)
    with pytest.raises(fluid.core.EnforceNotMet, match="has no attribute 'axis'"):
        view.attr("axis")


@pytest.mark.parametrize(
    "slots, fit",
    [
        ({"X": ["x"], "Y": ["y"]}, True),
        ({"X": ["x"]}, False),  # Y is missing
        ({"X": ["x"], "Y": ["z"]}, False),  # there is no z
        ({"X": ["x", "y"], "Y": ["y"]}, False),
        ({"X": ["x"], "Y": ["y"], "Z": ["x"]}, False),
    ],
)
def test_slots_fit_a_declaration(slots, fit):
    definition = find("elementwise_add")
    assert fits(slots, definition.inputs_by_name, definition.required, {"x": None, "y": None}) is fit


def test_names_come_from_names_variables_and_whatever_else_has_one():
    x = fluid.data("x", [None, 2], "float32")
    found = names_by_slot({"X": x, "Y": ["y", 3], "Z": None}, (type(x),), lambda slot, item: f"{slot}{item}")
    assert found == {"X": ["x"], "Y": ["y", "Y3"]}
