"""Branches, loops and their gradients, as operators between jumps (`inlining.py`).

The gradient of a branch is a branch by the same predicate, that of a loop a loop of as many iterations, which pop what
those of the forward loop have stashed: `@TRIPS` stands in place of the scopes that the interpreter keeps of blocks.

    while(c)                          0 -> s@TRIPS
      mul(h, w) -> h                  loop(c)
                                        mul(h, w) -> h; increment(s@TRIPS); stash_push(h)
                                      loop_end
    while_grad                        loop(s@TRIPS counted down > 0)
      mul_grad(h, w, g) -> g, w@GRAD    stash_pop -> h; mul_grad(...); sum of w@GRAD
                                      loop_end
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ...base.dtypes import VarType
from ...framework import Operator
from ...framework.gradients.blocks import kept_names
from ...ops.registry import EMPTY, VERSION, grad_name
from ..failures import Unsupported
from ..ir.inference import in_place_of, is_non_tensor, renamed
from ..ir.jumps import COPY_IN, NONEMPTY, SELECT
from .array_ops import STASH_POP, STASH_PUSH
from .blocks import (
    INLINE,
    TRIP_COUNT,
    backward_of,
    control,
    forward_of,
    gradients,
    incoming_gradients,
    mangled_names,
    residuals_of_block,
    residuals_of_branches,
)

if TYPE_CHECKING:
    from .blocks import Names
    from .inlining import Body, Inliner


def branch(inliner: Inliner, op: Operator, names: Names) -> Iterator[Operator]:
    """`conditional_block`: its operators behind a jump by the condition, which is kept if it has a gradient."""
    block = op.attrs["sub_block"]
    if op.attr("is_scalar_condition"):
        (condition,) = (names.get(name, name) for name in op.inputs["Cond"])
    else:  # a side of an IfElse, which runs if it has rows
        inputs = [names.get(name, name) for name in op.inputs.get("Input", ())]
        yield in_place_of(op, NONEMPTY, {"X": [n for n in inputs if n in inliner.defined]}, {}, {})
        condition = inliner.introduce(f"{op.inputs['Cond'][0]}@SIDE{VERSION}B{block.idx}")
        yield inliner.constant(op, condition, 1, VarType.BOOL)
    if kept_names(op) is not None:
        ran = _trip_count(inliner, op, names)
        yield inliner.copy_in(op, condition, ran)
        condition = ran
    yield from inliner.jump(op, condition, inliner.body(op, {**names, **mangled_names(block)}, [block]))


def branch_gradient(inliner: Inliner, op: Operator, names: Names) -> Iterator[Operator]:
    """`conditional_block_grad`: gradients of variables that the branch replaced are updated in place, others are zeros
    unless it has run."""
    forward, block = _forward(op), op.attrs["sub_block"]
    taken = forward.attrs["sub_block"]
    ran = _trip_count(inliner, forward, names)
    if not names and ran not in inliner.defined:
        raise Unsupported("the branch is not in the plan that its gradient is in", op)
    inner = {**names, **mangled_names(taken), **mangled_names(block)}
    sources, states, local = incoming_gradients(op), {}, []
    pairs = []
    for name, out in gradients(op):
        inside, source = grad_name(name), sources.get(name, EMPTY)
        if is_non_tensor(op, name):
            inner[inside] = inliner.array(op, out, names)
            continue
        pairs.append((name, inside, names.get(out, out)))
        inner[inside] = f"{inside}{VERSION}S{block.idx}"  # not an outer variable of this name
        if source == EMPTY:
            local.append(inner[inside])
        else:
            states[inside] = inliner.introduce(inner[inside])
            yield _arriving(inliner, op, names.get(source, source), inner[inside])
    body = _backward(inliner, op, forward, inner, local)
    made = {name for each in body.ops for name in each.writes()}
    for name, inside, out in pairs:
        if inside not in states:
            yield in_place_of(op, "fill_zeros_like", {"X": [names.get(name, name)]}, {"Out": [out]}, {})
            inliner.define(out)
            if inner[inside] in made:
                body.ops.append(in_place_of(op, COPY_IN, {"X": [inner[inside]]}, {"Out": [out]}, {}))
    yield from inliner.jump(op, ran, body)
    for _, inside, out in pairs:
        if inside in states:
            yield inliner.copy_in(op, states[inside], out)


def loop(inliner: Inliner, op: Operator, names: Names) -> Iterator[Operator]:
    """`while`: as long as the condition, which its block writes, is true."""
    (condition,) = (names.get(name, name) for name in op.inputs["Condition"])
    yield from _repeated(inliner, op, names, condition)


def _repeated(inliner: Inliner, op: Operator, names: Names, condition: str) -> Iterator[Operator]:
    """The block of a loop. With a gradient, the loop counts its iterations and stashes what that reads of each."""
    block = op.attrs["sub_block"]
    keeps = kept_names(op) is not None
    if keeps:
        ran = _trip_count(inliner, op, names)
        yield inliner.constant(op, ran, 0)
    own = {**names, **mangled_names(block)}
    body = inliner.body(op, own, [block], repeated=True)
    if keeps:
        body.ops.append(_incremented(op, ran, 1))
        for number in range(len(backward_of(op))):
            for name in (*_residuals(inliner, op, own), *inliner.scan_residuals(op, own)):
                attrs = {"array": inliner.stash(name, block, number)}
                body.ops.append(in_place_of(op, STASH_PUSH, {"X": [name]}, {}, attrs))
    yield from inliner.jump(op, condition, body, repeated=True)


def loop_gradient(inliner: Inliner, op: Operator, names: Names) -> Iterator[Operator]:
    """`while_grad`: a loop from the last iteration to the first. Gradients of loop-carried variables are carried, those
    of loop-invariant ones are summed."""
    forward, block = _forward(op), op.attrs["sub_block"]
    source = forward.attrs["sub_block"]
    ran = _trip_count(inliner, forward, names)
    if not names and ran not in inliner.defined:
        raise Unsupported("the loop is not in the plan that its gradient is in", op)
    own = {**names, **mangled_names(source)}
    inner = {**own, **mangled_names(block)}
    stashed = [*_residuals(inliner, forward, own), *inliner.scan_residuals(forward, inner)]
    states: dict[str, str] = {}
    for inside, outside in zip(op.attrs["original_output_grad"], op.inputs.get("Out@GRAD", ()), strict=True):
        if is_non_tensor(op, outside):
            inner[inside] = inliner.array(op, outside, names)
        else:
            inner[inside] = states[inside] = inliner.introduce(f"{inside}{VERSION}S{block.idx}")
            yield _arriving(inliner, op, names.get(outside, outside), inner[inside])
    ends, totals = [], {}
    for name, out in gradients(op):
        inside, value = grad_name(name), names.get(name, name)
        if is_non_tensor(op, name):
            if inside in op.attrs["original_output_grad"]:
                inliner.array_aliases[names.get(out, out)] = inner[inside]
            else:
                inner[inside] = inliner.array(op, out, names)
            continue
        total = states.get(inside)
        if total is None:
            if value in inliner.unset:
                raise Unsupported(f"variable {value!r} is undefined if a loop has no iteration", op)
            part = inner.setdefault(inside, f"{inside}{VERSION}B{block.idx}")
            total = totals[part] = inliner.introduce(f"{inside}{VERSION}A{block.idx}")
            yield in_place_of(op, "fill_zeros_like", {"X": [value]}, {"Out": [total]}, {})
            inliner.define(total)
        ends.append((total, names.get(out, out)))
    left, more, none = (inliner.introduce(f"{ran}{VERSION}{mark}{block.idx}") for mark in "LMN")
    is_above = in_place_of(op, "greater_than", {"X": [left], "Y": [none]}, {"Out": [more]}, {})
    yield from (inliner.copy_in(op, ran, left), inliner.constant(op, none, 0), is_above)
    inliner.define(more)
    number = next(k for k, each in enumerate(backward_of(forward)) if each.attrs is op.attrs)
    body = _backward(inliner, op, forward, inner, totals, repeated=True)
    made = {name for each in body.ops for name in each.writes()}
    body.ops[:0] = [
        in_place_of(
            op, STASH_POP, {"Like": [name]}, {"Out": [name]}, {"array": inliner.stash(name, source, number)}
        )
        for name in stashed
    ]
    body.local.update(stashed)
    for part, total in totals.items():
        if part in made:
            body.ops.append(in_place_of(op, "sum", {"X": [total, part]}, {"Out": [total]}, {}))
    body.ops += [_incremented(op, left, -1), is_above]
    yield from inliner.jump(op, more, body, repeated=True)
    for source_name, out in ends:
        yield inliner.copy_in(op, source_name, out)


def select_input(inliner: Inliner, op: Operator, names: Names) -> Iterator[Operator]:
    made = renamed(op, names)
    for name in made.inputs["X"]:
        if name not in inliner.defined and name not in inliner.unset:
            raise Unsupported(f"variable {name!r} is undefined where a branch is not taken", op)
    yield in_place_of(op, SELECT, made.inputs, made.outputs, {})
    inliner.define(*made.writes())


def select_output(inliner: Inliner, op: Operator, names: Names) -> Iterator[Operator]:
    made = renamed(op, names)
    for name in made.outputs["Out"]:
        yield inliner.copy_in(op, made.inputs["X"][0], name)


def _forward(op: Operator) -> Operator:
    forward = forward_of(op)
    assert forward is not None  # `is_inlinable` has seen it
    return forward


def _trip_count(inliner: Inliner, op: Operator, names: Names) -> str:
    """The variable with the predicate of a branch, or the trip count of a loop."""
    (scope,) = op.outputs[control(op).scopes]
    found = names.get(scope, scope) + TRIP_COUNT
    return inliner.introduce(found) if scope in op.block.vars else found


def _residuals(inliner: Inliner, op: Operator, own: Names) -> list[str]:
    """The residuals of an iteration of a loop. `own`: the names of variables in its block."""
    block = op.attrs["sub_block"]
    found = residuals_of_block(block, block.ops, kept_names(op))
    return [*(own.get(n, n) for n in found), *residuals_of_branches(block.ops, own, inliner.arrays)]


def _incremented(op: Operator, name: str, step: int) -> Operator:
    return in_place_of(op, "increment", {"X": [name]}, {"Out": [name]}, {"step": float(step)})


def _arriving(inliner: Inliner, op: Operator, source: str, state: str) -> Operator:
    """Copy a gradient that comes from outside to a variable that the block updates."""
    if source in inliner.unset or source not in inliner.defined:
        raise Unsupported(f"gradient {source!r} may be undefined", op)
    return inliner.copy_in(op, source, state)


def _backward(
    inliner: Inliner,
    op: Operator,
    forward: Operator,
    names: Names,
    local: Mapping[str, str] | list[str],
    repeated: bool = False,
) -> Body:
    """The body of a gradient's block, in which results of the forward block are defined."""
    spared = {n: inliner.unset.pop(n) for n in [*inliner.unset] if inliner.unset[n].attrs is forward.attrs}
    blocks = [op.attrs["sub_block"], forward.attrs["sub_block"]]
    body = inliner.body(op, names, blocks, repeated, local)
    inliner.unset.update(spared)
    return body


INLINE |= {
    "conditional_block": branch,
    "conditional_block_infer": branch,
    "conditional_block_grad": branch_gradient,
    "while": loop,
    "while_grad": loop_gradient,
    "select_input": select_input,
    "select_output": select_output,
}
