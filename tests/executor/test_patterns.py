"""Patterns of calls: what matches, what the matcher refuses to replace, and where the new instruction stands."""

import pytest

from fluidlite._ext.operands import Aliases
from fluidlite.executor.ir import jumps
from fluidlite.executor.ir.instructions import Instruction, Need, Uses
from fluidlite.executor.passes.patterns import Match, Node, NoMatch, Pattern
from fluidlite.executor.passes.rewriting import Replacement, apply_passes, fuse_matches
from fluidlite.framework import Program
from fluidlite.ops.registry import Call

PATTERN = Pattern(
    """
    shifted = scale(x | n _ 1 shift)
    bounded = relu(shifted | n)?
    out = tanh(bounded | n)
    """
)


def call(kernel, *operands, ints=(6,), floats=()):
    """The instruction of an operator whose only result is the last operand."""
    op = Program().global_block().append_op("fill_constant", attrs={"shape": [1], "value": 0.0})
    return Instruction((op,), operands[:-1], operands[-1:], Call(f"{kernel}.f32", operands, ints, floats))


def shifted(x="x", out="a", factor=1.0):
    return call("scale", x, out, ints=(6, 1), floats=(factor, 3.0))


RELU, TANH = call("relu", "a", "b"), call("tanh", "b", "c")
OTHER = call("exp", "u", "v")


def rule(match):
    action = Call("fused.f32", [match.names["x"], match.names["out"]], [], [match.numbers["shift"]])
    return [Replacement([*match.found.values()], action)]


def fused(*instructions, needed="cvz", roots=None, rule=rule):
    made = apply_passes(instructions, needed, [fuse_matches(PATTERN, rule)], Aliases(roots or {}))
    return [(each.action.name, *each.reads, *each.writes) for each in made if isinstance(each.action, Call)]


def test_optional_lines_may_be_missing():
    assert fused(shifted(), RELU, TANH) == [("fused", "x", "c")]
    assert fused(shifted(), call("tanh", "a", "c")) == [("fused", "x", "c")]
    assert fused(shifted(), call("exp", "a", "b"), TANH)[0] == ("scale", "x", "a")


def test_names_are_equal_in_all_lines():
    assert fused(shifted(factor=2.0), RELU, TANH)[0][0] == "scale"  # a number of the pattern
    other = call("tanh", "b", "c", ints=(7,))
    assert fused(shifted(), RELU, other)[0][0] == "scale"
    twice = Pattern("a = elementwise_add(x, x)")
    for operands, matches in (("xxa", True), ("xya", False)):
        each = call("elementwise_add", *operands)
        assert (twice.match(Uses([each], "a", Aliases()), each) is not None) == matches
    double = Instruction((), ("b",), ("c",), Call("tanh.f64", "bc", [6]))
    assert fused(shifted(), RELU, double)[0][0] == "scale"  # another type


def test_results_that_others_need_stay():
    assert len(fused(shifted(), RELU, TANH, needed="ca")) == 3
    assert len(fused(shifted(), RELU, TANH, call("exp", "b", "z"))) == 4
    assert len(fused(shifted(), RELU, TANH, call("exp", "a2", "z"), roots={"a2": "a"})) == 4


def test_instructions_that_depend_on_a_part_are_not_passed():
    assert fused(shifted(), OTHER, RELU, TANH) == [("exp", "u", "v"), ("fused", "x", "c")]
    assert fused(shifted(), call("exp", "u", "x"), RELU, TANH) == [("fused", "x", "c"), ("exp", "u", "x")]
    assert len(fused(shifted(), call("exp", "c", "x"), RELU, TANH)) == 4
    assert len(fused(shifted(), call("exp", "c", "w"), RELU, TANH, roots={"w": "x"})) == 4
    jump = Instruction((), (), (), jumps.BACK_EDGE)
    assert len(fused(shifted(), jump, RELU, TANH)) == 3


def test_the_first_position():
    def early(match):
        (one,) = rule(match)
        one.at_first = True
        return [one]

    assert fused(shifted(), OTHER, RELU, TANH, rule=early) == [("fused", "x", "c"), ("exp", "u", "v")]
    late = fused(shifted(), call("exp", "c", "v"), RELU, TANH, rule=early)
    assert late == [("exp", "c", "v"), ("fused", "x", "c")]


def test_rules_may_refuse():
    def refuse(match):
        raise NoMatch

    assert len(fused(shifted(), RELU, TANH, rule=refuse)) == 3


def test_more_patterns_are_matched_whole_or_not_at_all():
    instructions = [shifted("y", "x"), shifted(), RELU, TANH, call("exp", "c", "z")]
    uses = Uses(instructions, "z", Aliases())
    match = PATTERN.match(uses, TANH)
    assert not match.extend(Pattern("x = scale(y | n _ 1 _)\n end = sin(out)"))
    assert "y" not in match.names and list(match.found.values()) == [TANH, RELU, instructions[1]]
    assert match.extend(Pattern("x = scale(y | n _ 1 _)"), others=Need.NOTHING) and match.names["y"] == "y"
    assert not match.extend(Pattern("end = exp(x)"))
    assert match.extend(Pattern("end = exp(out)"), others=Need.NOTHING) and "end" in match
    assert not PATTERN.match(Uses(instructions, "x", Aliases()), TANH).extend(
        Pattern("x = scale(y)"), others=Need.NOTHING
    )


def test_readers_and_ambiguous_lines():
    def add(each):
        found = each.action
        return Node(found.operands[:2], found.operands[2:]) if found.name.startswith("elementwise_") else None

    first, second = call("elementwise_add", *"xya"), call("elementwise_mul", *"xzb")
    pattern = Pattern("out = any(x, other)", {"any": add})
    assert pattern.match(Uses([first], "a", Aliases()), first).names == {"x": "x", "other": "y", "out": "a"}
    two = Match(Uses([first, second], "ab", Aliases()), {"x": "x"})
    assert not two.extend(pattern) and two.extend(Pattern("out = elementwise_mul(x, _)"))


def test_lines_are_checked():
    with pytest.raises(ValueError, match="a line of a pattern must be"):
        Pattern("out: tanh(x)")
    with pytest.raises(ValueError, match="no line has an operand or result of"):
        Pattern("a = relu(b)\n out = tanh(x)").match(Uses([TANH], "c", Aliases()), TANH)
