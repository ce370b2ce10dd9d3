"""Conditional blocks (If), while loops (Loop) and StaticRNN (Scan)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ValueInfoProto, helper

from ...base.dtypes import VarType, to_numpy
from ...framework import Block
from ..graph import Exported, Graph, element_type, exports


def _changed(block: Block) -> list[str]:
    """The variables of outer blocks that a block writes, in the order of their first writing."""
    found: dict[str, None] = {}
    for op in block.ops:
        for name in op.output_arg_names:
            var = block._find_var_recursive(name)
            if var is not None and name not in block.vars:
                found[name] = None
    return list(found)


def _info(o: Exported, name: str, value: str) -> ValueInfoProto:
    """A value of an inner graph with the element type of a variable; its shape may change."""
    var = o.graph.block._var_recursive(name)
    if var.type == VarType.LOD_TENSOR_ARRAY:
        return helper.make_tensor_sequence_value_info(value, element_type(var.dtype), None)
    return helper.make_tensor_value_info(value, element_type(var.dtype), None)


def _finished(graph: Graph, hint: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> GraphProto:
    return helper.make_graph(graph.nodes, graph.root.fresh(hint), inputs, outputs)


def _truth(o: Exported, value: str) -> str:
    return o.node("Reshape", value, o.ints())


def _passed(graph: Graph, value: str) -> str:
    """A copy of the value made in `graph`: results of inner graphs have to be."""
    return graph.node("Identity", [value])


@exports("conditional_block")
def _conditional_block(o: Exported) -> None:
    """Outputs of a block that does not run keep their value, or are zeros if they had none."""
    if not o.attr("is_scalar_condition"):
        raise o.fail("runs its block if there are any rows")
    block = o.op._block_attr("sub_block")
    made = [name for name in _changed(block) if o.graph.block._find_var_recursive(name) is not None]
    then, other = Graph(block, o.graph), Graph(block, o.graph)
    then.write(block.ops)
    results = []
    for name in made:
        before = o.graph.value(name)
        if before is None:
            shape = [max(n, 0) for n in o.graph.block._var_recursive(name).shape]
            before = o.constant(np.zeros(shape, to_numpy(o.graph.block._var_recursive(name).dtype)))
        results.append((name, _passed(then, str(then.value(name))), _passed(other, before)))
    branches = {
        "then_branch": _finished(then, "then", [], [_info(o, name, value) for name, value, _ in results]),
        "else_branch": _finished(
            other, "otherwise", [], [_info(o, name, value) for name, _, value in results]
        ),
    }
    condition = _truth(o, o.inputs("Cond")[0])
    values = o.nodes("If", condition, count=len(made), **branches)
    for name, value in zip(made, values, strict=True):
        o.graph.set(name, value)


@exports("select_input")
def _select_input(o: Exported) -> str:
    """The result of the branch that has run."""
    branches = []
    for index, value in enumerate(o.inputs("X")):
        graph = Graph(o.graph.block, o.graph)
        branches.append(
            _finished(graph, "chosen", [], [_info(o, o.names("X")[index], _passed(graph, value))])
        )
    chosen = o.node("Cast", _truth(o, o.input("Mask")), to=9)
    return o.node("If", chosen, then_branch=branches[1], else_branch=branches[0])


@exports("while")
def _while(o: Exported) -> None:
    """Variables that the body writes are loop-carried; it reads the others from the outer graph."""
    block, condition = o.op._block_attr("sub_block"), o.names("Condition")[0]
    for name in _changed(block):
        var = o.graph.block._var_recursive(name)
        if var.type == VarType.LOD_TENSOR_ARRAY and o.graph.value(name) is None:
            o.graph.set(name, o.node("SequenceEmpty", dtype=element_type(var.dtype)))
    carried = [name for name in _changed(block) if name != condition and o.graph.value(name) is not None]
    unset = set(_changed(block)) - {condition, *carried}
    if unset:
        raise o.fail(f"makes {', '.join(sorted(unset))}, which has no value before the loop")
    for name in carried:
        if o.graph.lengths_of(name):
            raise o.fail(f"changes {name!r}, which has sequences")
    body = Graph(block, o.graph)
    count, before = body.fresh("iteration"), body.fresh("goes_on")
    inputs: list[ValueInfoProto] = [
        helper.make_tensor_value_info(count, 7, []),
        helper.make_tensor_value_info(before, 9, []),
    ]
    for name in carried:
        body.values[name] = body.fresh(name)
        inputs.append(_info(o, name, body.values[name]))
    body.write(block.ops)
    if condition not in body.values:
        raise o.fail(f"does not change its condition {condition!r}")
    on = body.node("Reshape", [body.values[condition], o.ints()])
    outputs: list[ValueInfoProto] = [helper.make_tensor_value_info(on, 9, [])]
    outputs += [_info(o, name, _passed(body, body.values[name])) for name in carried]
    start = [str(o.graph.value(name)) for name in carried]
    made = o.nodes(
        "Loop", "", _truth(o, o.input("Condition")), *start,
        count=len(carried), body=_finished(body, "loop", inputs, outputs),
    )  # fmt: skip
    for name, value in zip(carried, made, strict=True):
        o.graph.set(name, value)
    o.graph.set(condition, o.constant([False]))


@exports("rnn_memory_helper")
def _memory(o: Exported) -> str:
    return o.node("Identity", o.input("X"))


@exports("recurrent")
def _recurrent(o: Exported) -> None:
    """The steps of a StaticRNN."""
    block = o.op._block_attr("sub_block")
    befores, afters = list(o.attr("ex_states") or []), list(o.attr("states") or [])
    body, inputs = Graph(block, o.graph), []
    for name in [*befores, *o.names("inputs")]:
        body.values[name] = body.fresh(name)
        inputs.append(
            helper.make_tensor_value_info(
                body.values[name], element_type(block._var_recursive(name).dtype), None
            )
        )
    body.write(block.ops)
    outputs = []
    steps = o.op.outputs.get("outputs", [])
    for name in [*afters, *steps]:
        kind = element_type(block._var_recursive(name).dtype)
        outputs.append(helper.make_tensor_value_info(_passed(body, str(body.value(name))), kind, None))
    backward = int(bool(o.attr("reverse")))
    scanned = o.names("inputs")
    made = o.nodes(
        "Scan", *o.inputs("initial_states"), *o.inputs("inputs"), count=len(afters) + len(steps),
        body=_finished(body, "step", inputs, outputs), num_scan_inputs=len(scanned),
        scan_input_directions=[backward] * len(scanned), scan_output_directions=[backward] * len(steps),
    )  # fmt: skip
    for index, value in enumerate(made[len(afters) :]):
        o.out("outputs", value, index=index)
