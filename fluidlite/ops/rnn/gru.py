"""Gated recurrent units over sequences: `gru`."""

from __future__ import annotations

from typing import Any

from ..grad_pairs import register_pair
from ..infer import require_same_dtype
from ..native import typed
from ..registry import Call, Levels, LodArray, OpView, Sequences, grad_name
from ..sequence import Lods, one_level, segments_of, set_rows, single
from .unit import (
    NATIVE,
    Steps,
    activate_clipped,
    check_activations,
    check_initial,
    check_width,
    gru_step,
    gru_step_grad,
)

DX, DH0, DWEIGHT, DBIAS, DHIDDEN = (grad_name(slot) for slot in ("Input", "H0", "Weight", "Bias", "Hidden"))


def _gru(
    xp: Any,
    Input: Any,
    H0: Any,
    Weight: Any,
    Bias: Any,
    gate_activation: str,
    activation: str,
    is_reverse: bool,
    origin_mode: bool,
    lod: Lods,
) -> Any:
    offsets = one_level("gru", lod, "Input")
    steps, size, dtype = Steps(offsets, is_reverse), Weight.shape[0], Input.dtype
    given = steps.packed(xp, Input if Bias is None else Input + Bias.reshape(1, -1))
    state = steps.start(xp, H0, size, dtype)
    made: list[tuple[Any, Any, Any]] = []
    for t, n in enumerate(steps.counts):
        rule = gate_activation, activation, origin_mode, activate_clipped
        made.append(gru_step(xp, steps.of(given, t), state[:n], Weight, *rule))
        state = made[-1][2]
    gates, kept, states = ([step[k] for step in made] for k in range(3))
    return (
        steps.joined(xp, gates, 3 * size, dtype),
        steps.joined(xp, kept, size, dtype),
        steps.joined(xp, states, size, dtype),
        LodArray(steps.unpacked(xp, states, size, dtype), [offsets]),
    )


def _gru_grad(
    xp: Any,
    H0: Any,
    Weight: Any,
    Bias: Any,
    Hidden: Any,
    BatchGate: Any,
    BatchResetHiddenPrev: Any,
    Hidden_grad: Any,
    gate_activation: str,
    activation: str,
    is_reverse: bool,
    origin_mode: bool,
    lod: Lods,
) -> Any:
    offsets = one_level("gru_grad", lod, "Input")
    steps, size, dtype = Steps(offsets, is_reverse), Weight.shape[0], Hidden.dtype
    before = steps.before(xp, steps.packed(xp, Hidden), H0)
    arriving = steps.packed(xp, Hidden_grad)
    d_given: list[Any] = []
    d_weight, d_state = xp.zeros_like(Weight), xp.zeros((0, size), dtype)
    for t in reversed(range(len(steps))):
        none = xp.zeros((steps.counts[t] - len(d_state), size), dtype)
        d_step, d_state, d_here = gru_step_grad(
            xp,
            steps.of(before, t),
            Weight,
            steps.of(BatchGate, t),
            steps.of(BatchResetHiddenPrev, t),
            steps.of(arriving, t) + xp.concatenate([d_state, none]),
            gate_activation,
            activation,
            origin_mode,
        )
        d_given.append(d_step)
        d_weight = d_weight + d_here
    d_input = steps.unpacked(xp, d_given[::-1], 3 * size, dtype)
    d_bias = None if Bias is None else d_input.sum(axis=0).reshape(Bias.shape)
    d_initial = None if H0 is None else steps.initial_grad(xp, d_state)
    return d_input, d_initial, d_weight, d_bias


def _infer(op: OpView) -> None:
    shape, weight = op.shape("Input"), op.shape("Weight")
    if len(weight) != 2 or weight[1] != 3 * weight[0]:
        raise op.fail(f"Weight must be of shape [size, 3 * size], got {list(weight)}")
    size = weight[0]
    check_width(op, "Input", 3 * size)
    check_width(op, "H0", size)
    if op.has("Bias") and op.shape("Bias") != (1, 3 * size):
        raise op.fail(f"Bias must be of shape {[1, 3 * size]}, got {list(op.shape('Bias'))}")
    check_activations(op, "gate_activation", "activation")
    dtype, found = require_same_dtype(op, "Input", "H0", "Weight", "Bias"), single(op, "Input")
    check_initial(op, "H0")
    set_rows(op, "Hidden", (shape[0], size), dtype, found)
    for out, width in (("BatchGate", 3 * size), ("BatchResetHiddenPrev", size), ("BatchHidden", size)):
        set_rows(op, out, (shape[0], width), dtype, found and ())


def _ints(op: OpView, count: int, rows: int) -> list[Any]:
    size = op.shape("Weight")[0]
    acts = [NATIVE[op.attr(name)] for name in ("gate_activation", "activation")]
    return [count, rows, size, 3 * size, int(op.attr("is_reverse")), int(op.attr("origin_mode")), *acts]


def _native(op: OpView) -> Call | None:
    name, found = typed(op, "gru", ("Input", "Weight")), segments_of(op, "Input")
    if name is None or found is None:
        return None
    offsets, count, rows = found
    operands = [op.name("Input"), offsets, op.name_or_none("H0"), op.name("Weight"), op.name_or_none("Bias")]
    operands += [op.name(out) for out in ("Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden")]
    return Call(name, operands, _ints(op, count, rows))


def _native_grad(op: OpView) -> Call | None:
    name, found = typed(op, "gru_grad", ("Weight", DHIDDEN)), segments_of(op, "Input")
    if name is None or found is None:
        return None
    offsets, count, rows = found
    operands = [offsets, op.name_or_none("H0")]
    operands += [op.name(slot) for slot in ("Weight", "Hidden", "BatchGate", "BatchResetHiddenPrev", DHIDDEN)]
    operands += [op.name_or_none(slot) for slot in (DX, DWEIGHT, DBIAS, DH0)]
    return Call(name, operands, _ints(op, count, rows))


_GRU = {"gate_activation": "sigmoid", "activation": "tanh", "is_reverse": False, "origin_mode": False}


register_pair(
    "gru",
    ("Input", "H0?", "Weight", "Bias?"),
    _gru,
    _gru_grad,
    _infer,
    "A gated recurrent unit over each sequence; Batch...: rows in the order of steps, longest sequence first.",
    outputs=("BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden"),
    attrs=_GRU,
    keep=("Input#", "H0", "Weight", "Bias"),
    keep_out=("BatchGate", "BatchResetHiddenPrev", "BatchHidden#", "Hidden"),
    no_grad=("BatchGate", "BatchResetHiddenPrev", "BatchHidden"),
    sequences=Sequences(takes_lod=True, levels=Levels("Input", outs=("Hidden",))),
    native=(_native, _native_grad),
)
