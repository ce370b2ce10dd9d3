"""Recomputation: a backward pass that recomputes the values between checkpoints instead of keeping them.

Follows `checkpoints` of `fluid.backward.append_backward`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...base import unique_name
from ...ops.registry import OpSpec
from ..block import Block
from ..operator import Operator
from ..variable import Variable


@dataclass
class Segment:
    """Neighbouring operators that are differentiated together, after those between checkpoints were recomputed.

    `recomputed`: the operators to append; `names`: variable -> the recomputed one that gradient operators read instead.
    """

    ops: list[Operator]
    recomputed: list[OpSpec] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)


def segments(block: Block, path: list[Operator], checkpoints: Sequence[Variable | str]) -> list[Segment]:
    """Cut `path` after the operators that make the checkpoints.

    The operators after the last checkpoint are not recomputed. Names of recomputed variables end in `.subprog_K`, K
    counting segments from the last one to the first, as in Fluid 1.8. ValueError for a name that is no variable.
    """
    kept = {_checkpoint(block, item) for item in checkpoints}
    cuts = sorted({i + 1 for i, op in enumerate(path) if kept.intersection(op.output_arg_names)})
    parts = [Segment(path[begin:end]) for begin, end in zip([0, *cuts], [*cuts, len(path)], strict=True)]
    kept.update(_not_repeated(path))
    home: dict[str, int] = {}
    for number, part in enumerate(parts):
        for op in part.ops:
            # Keep values that another segment reads, and random numbers, which must not be redrawn.
            kept.update(name for name in op.input_arg_names if home.get(name, number) != number)
            if op.definition.effects.random and not op.inputs.get("Seed"):
                kept.update(op.output_arg_names)
            home.update((name, number) for name in op.output_arg_names)
    for order, part in enumerate(reversed(parts[:-1])):
        _repeat(block, part, kept, f".subprog_{order}")
    return [part for part in parts if part.ops]


def _not_repeated(path: list[Operator]) -> set[str]:
    """Variables used in blocks or updated in place: their operators cannot be recomputed."""
    names: set[str] = set()
    written: set[str] = set()
    for op in path:
        if op.sub_blocks():
            names.update((*op.reads(), *op.writes()))
        names.update(name for slot in op.definition.effects.updates for name in op.outputs.get(slot, ()))
        names.update(name for name in op.writes() if name in written or name in op.input_arg_names)
        written.update(op.writes())
    return names


def _checkpoint(block: Block, item: Variable | str) -> str:
    if not isinstance(item, (Variable, str)):
        raise TypeError(f"checkpoints are Variables or names, got {item!r} of type {type(item).__name__}")
    return block._var_recursive(item if isinstance(item, str) else item.name).name


def _repeat(block: Block, part: Segment, kept: set[str], suffix: str) -> None:
    for op in part.ops:
        made = [name for name in op.output_arg_names if name not in kept and not block._is_persistable(name)]
        if not made:
            continue
        part.names.update((name, name + suffix) for name in made)
        attrs = {name: value for name, value in op.attrs.items() if not name.startswith("op_")}
        part.recomputed.append(
            OpSpec(op.type, _renamed(op.inputs, part.names), _renamed(op.outputs, part.names), attrs)
        )


def _renamed(slots: dict[str, list[str]], names: dict[str, str]) -> dict[str, list[str]]:
    return {slot: [names.get(name, name) for name in given] for slot, given in slots.items()}


def seed_dropouts(ops: Iterable[Operator]) -> None:
    """Give every dropout its seed from an operator of its own, so that it can be repeated with the same mask.

    `ops`: all operators of a block.
    """
    inserted = 0
    for index, op in enumerate(list(ops)):
        if "Seed" not in op.definition.inputs_by_name or op.inputs.get("Seed") or op.attr("is_test"):
            continue
        block = op.block
        seed = block.create_var(
            name=block._new_name(f"{unique_name.generate('seed')}.tmp"),
            persistable=False,
            stop_gradient=True,
        )
        fixed = op.attr("seed") if op.attr("fix_seed") else 0
        block._insert_op(index + inserted, type="seed", outputs={"Out": [seed]}, attrs={"seed": fixed})
        inserted += 1
        op.inputs["Seed"] = [seed.name]
        for name in ("seed", "fix_seed"):
            op.attrs.pop(name, None)
        block.program._changed()


__all__ = ["Segment", "seed_dropouts", "segments"]
