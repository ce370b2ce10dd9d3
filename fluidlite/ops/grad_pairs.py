"""An operator and its gradient declared together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .infer import grads_like_inputs
from .registry import (
    GRAD,
    Call,
    Dispatch,
    Effects,
    OpSpec,
    OpView,
    Planning,
    RowRule,
    Sequences,
    Slot,
    grad_name,
    register,
    standard_grad,
)

Kernel = Callable[..., Any]
Native = Callable[[OpView], Call | list[Call] | None]
Rule = Callable[[OpView], list[OpSpec]]


def register_pair(
    op_type: str,
    inputs: Sequence[str],
    kernel: Kernel,
    back: Kernel,
    infer: Callable[[OpView], None],
    doc: str,
    *,
    outputs: Sequence[str] = ("Out",),
    attrs: dict[str, Any] | None = None,
    keep: Sequence[str] | None = None,
    keep_out: Sequence[str] = (),
    no_grad: Sequence[str] = (),
    sequences: Sequences = Sequences(),
    sequences_back: Sequences | None = None,
    effects: Effects = Effects(),
    planning: Planning = Planning(),
    planning_back: Planning = Planning(),
    infer_back: Callable[[OpView], None] = grads_like_inputs,
    grad: Rule | None = None,
    grad_grad: Rule | None = None,
    second: tuple[Kernel, Sequence[str]] | None = None,
    cuda: tuple[str | None, str | None] = (None, None),
    native: tuple[Native | None, Native | None] = (None, None),
    rows: RowRule | None = None,
    rows_back: RowRule | None = None,
) -> None:
    """Declare `op_type` and `<op_type>_grad`.

    The gradient operator has the same attributes.

    Args:
        inputs, outputs: slots, see `Slot`.
        kernel, infer, no_grad, sequences, effects, planning: see `OpDef`.
        back: the kernel of the gradient: one result for each input that is not in `no_grad`, None for missing ones.
        keep: the inputs that the gradient gets (by default all; `X#`: for its shape; `X?`: saved programs may lack it).
        keep_out: the outputs that it gets, besides the gradients of the outputs that are not in `no_grad`.
        sequences_back: the `sequences` of the gradient, by default the `takes_lod` and `inferred` of `sequences`.
        planning_back: the `planning` of the gradient.
        infer_back: the shapes of the gradients, by default those of the inputs.
        grad: the gradient rule, by default `standard_grad` of what `keep` and `keep_out` name.
        grad_grad: the gradient rule of the gradient.
        second: the kernel of `<op_type>_grad_grad` and the slots it gives gradients for, as `kernel` and `wanted` of
            `register_double_grad`; instead of `grad_grad`.
        cuda: the launchers of both.
        native: the functions that choose the native kernels of both.
        rows, rows_back: the rules for SelectedRows of both.
    """
    slots = {slot.name: slot for slot in map(Slot.parse, inputs)}
    made = {slot.name: slot for slot in map(Slot.parse, outputs)}
    kept = [Slot.parse(text) for text in (slots if keep is None else keep)]
    kept_out = [Slot.parse(text) for text in keep_out]
    wanted = tuple(name for name in slots if name not in no_grad)

    def declared(slot: Slot, name: str, optional: bool, shape_only: bool = False) -> str:
        return name + "*" * slot.many + "?" * optional + "#" * shape_only

    register(
        op_type,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        attrs=attrs or {},
        infer=infer,
        kernel=kernel,
        grad=grad or standard_grad([slot.name for slot in kept], [slot.name for slot in kept_out]),
        no_grad=tuple(no_grad),
        native=native[0],
        dispatch=Dispatch(cuda=cuda[0], rows=rows),
        sequences=sequences,
        effects=effects,
        planning=planning,
        doc=doc,
    )
    if sequences_back is None:
        sequences_back = Sequences(takes_lod=sequences.takes_lod, inferred=sequences.inferred)
    takes = [
        declared(slots[k.name], k.name, slots[k.name].optional or k.optional, k.shape_only) for k in kept
    ]
    takes += [declared(made[k.name], k.name, made[k.name].optional, k.shape_only) for k in kept_out]
    arriving = {name: slot for name, slot in made.items() if name not in no_grad}
    if second is not None:
        (out,) = arriving
        grad_grad = double_grad(out, second[1])
    register(
        op_type + "_grad",
        inputs=(
            *takes,
            *(declared(slot, grad_name(name), slot.optional) for name, slot in arriving.items()),
        ),
        outputs=tuple(declared(slots[name], grad_name(name), True) for name in wanted),
        attrs=attrs or {},
        infer=infer_back,
        kernel=back,
        grad=grad_grad,
        native=native[1],
        dispatch=Dispatch(cuda=cuda[1], rows=rows_back),
        sequences=sequences_back,
        planning=planning_back,
        doc=f"The gradient of {op_type} for {', '.join(wanted)}.",
    )
    if second is not None:
        register_double_grad(op_type, takes, out, second[1], second[0], attrs or {}, wanted)


def gradient_by(
    op_type: str,
    takes: Mapping[str, str] = {"X": "Out@GRAD"},
    gives: Mapping[str, str] = {"Out": "X@GRAD"},
    attrs: Callable[[OpView], dict[str, Any]] | None = None,
) -> Rule:
    """The gradient rule that makes operator `op_type`, such as the operator itself on the gradient that arrives.

    `takes`, `gives`: the slots of `op_type`, with those of the operator that name their variables; ending in `@GRAD`
    for the gradients of these. Missing ones are left out. `attrs`: the attributes of `op_type`.
    """

    def names(op: OpView, slot: str) -> list[str]:
        if not slot.endswith(GRAD):
            return list(op.names(slot))
        return [grad_name(name) for name in op.names(slot.removesuffix(GRAD))]

    def rule(op: OpView) -> list[OpSpec]:
        inputs = {slot: found for slot, source in takes.items() if (found := names(op, source))}
        outputs = {slot: names(op, target) for slot, target in gives.items()}
        return [OpSpec(op_type, inputs, outputs, attrs(op) if attrs else {})]

    return rule


def linear_double_grad(op_type: str, source: str = "X", out: str = "Out") -> Rule:
    """The gradient rule of the gradient operator of a linear operator: that operator, with the same attributes.

    `source` is the input it is linear in; other inputs that the gradient operator has go along.
    """

    def rule(op: OpView) -> list[OpSpec]:
        if not op.has(grad_name(source)):
            return []
        takes = {
            slot: list(names)
            for slot, names in op.inputs.items()
            if names and slot not in (source, grad_name(out))
        }
        takes[source] = [grad_name(name) for name in op.names(grad_name(source))]
        gives = {out: [grad_name(name) for name in op.names(grad_name(out))]}
        return [OpSpec(op_type, takes, gives, dict(op.attrs))]

    return rule


def self_adjoint_double_grad(op: OpView) -> list[OpSpec]:
    """The gradient rule of a gradient operator that is linear and its own adjoint: the same operator again.

    It is from `Out@GRAD` to `X@GRAD`.
    """
    d_out, d_x = grad_name("Out"), grad_name("X")
    takes = {slot: list(names) for slot, names in op.inputs.items() if slot != d_out}
    takes[d_out] = [grad_name(op.name(d_x))]
    return [OpSpec(op.type, takes, {d_x: [grad_name(op.name(d_out))]}, dict(op.attrs))]


def double_grad(out: str, wanted: Sequence[str], kept: Sequence[str] | None = None) -> Rule:
    """The gradient rule that makes `<type>_grad_grad` from the gradient operator of an operator with output `out`.

    It takes what the gradient operator takes (of that only `kept`, if given), `D<out>` for the gradient of `out`, and
    `DD<slot>` for the gradient of each gradient it gives; it gives `D<slot>` for the inputs in `wanted`, and `DD<out>`.
    """

    def rule(op: OpView) -> list[OpSpec]:
        d_out = grad_name(out)
        takes = {
            slot: list(names)
            for slot, names in op.inputs.items()
            if names and slot != d_out and (kept is None or slot in kept)
        }
        takes["D" + out] = list(op.names(d_out))
        for slot, names in op.outputs.items():
            if names:
                takes["DD" + slot.removesuffix(GRAD)] = [grad_name(name) for name in names]
        gives = {"D" + slot: [grad_name(op.name(slot))] for slot in wanted if op.has(slot)}
        gives["DD" + out] = [grad_name(op.name(d_out))]
        return [OpSpec(op.type + "_grad", takes, gives, dict(op.attrs))]

    return rule


def bilinear_double_grad(forward: Kernel, back: Kernel) -> Kernel:
    """The kernel of `<type>_grad_grad` for an operator that is linear in X and in Y, from its other kernels."""

    def kernel(xp: Any, X: Any, Y: Any, DOut: Any, DDX: Any, DDY: Any, **attrs: Any) -> Any:
        ddx, ddy = or_zeros(xp, DDX, X), or_zeros(xp, DDY, Y)
        dx, dy = back(xp, ddx, ddy, DOut, **attrs)
        return dx, dy, forward(xp, ddx, Y, **attrs) + forward(xp, X, ddy, **attrs)

    return kernel


def infer_double_grad(op: OpView) -> None:
    """Give `D<slot>` the shape and type of `<slot>`, and `DD<out>` those of `D<out>`."""
    for given in op.outputs:
        like = given[1:]
        op.set(given, op.shape(like), op.dtype(like))


def register_double_grad(
    op_type: str,
    kept: Sequence[str],
    out: str,
    wanted: Sequence[str],
    kernel: Kernel,
    attrs: dict[str, Any],
    given: Sequence[str] | None = None,
    cuda: str | None = None,
) -> None:
    """Declare `<op_type>_grad_grad`, for which `double_grad(out, wanted)` is the rule.

    `kept`: the slots the gradient operator keeps; `given`: the inputs it gives gradients for (by default `wanted`).
    `kernel` returns the gradients of `wanted`, then that of the gradient of `out`; what begins with DD may be None.
    `cuda`: its launcher.
    """
    seconds = tuple(f"DD{slot}?" for slot in (wanted if given is None else given))
    register(
        op_type + "_grad_grad",
        inputs=(*kept, "D" + out, *seconds),
        outputs=(*(f"D{slot}?" for slot in wanted), f"DD{out}?"),
        attrs=attrs,
        infer=infer_double_grad,
        kernel=kernel,
        dispatch=Dispatch(cuda=cuda),
        doc=f"The gradients of {op_type}_grad for {', '.join(wanted)} and the gradient of {out}.",
    )


def or_zeros(xp: Any, given: Any, like: Any) -> Any:
    """`given`, or zeros of the shape of `like` if it is None."""
    return xp.zeros_like(like) if given is None else given
