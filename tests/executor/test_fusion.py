"""The schemes of fusion on instructions without a target: pairs, and horizontal fusion."""

from types import SimpleNamespace

from fluidlite._ext.operands import Aliases
from fluidlite.executor.ir.instructions import Instruction, lifetimes
from fluidlite.executor.passes.rewriting import (
    HorizontalFusion,
    Member,
    Replacement,
    apply_passes,
    fuse_pairs,
)
from fluidlite.framework import Program


def instruction(kind, reads, writes):
    """One that stands for an operator of its own; the action is its name."""
    block = Program().global_block()
    block.create_var(name="b", shape=[1], dtype="float32")
    op = block.append_op("fill_constant", outputs={"Out": ["b"]}, attrs={"shape": [1], "value": 0.0})
    return Instruction((op,), tuple(reads), tuple(writes), kind)


def one_of(*pairs):
    """A rule that fuses instructions whose actions are one of these pairs, such as "f g" or "f g+h"."""

    def rule(before, after, uses):
        if f"{before.action} {after.action}" not in pairs:
            return None
        reads = [*before.reads, *(name for name in after.reads if name not in before.writes)]
        return Replacement((before, after), f"{before.action}+{after.action}", reads, after.writes)

    return rule


def actions(instructions):
    return [each.action for each in instructions]


CHAIN = [instruction("f", "x", "y"), instruction("g", "y", "z"), instruction("h", "z", "w")]


def test_neighbours_are_fused_if_intermediate_values_have_no_other_use():
    grow = fuse_pairs(one_of("f g"))
    (first, last) = apply_passes(CHAIN, ["w"], [grow])
    assert (first.action, first.reads, first.writes, len(first.ops)) == ("f+g", ("x",), ("z",), 2)
    assert last.action == "h"
    assert actions(apply_passes(CHAIN, ["w", "y"], [grow])) == ["f", "g", "h"]
    read_later = [*CHAIN, instruction("k", "y", "v")]
    assert actions(apply_passes(read_later, ["w", "v"], [grow])) == ["f", "g", "h", "k"]
    written_again = [*CHAIN, instruction("k", "x", "y")]
    assert actions(apply_passes(written_again, ["w"], [grow])) == ["f", "g", "h", "k"]


def test_what_is_fused_is_fused_with_others():
    assert actions(apply_passes(CHAIN, ["w"], [fuse_pairs(one_of("f g", "f+g h"))])) == ["f+g+h"]
    backwards = fuse_pairs(one_of("g h", "f g+h"))
    assert actions(apply_passes(CHAIN, ["w"], [backwards])) == ["f+g+h"]
    assert actions(apply_passes(CHAIN, ["w", "y"], [backwards])) == ["f", "g+h"]
    assert actions(apply_passes(CHAIN[:2], ["z"], [backwards])) == ["f", "g"]


def test_names_for_the_same_memory_are_one_variable():
    chain = [instruction("f", ["x"], ["y"]), instruction("g", ["y2"], ["z"]), instruction("h", ["y2"], ["w"])]
    aliases = Aliases()
    aliases.merge("y2", "y")
    found = apply_passes(chain, ["z", "w"], [fuse_pairs(one_of("f g"))], aliases)
    assert actions(found) == ["f", "g", "h"]


class Updates(HorizontalFusion):
    def member(self, position):
        found = self.instructions[position]
        return Member(found.action, found) if found.action in "uv" else None

    def fused(self, members):
        writes = [name for member in members for name in member.main.writes]
        return [SimpleNamespace(action=members[0].key * len(members), writes=writes)]


def update(kind, name):
    return instruction(kind, [name, name + "@GRAD"], [name])


def test_horizontal_fusion_is_at_the_last_member():
    chain = [
        update("u", "a"),
        instruction("f", "x", "y"),
        update("v", "b"),
        update("u", "c"),
        update("u", "d"),
    ]
    found = apply_passes(chain, "abcdy", [Updates.run])
    assert actions(found) == ["f", "v", "uuu"]
    assert found[-1].writes == ["a", "c", "d"]


def test_nothing_is_moved_past_who_reads_or_writes_it():
    for meeting in (instruction("f", "a", "y"), instruction("f", "x", ["a@GRAD"]), update("u", "a")):
        found = apply_passes([update("u", "a"), meeting, update("u", "b")], "aby", [Updates.run])
        assert found[0].action == "u" and len(found) == 2 + (meeting.action == "f")


def test_lifetimes_span_all_names_of_a_variable():
    found = lifetimes(CHAIN, {"y2": "y"}, ["y2", "given"])
    assert found == {"x": (0, 0), "y": (0, 3), "z": (1, 2), "w": (2, 2), "given": (3, 3)}
