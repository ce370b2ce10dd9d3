"""Horizontal fusion of instructions without a target; live ranges."""

from types import SimpleNamespace

from fluidlite.executor.ir.instructions import Instruction, lifetimes
from fluidlite.executor.passes.rewriting import apply_passes, fuse_alike
from fluidlite.framework import Program


def instruction(kind, reads, writes):
    """One that stands for an operator of its own; the action is its name."""
    block = Program().global_block()
    block.create_var(name="b", shape=[1], dtype="float32")
    op = block.append_op("fill_constant", outputs={"Out": ["b"]}, attrs={"shape": [1], "value": 0.0})
    return Instruction((op,), tuple(reads), tuple(writes), kind)


def actions(instructions):
    return [each.action for each in instructions]


def fused(parts):
    writes = [name for each in parts for name in each.writes]
    return [SimpleNamespace(action=parts[0].action * len(parts), writes=writes)]


FUSE = fuse_alike(lambda each: each.action if each.action in "uv" else None, fused)


def update(kind, name):
    return instruction(kind, [name, name + "@GRAD"], [name])


def test_horizontal_fusion_is_at_the_last_member():
    chain = [
        update("u", "a"), instruction("f", "x", "y"), update("v", "b"), update("u", "c"), update("u", "d"),
    ]  # fmt: skip
    found = apply_passes(chain, "abcdy", [FUSE])
    assert actions(found) == ["f", "v", "uuu"]
    assert found[-1].writes == ["a", "c", "d"]


def test_nothing_is_moved_past_who_reads_or_writes_it():
    for meeting in (instruction("f", "a", "y"), instruction("f", "x", ["a@GRAD"]), update("u", "a")):
        found = apply_passes([update("u", "a"), meeting, update("u", "b")], "aby", [FUSE])
        assert found[0].action == "u" and len(found) == 2 + (meeting.action == "f")


CHAIN = [instruction("f", "x", "y"), instruction("g", "y", "z"), instruction("h", "z", "w")]


def test_lifetimes_span_all_names_of_a_variable():
    found = lifetimes(CHAIN, {"y2": "y"}, ["y2", "given"])
    assert found == {"x": (0, 0), "y": (0, 3), "z": (1, 2), "w": (2, 2), "given": (3, 3)}
