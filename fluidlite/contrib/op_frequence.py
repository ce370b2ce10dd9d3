"""Counts of the operators in a program (`fluid.contrib.op_frequence`)."""

from __future__ import annotations

from collections import Counter, OrderedDict

from ..base import missing
from ..framework import Operator, Parameter, Program

__all__ = ["op_freq_statistic"]


def op_freq_statistic(program: Program) -> tuple[OrderedDict[str, int], OrderedDict[str, int]]:
    """Counts of operator types in the first block, and of adjacent pairs, most frequent first
    (`fluid.contrib.op_freq_statistic`).

    A pair `PRODUCER->CONSUMER` is the first operator that writes a variable and one that reads it. Raises TypeError if
    `program` is no Program.
    """
    if not isinstance(program, Program):
        raise TypeError(f"The input type should be Porgram.But you passed in {type(program)}")
    makers: dict[str, Operator] = {}
    single: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    block = program.global_block()
    for op in block.ops:
        single[op.type] += 1
        for name in op.input_arg_names:
            maker = makers.get(name)
            if maker is not None and not isinstance(block.vars.get(name), Parameter):
                pairs[f"{maker.type}->{op.type}"] += 1
        for name in op.output_arg_names:
            makers.setdefault(name, op)
    return OrderedDict(single.most_common()), OrderedDict(pairs.most_common())


__getattr__ = missing.reporter(__name__)
