"""LSTM and GRU over sequences; in Fluid the inputs are already projected by the input weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Exported, exports
from ..padding import padded, sequences, unpadded
from .math import scalar

_ACTIVATIONS = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu"}


def _array(o: Exported, slot: str) -> np.ndarray:
    found = o.given(o.names(slot)[0])
    if found is None:
        raise o.fail(f"has computed weights in {slot}")
    return found


def _activations(o: Exported, *names: str) -> list[str]:
    kinds = [o.attr(name) for name in names]
    if any(kind not in _ACTIVATIONS for kind in kinds):
        raise o.fail(f"has activations {kinds}")
    return [_ACTIVATIONS[kind] for kind in kinds]


def _start(o: Exported, slot: str) -> str:
    """The first state, [1, B, D], or nothing."""
    return str(o.node("Unsqueeze", o.input(slot), o.ints(0))) if o.has(slot) else ""


def _run(
    o: Exported, kind: str, size: int, weights: list[Any], states: list[str], count: int, **attrs: Any
) -> list[str]:
    """The results of a recurrent node, as rows."""
    lengths = o.lengths("Input")
    parts = sequences(o, lengths)
    held = [o.constant(array[None]) for array in weights]
    as_int = o.node("Cast", lengths, to=6)
    inputs = [padded(o, o.input("Input"), parts), *held[:3], as_int, *states, *held[3:]]
    direction = "reverse" if o.attr("is_reverse") else "forward"
    made = o.node(kind, *inputs, count=count, hidden_size=size, direction=direction, **attrs)
    first = made if isinstance(made, str) else made[0]
    return [unpadded(o, o.node("Squeeze", first, o.ints(1)), parts)]


@exports("lstm")
def _lstm(o: Exported) -> None:
    """Gates are candidate, input, forget, output in Fluid and input, output, forget, candidate in ONNX."""
    if o.wants("Cell") and o.op.outputs["Cell"][0] in o.read_later():
        raise o.fail("returns the cell states of all steps")
    weight, bias = _array(o, "Weight"), _array(o, "Bias").reshape(-1)
    size = weight.shape[0]
    order = np.concatenate([np.arange(size) + size * gate for gate in (1, 3, 2, 0)])
    both = np.concatenate([bias[: 4 * size][order], np.zeros(4 * size, bias.dtype)])
    weights = [np.eye(4 * size, dtype=weight.dtype)[order], np.ascontiguousarray(weight.T[order]), both]
    if o.attr("use_peepholes"):
        into, forgetting, showing = np.split(bias[4 * size :], 3)
        weights.append(np.concatenate([into, showing, forgetting]))
    kinds = _activations(o, "gate_activation", "candidate_activation", "cell_activation")
    (hidden,) = _run(o, "LSTM", size, weights, [_start(o, "H0"), _start(o, "C0")], 1, activations=kinds)
    o.out("Hidden", hidden, o.lengths("Input"))


@exports("gru")
def _gru(o: Exported) -> None:
    """Update, reset, candidate in both. Where the update gate is the share of the candidate, its sum is negated."""
    weight = _array(o, "Weight")
    size = weight.shape[0]
    bias = _array(o, "Bias").reshape(-1) if o.has("Bias") else np.zeros(3 * size, weight.dtype)
    # The weights of the update and reset gates come before those of the candidate.
    flat = weight.reshape(-1)
    gates, candidate = (
        flat[: 2 * size * size].reshape(size, 2 * size),
        flat[2 * size * size :].reshape(size, size),
    )
    sign = np.ones((3 * size, 1), weight.dtype)
    kinds = _activations(o, "gate_activation", "activation")
    if not o.attr("origin_mode"):
        if kinds[0] != "Sigmoid":
            raise o.fail(f"has gates of {o.attr('gate_activation')}")
        sign[:size] = -1
    recurrent = np.concatenate([gates, candidate], axis=1).T
    both = np.concatenate([bias * sign[:, 0], np.zeros(3 * size, bias.dtype)])
    weights = [np.eye(3 * size, dtype=weight.dtype) * sign, np.ascontiguousarray(recurrent * sign), both]
    (hidden,) = _run(o, "GRU", size, weights, [_start(o, "H0")], 1, activations=kinds, linear_before_reset=0)
    o.out("Hidden", hidden, o.lengths("Input"))


@exports("lstm_unit")
def _lstm_unit(o: Exported) -> None:
    """One step whose gates, [rows, 4 * size], are input, forget, output and candidate."""
    (size,) = o.static("C_prev", 1)
    into, forget, out, candidate = o.node("Split", o.input("X"), o.ints(*[size] * 4), count=4, axis=1)
    if o.attr("forget_bias"):
        forget = o.node("Add", forget, scalar(o, o.attr("forget_bias")))
    kept = o.node("Mul", o.node("Sigmoid", forget), o.input("C_prev"))
    cell = o.node("Add", kept, o.node("Mul", o.node("Sigmoid", into), o.node("Tanh", candidate)))
    o.out("C", cell)
    o.out("H", o.node("Mul", o.node("Sigmoid", out), o.node("Tanh", cell)))


@exports("gru_unit")
def _gru_unit(o: Exported) -> None:
    """One step; the weights of the update and reset gates come before the candidate's."""
    (size,) = o.static("HiddenPrev", 1)
    before, given = o.input("HiddenPrev"), o.input("Input")
    if o.has("Bias"):
        given = o.node("Add", given, o.node("Reshape", o.input("Bias"), o.ints(1, -1)))
    flat = o.node("Reshape", o.input("Weight"), o.ints(-1))
    gates, last = o.node("Split", flat, o.ints(2 * size * size, size * size), count=2, axis=0)
    both, own = o.node("Split", given, o.ints(2 * size, size), count=2, axis=1)
    kinds = [
        ("Identity", "Sigmoid", "Tanh", "Relu")[o.attr(name)] for name in ("gate_activation", "activation")
    ]
    inner = o.node("MatMul", before, o.node("Reshape", gates, o.ints(size, 2 * size)))
    both = o.node(kinds[0], o.node("Add", both, inner))
    update, reset = o.node("Split", both, o.ints(size, size), count=2, axis=1)
    kept = o.node("Mul", reset, before)
    own = o.node("Add", own, o.node("MatMul", kept, o.node("Reshape", last, o.ints(size, size))))
    candidate = o.node(kinds[1], own)
    old, new = (candidate, before) if o.attr("origin_mode") else (before, candidate)
    o.out("Gate", o.node("Concat", both, candidate, axis=1))
    o.out("ResetHiddenPrev", kept)
    o.out("Hidden", o.node("Add", old, o.node("Mul", update, o.node("Sub", new, old))))
