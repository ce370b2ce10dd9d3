"""One step of a recurrent network, `gru_unit` and `lstm_unit`, and the rows of sequences ordered by time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...backend.functions import matmul
from ..grad_pairs import register_pair
from ..infer import require_same_dtype
from ..native import typed, typed_call
from ..nn.activation import stable_sigmoid
from ..registry import Call, OpView, Sequences, grad_name

DHIDDEN, DINPUT, DPREV, DWEIGHT, DBIAS = (
    grad_name(slot) for slot in ("Hidden", "Input", "HiddenPrev", "Weight", "Bias")
)

ACTIVATIONS = ("identity", "sigmoid", "tanh", "relu")
"""The activations of recurrent operators; gru_unit's attributes have their numbers."""


def activate(xp: Any, x: Any, name: str) -> Any:
    """The activation of that name of `x`."""
    if name == "sigmoid":
        return stable_sigmoid(xp, x)
    return x if name == "identity" else xp.tanh(x) if name == "tanh" else xp.maximum(x, 0)


def activation_slope(xp: Any, out: Any, name: str) -> Any:
    """The derivative of the activation of that name where its result is `out`."""
    if name == "sigmoid":
        return out * (1 - out)
    return xp.ones_like(out) if name == "identity" else 1 - out * out if name == "tanh" else out > 0


def _weights(Weight: Any, size: int) -> tuple[Any, Any]:
    """[size, 2 size] for update and reset gate and [size, size] for the candidate, one after the other in memory."""
    flat = Weight.reshape(-1)
    return flat[: 2 * size * size].reshape(size, 2 * size), flat[2 * size * size :].reshape(size, size)


def gru_step(
    xp: Any,
    given: Any,
    before: Any,
    Weight: Any,
    gate_act: str,
    act: str,
    origin_mode: bool,
    activate: Callable[[Any, Any, str], Any] = activate,
) -> tuple[Any, Any, Any]:
    """Gates with the candidate, the old state after the reset gate, and the new state; `given`: input and bias."""
    size = before.shape[1]
    for_gates, for_candidate = _weights(Weight, size)
    gates = activate(xp, given[:, : 2 * size] + matmul(xp, before, for_gates), gate_act)
    update, reset = gates[:, :size], gates[:, size:]
    kept = reset * before
    candidate = activate(xp, given[:, 2 * size :] + matmul(xp, kept, for_candidate), act)
    step = candidate - before
    state = candidate - update * step if origin_mode else before + update * step
    return xp.concatenate([gates, candidate], axis=1), kept, state


def gru_step_grad(
    xp: Any,
    before: Any,
    Weight: Any,
    gate: Any,
    kept: Any,
    d_state: Any,
    gate_act: str,
    act: str,
    origin_mode: bool,
) -> tuple[Any, Any, Any]:
    """The gradients of a step for its input, the old state and the weights."""
    size = before.shape[1]
    for_gates, for_candidate = _weights(Weight, size)
    update, reset, candidate = (gate[:, k * size : (k + 1) * size] for k in range(3))
    share = 1 - update if origin_mode else update
    sign = -1 if origin_mode else 1
    d_candidate = d_state * share * activation_slope(xp, candidate, act)
    d_kept = matmul(xp, d_candidate, for_candidate.T)
    d_update = sign * d_state * (candidate - before) * activation_slope(xp, update, gate_act)
    d_reset = d_kept * before * activation_slope(xp, reset, gate_act)
    d_gates = xp.concatenate([d_update, d_reset], axis=1)
    d_before = d_state * (1 - share) + d_kept * reset + matmul(xp, d_gates, for_gates.T)
    parts = matmul(xp, before.T, d_gates).reshape(-1), matmul(xp, kept.T, d_candidate).reshape(-1)
    d_weight = xp.concatenate(parts).reshape(Weight.shape)
    return xp.concatenate([d_gates, d_candidate], axis=1), d_before, d_weight


def _gru_unit(
    xp: Any,
    Input: Any,
    HiddenPrev: Any,
    Weight: Any,
    Bias: Any,
    activation: int,
    gate_activation: int,
    origin_mode: bool,
) -> Any:
    given = Input if Bias is None else Input + Bias.reshape(1, -1)
    acts = ACTIVATIONS[gate_activation], ACTIVATIONS[activation]
    return gru_step(xp, given, HiddenPrev, Weight, *acts, origin_mode)


def _gru_unit_grad(
    xp: Any,
    HiddenPrev: Any,
    Weight: Any,
    Bias: Any,
    Gate: Any,
    ResetHiddenPrev: Any,
    Hidden_grad: Any,
    activation: int,
    gate_activation: int,
    origin_mode: bool,
) -> Any:
    acts = ACTIVATIONS[gate_activation], ACTIVATIONS[activation]
    d_input, d_prev, d_weight = gru_step_grad(
        xp, HiddenPrev, Weight, Gate, ResetHiddenPrev, Hidden_grad, *acts, origin_mode
    )
    d_bias = None if Bias is None else d_input.sum(axis=0).reshape(Bias.shape)
    return d_input, d_prev, d_weight, d_bias


def _gru_unit_infer(op: OpView) -> None:
    given, prev, weight = op.shape("Input"), op.shape("HiddenPrev"), op.shape("Weight")
    if len(given) != 2 or len(prev) != 2:
        raise op.fail(f"Input and HiddenPrev must have 2 dimensions, got {list(given)} and {list(prev)}")
    size = prev[1]
    if given[0] != prev[0] and min(given[0], prev[0]) >= 0:
        raise op.fail(f"Input and HiddenPrev must have as many rows, got {given[0]} and {prev[0]}")
    if given[1] != 3 * size and min(given[1], size) >= 0:
        raise op.fail(f"Input must be 3 * {size} wide, three times HiddenPrev, got {given[1]}")
    if weight != (size, 3 * size) and size >= 0:
        raise op.fail(f"Weight must be of shape {[size, 3 * size]}, got {list(weight)}")
    if op.has("Bias") and size >= 0 and op.shape("Bias") != (1, 3 * size):
        raise op.fail(f"Bias must be of shape {[1, 3 * size]}, got {list(op.shape('Bias'))}")
    if not {op.attr("activation"), op.attr("gate_activation")} <= set(range(len(ACTIVATIONS))):
        raise op.fail(f"activation and gate_activation must be in [0, {len(ACTIVATIONS)})")
    dtype = require_same_dtype(op, "Input", "HiddenPrev", "Weight", "Bias")
    op.set("Gate", given, dtype)
    op.set("ResetHiddenPrev", (given[0], size), dtype)
    op.set("Hidden", (given[0], size), dtype)


_NATIVE = {"identity": 0, "sigmoid": 4, "tanh": 3, "relu": 1}
"""The numbers of activations in native kernels; their 2 is the sigmoid of sequence operators."""


def _gru_unit_ints(op: OpView) -> list[Any]:
    """The integer arguments of the `gru` kernels, for rows that are sequences of one step."""
    rows, size = op.shape("HiddenPrev")
    acts = [_NATIVE[ACTIVATIONS[op.attr(name)]] for name in ("gate_activation", "activation")]
    return [rows, rows, size, 3 * size, 0, int(op.attr("origin_mode")), *acts]


def _gru_unit_native(op: OpView) -> Call | None:
    name = typed(op, "gru", ("Input", "HiddenPrev", "Weight"))
    operands = [op.name("Input"), None, op.name("HiddenPrev"), op.name("Weight"), op.name_or_none("Bias")]
    operands += [*(op.name(out) for out in ("Hidden", "Gate", "ResetHiddenPrev")), None]
    return Call(name, operands, _gru_unit_ints(op)) if name else None


def _gru_unit_grad_native(op: OpView) -> Call | None:
    name = typed(op, "gru_grad", ("HiddenPrev", "Weight", DHIDDEN))
    operands = [None, op.name("HiddenPrev"), op.name("Weight"), op.name("HiddenPrev")]
    operands += [op.name(slot) for slot in ("Gate", "ResetHiddenPrev", DHIDDEN)]
    operands += [op.name_or_none(slot) for slot in (DINPUT, DWEIGHT, DBIAS, DPREV)]
    return Call(name, operands, _gru_unit_ints(op)) if name else None


_GRU_UNIT = {"activation": 2, "gate_activation": 1, "origin_mode": False}

register_pair(
    "gru_unit",
    ("Input", "HiddenPrev", "Weight", "Bias?"),
    _gru_unit,
    _gru_unit_grad,
    _gru_unit_infer,
    "One step of a gated recurrent unit; origin_mode: the update gate is the share of the old state.",
    outputs=("Gate", "ResetHiddenPrev", "Hidden"),
    attrs=_GRU_UNIT,
    keep_out=("Gate", "ResetHiddenPrev"),
    no_grad=("Gate", "ResetHiddenPrev"),
    sequences=Sequences(source=None),
    native=(_gru_unit_native, _gru_unit_grad_native),
)


def _lstm_gates(xp: Any, X: Any, forget_bias: float) -> tuple[Any, Any, Any, Any]:
    """Input, forget and output gate and the candidate of a step."""
    size = X.shape[1] // 4
    opened = [X[:, k * size : (k + 1) * size] for k in range(4)]
    return (
        stable_sigmoid(xp, opened[0]),
        stable_sigmoid(xp, opened[1] + X.dtype.type(forget_bias)),
        stable_sigmoid(xp, opened[2]),
        xp.tanh(opened[3]),
    )


def _lstm_unit(xp: Any, X: Any, C_prev: Any, forget_bias: float) -> Any:
    into, forget, out, candidate = _lstm_gates(xp, X, forget_bias)
    cell = forget * C_prev + into * candidate
    return cell, out * xp.tanh(cell)


def _lstm_unit_grad(
    xp: Any, X: Any, C_prev: Any, C: Any, C_grad: Any, H_grad: Any, forget_bias: float
) -> Any:
    into, forget, out, candidate = _lstm_gates(xp, X, forget_bias)
    shown = xp.tanh(C)
    d_cell = C_grad + H_grad * out * (1 - shown * shown)
    parts = [
        d_cell * candidate * into * (1 - into),
        d_cell * C_prev * forget * (1 - forget),
        H_grad * shown * out * (1 - out),
        d_cell * into * (1 - candidate * candidate),
    ]
    return xp.concatenate(parts, axis=1), d_cell * forget


def _lstm_unit_infer(op: OpView) -> None:
    x, cell = op.shape("X"), op.shape("C_prev")
    if len(x) != 2 or len(cell) != 2 or (x[1] != 4 * cell[1] and min(x[1], cell[1]) >= 0):
        raise op.fail(f"X must be [rows, 4 * size] and C_prev [rows, size], got {list(x)} and {list(cell)}")
    dtype = require_same_dtype(op, "X", "C_prev")
    op.set("C", cell, dtype)
    op.set("H", cell, dtype)


def _lstm_unit_call(op: OpView, kernel: str, slots: tuple[str, ...]) -> Call | None:
    rows, size = op.shape("C_prev")
    ints, floats = [rows, size, 4 * size], [float(op.attr("forget_bias"))]
    return typed_call(op, kernel, ("X", "C_prev"), slots, ints, floats)


def _lstm_unit_grad_native(op: OpView) -> Call | None:
    slots = ("C", grad_name("C"), grad_name("H"), grad_name("X"), grad_name("C_prev"))
    return _lstm_unit_call(op, "lstm_unit_grad", slots)


register_pair(
    "lstm_unit",
    ("X", "C_prev"),
    _lstm_unit,
    _lstm_unit_grad,
    _lstm_unit_infer,
    "One step of a long short-term memory; X: input, forget and output gate and candidate side by side.",
    outputs=("C", "H"),
    attrs={"forget_bias": 0.0},
    keep_out=("C",),
    sequences=Sequences(source=None),
    native=(
        lambda op: _lstm_unit_call(op, "lstm_unit", ("C", "H")),
        _lstm_unit_grad_native,
    ),
)

NATIVE = {"identity": 0, "relu": 1, "sigmoid": 2, "tanh": 3}
"""The numbers of activations in native kernels."""


def activate_clipped(xp: Any, x: Any, name: str) -> Any:
    """An activation in operators on sequences, where Fluid takes sigmoids of nothing below -40 or above 13."""
    return activate(xp, xp.clip(x, -40, 13) if name == "sigmoid" else x, name)


class Steps:
    """Packed rows: the first rows of all sequences, the longest first, then their second rows, and so on.

    `order`: the sequences, the longest first. `counts`: how many rows each step has; the sequences that have ended are
    at the end of those of the step before. `source`: for each packed row that of X.
    """

    def __init__(self, offsets: np.ndarray, reverse: bool) -> None:
        lengths = np.diff(offsets)
        self.order = np.argsort(-lengths, kind="stable")
        longest = int(lengths.max(initial=0))
        self.counts = [int(np.count_nonzero(lengths > t)) for t in range(longest)]
        self.first = np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])
        starts, ends = offsets[:-1][self.order], offsets[1:][self.order]
        steps = [ends[:n] - 1 - t if reverse else starts[:n] + t for t, n in enumerate(self.counts)]
        self.source = np.concatenate([np.zeros(0, np.int64), *steps])

    def __len__(self) -> int:
        return len(self.counts)

    def of(self, packed: Any, t: int) -> Any:
        """The rows of step `t`."""
        return packed[self.first[t] : self.first[t + 1]]

    def packed(self, xp: Any, x: Any) -> Any:
        """Rows of X in the order of steps."""
        return x[xp.asarray(self.source)]

    def unpacked(self, xp: Any, steps: Sequence[Any], width: int, dtype: Any) -> Any:
        """The rows that steps have made, in X's order."""
        return self.joined(xp, steps, width, dtype)[xp.asarray(np.argsort(self.source))]

    def joined(self, xp: Any, steps: Sequence[Any], width: int, dtype: Any) -> Any:
        """The rows that steps have made, packed."""
        return xp.concatenate([xp.zeros((0, width), dtype), *steps])

    def before(self, xp: Any, packed: Any, initial: Any) -> Any:
        """For each packed row that of the previous step; for the first step the row of `initial` (None: zeros)."""
        first = self.start(xp, initial, packed.shape[1], packed.dtype)
        earlier = [self.of(packed, t - 1)[: self.counts[t]] for t in range(1, len(self))]
        return xp.concatenate([first[: self.counts[0] if self.counts else 0], *earlier])

    def start(self, xp: Any, initial: Any, width: int, dtype: Any) -> Any:
        """Initial states in the order of steps; zeros without any."""
        if initial is None:
            return xp.zeros((len(self.order), width), dtype)
        return initial[xp.asarray(self.order)]

    def initial_grad(self, xp: Any, first: Any) -> Any:
        """The gradients of initial states from those of the first step; zeros for empty sequences."""
        ended = xp.zeros((len(self.order) - len(first), first.shape[1]), first.dtype)
        return xp.concatenate([first, ended])[xp.asarray(np.argsort(self.order, kind="stable"))]


def check_activations(op: OpView, *names: str) -> None:
    """Raise the operator's error unless the attributes `names` are activations that recurrent operators have."""
    for name in names:
        if op.attr(name) not in ACTIVATIONS:
            raise op.fail(f"{name} must be one of {', '.join(ACTIVATIONS)}, got {op.attr(name)!r}")


def check_width(op: OpView, slot: str, width: int) -> None:
    """Raise the operator's error unless an input, if there is one, is a matrix of this width."""
    if not op.has(slot):
        return
    shape = op.shape(slot)
    if len(shape) != 2 or (shape[1] != width and min(shape[1], width) >= 0):
        raise op.fail(f"{slot} must be of shape [-1, {width}], got {list(shape)}")


def check_initial(op: OpView, slot: str) -> None:
    """Raise the operator's error unless there are as many initial states as sequences; no check without LoD."""
    if not op.has(slot) or not op.lod("Input"):
        return
    count, rows = op.sequences("Input"), op.shape(slot)[0]
    if rows != count:
        raise op.fail(f"{slot} must have a row for each of the {count} sequences of Input, got {rows}")
