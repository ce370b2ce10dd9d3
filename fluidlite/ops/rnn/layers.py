"""Recurrent layers over sequences: `lstm`, `lstmp`, whose states are projected, and `gru`."""

from __future__ import annotations

from typing import Any

from ...backend.functions import matmul
from ..grad_pairs import register_pair
from ..infer import require_same_dtype
from ..native import typed
from ..registry import GRAD, Call, Levels, LodArray, OpView, Sequences, grad_name
from ..sequence import Lods, one_level, segments_of, set_rows, single
from .unit import (
    NATIVE,
    Steps,
    activate_clipped,
    activation_slope,
    check_activations,
    check_initial,
    check_width,
    gru_step,
    gru_step_grad,
)


def _clipped(xp: Any, x: Any, bound: float) -> Any:
    return xp.clip(x, -bound, bound) if bound > 0 else x


def _unclipped(xp: Any, out: Any, bound: float) -> Any:
    """The derivative of `_clipped` where its result is `out`."""
    return (abs(out) < bound).astype(out.dtype) if bound > 0 else xp.ones_like(out)


def _projecting(proj_activation: str, cell_activation: str) -> str:
    """The activation of the projection: as in Fluid that of the cell, unless it is "identity"."""
    return "identity" if proj_activation == "identity" else cell_activation


def _four(gates: Any) -> Any:
    """Candidate, input, forget and output gate, or the sums that these are of."""
    size = gates.shape[1] // 4
    return (gates[:, k * size : (k + 1) * size] for k in range(4))


def _peepholes(xp: Any, Bias: Any, size: int, use_peepholes: bool) -> Any:
    """The peephole weights of input, forget and output gate."""
    flat = Bias.reshape(-1)[4 * size :] if use_peepholes else xp.zeros(3 * size, Bias.dtype)
    return flat[:size], flat[size : 2 * size], flat[2 * size :]


def _lstmp(
    xp: Any,
    Input: Any,
    H0: Any,
    C0: Any,
    Weight: Any,
    ProjWeight: Any,
    Bias: Any,
    use_peepholes: bool,
    is_reverse: bool,
    gate_activation: str,
    cell_activation: str,
    candidate_activation: str,
    lod: Lods,
    proj_activation: str = "identity",
    cell_clip: float = 0.0,
    proj_clip: float = 0.0,
) -> Any:
    offsets = one_level("lstm", lod, "Input")
    steps, size, dtype = Steps(offsets, is_reverse), Weight.shape[1] // 4, Input.dtype
    into, forgetting, showing = _peepholes(xp, Bias, size, use_peepholes)
    given = steps.packed(xp, Input + Bias.reshape(1, -1)[:, : 4 * size])
    state = steps.start(xp, H0, Weight.shape[0], dtype)
    cell = steps.start(xp, C0, size, dtype)
    gates, cells, shown, hidden, states = ([] for _ in range(5))
    for t, n in enumerate(steps.counts):
        before = cell[:n]
        candidate, i, f, o = _four(steps.of(given, t) + matmul(xp, state[:n], Weight))
        candidate = activate_clipped(xp, candidate, candidate_activation)
        i = activate_clipped(xp, i + before * into, gate_activation)
        f = activate_clipped(xp, f + before * forgetting, gate_activation)
        cell = _clipped(xp, candidate * i + before * f, cell_clip)
        o = activate_clipped(xp, o + cell * showing, gate_activation)
        seen = activate_clipped(xp, cell, cell_activation)
        state = o * seen
        hidden.append(state)
        if ProjWeight is not None:
            act = _projecting(proj_activation, cell_activation)
            state = _clipped(xp, activate_clipped(xp, matmul(xp, state, ProjWeight), act), proj_clip)
        gates.append(xp.concatenate([candidate, i, f, o], axis=1))
        cells.append(cell)
        shown.append(seen)
        states.append(state)
    return (
        LodArray(steps.unpacked(xp, states, Weight.shape[0], dtype), [offsets]),
        LodArray(steps.unpacked(xp, cells, size, dtype), [offsets]),
        steps.joined(xp, gates, 4 * size, dtype),
        steps.joined(xp, shown, size, dtype),
        steps.joined(xp, hidden, size, dtype),
    )


def _lstm(xp: Any, Input: Any, H0: Any, C0: Any, Weight: Any, Bias: Any, lod: Lods, **attrs: Any) -> Any:
    return _lstmp(xp, Input, H0, C0, Weight, None, Bias, lod=lod, **attrs)[:4]


def _lstmp_grad(
    xp: Any,
    H0: Any,
    C0: Any,
    Weight: Any,
    ProjWeight: Any,
    Bias: Any,
    Projection: Any,
    Cell: Any,
    BatchGate: Any,
    BatchCellPreAct: Any,
    BatchHidden: Any,
    Projection_grad: Any,
    use_peepholes: bool,
    is_reverse: bool,
    gate_activation: str,
    cell_activation: str,
    candidate_activation: str,
    lod: Lods,
    proj_activation: str = "identity",
    cell_clip: float = 0.0,
    proj_clip: float = 0.0,
) -> Any:
    offsets = one_level("lstm_grad", lod, "Cell")
    steps, size, dtype = Steps(offsets, is_reverse), Weight.shape[1] // 4, Cell.dtype
    into, forgetting, showing = _peepholes(xp, Bias, size, use_peepholes)
    states, cells = steps.packed(xp, Projection), steps.packed(xp, Cell)
    befores, arriving = steps.before(xp, cells, C0), steps.packed(xp, Projection_grad)
    d_state, d_cell = xp.zeros((0, Weight.shape[0]), dtype), xp.zeros((0, size), dtype)
    d_gates, d_projected = [], []
    for t in reversed(range(len(steps))):
        before, cell, seen = (steps.of(x, t) for x in (befores, cells, BatchCellPreAct))
        candidate, i, f, o = _four(steps.of(BatchGate, t))
        new = steps.counts[t] - len(d_cell)
        d_state = steps.of(arriving, t) + xp.concatenate([d_state, xp.zeros((new, Weight.shape[0]), dtype)])
        if ProjWeight is not None:
            made, act = steps.of(states, t), _projecting(proj_activation, cell_activation)
            d_state = d_state * activation_slope(xp, made, act) * _unclipped(xp, made, proj_clip)
            d_projected.append(d_state)
            d_state = matmul(xp, d_state, ProjWeight.T)
        d_o = d_state * seen * activation_slope(xp, o, gate_activation)
        d_cell = xp.concatenate([d_cell, xp.zeros((new, size), dtype)]) + d_o * showing
        d_cell = d_cell + d_state * o * activation_slope(xp, seen, cell_activation)
        d_cell = d_cell * _unclipped(xp, cell, cell_clip)
        d_candidate = d_cell * i * activation_slope(xp, candidate, candidate_activation)
        d_i = d_cell * candidate * activation_slope(xp, i, gate_activation)
        d_f = d_cell * before * activation_slope(xp, f, gate_activation)
        d_gates.append(xp.concatenate([d_candidate, d_i, d_f, d_o], axis=1))
        d_cell = d_cell * f + d_i * into + d_f * forgetting
        d_state = matmul(xp, d_gates[-1], Weight.T)
    d_packed = steps.joined(xp, d_gates[::-1], 4 * size, dtype)
    _, d_i, d_f, d_o = _four(d_packed)
    d_bias = [d_packed.sum(axis=0)]
    if use_peepholes:
        d_bias += [(d_i * befores).sum(axis=0), (d_f * befores).sum(axis=0), (d_o * cells).sum(axis=0)]
    d_projection = None
    if ProjWeight is not None:
        projected = steps.joined(xp, d_projected[::-1], Weight.shape[0], dtype)
        d_projection = matmul(xp, BatchHidden.T, projected)
    return (
        steps.unpacked(xp, d_gates[::-1], 4 * size, dtype),
        None if H0 is None else steps.initial_grad(xp, d_state),
        None if C0 is None else steps.initial_grad(xp, d_cell),
        matmul(xp, steps.before(xp, states, H0).T, d_packed),
        d_projection,
        xp.concatenate(d_bias).reshape(Bias.shape),
    )


def _lstm_grad(
    xp: Any,
    H0: Any,
    C0: Any,
    Weight: Any,
    Bias: Any,
    Hidden: Any,
    Cell: Any,
    BatchGate: Any,
    BatchCellPreAct: Any,
    Hidden_grad: Any,
    lod: Lods,
    **attrs: Any,
) -> Any:
    kept = Hidden, Cell, BatchGate, BatchCellPreAct, None, Hidden_grad
    made = _lstmp_grad(xp, H0, C0, Weight, None, Bias, *kept, lod=lod, **attrs)
    return *made[:4], made[5]


def _infer(op: OpView) -> None:
    shape, weight, projected = op.shape("Input"), op.shape("Weight"), op.type == "lstmp"
    if len(weight) != 2 or weight[1] % 4 or (not projected and weight[1] != 4 * weight[0]):
        wanted = "[projection, 4 * size]" if projected else "[size, 4 * size]"
        raise op.fail(f"Weight must be of shape {wanted}, got {list(weight)}")
    state, size = weight[0], weight[1] // 4
    if projected and op.shape("ProjWeight") != (size, state):
        raise op.fail(f"ProjWeight must be of shape {[size, state]}, got {list(op.shape('ProjWeight'))}")
    check_width(op, "Input", 4 * size)
    check_width(op, "H0", state)
    check_width(op, "C0", size)
    if op.has("H0") and not op.has("C0"):
        raise op.fail("C0 must be given with H0")
    wide = 7 * size if op.attr("use_peepholes") else 4 * size
    if op.shape("Bias") != (1, wide):
        raise op.fail(f"Bias must be of shape {[1, wide]}, got {list(op.shape('Bias'))}")
    check_activations(op, "gate_activation", "cell_activation", "candidate_activation")
    if projected:
        check_activations(op, "proj_activation")
    slots = [slot.name for slot in op.definition.input_slots]
    dtype, found = require_same_dtype(op, *slots), single(op, "Input")
    check_initial(op, "H0")
    check_initial(op, "C0")
    set_rows(op, "Projection" if projected else "Hidden", (shape[0], state), dtype, found)
    set_rows(op, "Cell", (shape[0], size), dtype, found)
    set_rows(op, "BatchGate", (shape[0], 4 * size), dtype, found and ())
    set_rows(op, "BatchCellPreAct", (shape[0], size), dtype, found and ())
    if projected:
        set_rows(op, "BatchHidden", (shape[0], size), dtype, found and ())


def _numbers(op: OpView, count: int, rows: int) -> tuple[list[Any], list[float]]:
    """The integers and reals of the native kernels."""
    state, wide = op.shape("Weight")
    names = ("gate_activation", "cell_activation", "candidate_activation")
    acts = [NATIVE[op.attr(name)] for name in names]
    projected = "ProjWeight" in op.definition.inputs_by_name
    acts.append(
        NATIVE[_projecting(op.attr("proj_activation"), op.attr("cell_activation"))] if projected else 0
    )
    ints = [count, rows, wide // 4, state, wide, op.shape("Bias")[1], int(op.attr("is_reverse")), *acts]
    return ints, [float(op.attr(name)) for name in ("cell_clip", "proj_clip")] if projected else [0.0, 0.0]


def _native(op: OpView) -> Call | None:
    name, found = typed(op, "lstm", ("Input", "Weight")), segments_of(op, "Input")
    if name is None or found is None:
        return None
    offsets, count, rows = found
    operands = [op.name("Input"), offsets, op.name_or_none("H0"), op.name_or_none("C0"), op.name("Weight")]
    operands += [op.name_or_none("ProjWeight"), op.name("Bias")]
    operands.append(op.name("Projection" if op.type == "lstmp" else "Hidden"))
    operands += [op.name(out) for out in ("Cell", "BatchGate", "BatchCellPreAct")]
    operands.append(op.name_or_none("BatchHidden"))
    return Call(name, operands, *_numbers(op, count, rows))


def _native_grad(op: OpView) -> Call | None:
    out = "Projection" if op.type == "lstmp_grad" else "Hidden"
    name, found = typed(op, "lstm_grad", ("Weight", grad_name(out))), segments_of(op, "Cell")
    if name is None or found is None:
        return None
    offsets, count, rows = found
    operands = [offsets, op.name_or_none("H0"), op.name_or_none("C0"), op.name("Weight")]
    operands += [op.name_or_none("ProjWeight"), op.name("Bias")]
    operands += [op.name(slot) for slot in (out, "Cell", "BatchGate", "BatchCellPreAct")]
    operands += [op.name_or_none("BatchHidden"), op.name(grad_name(out))]
    wanted = ("Input", "Weight", "ProjWeight", "Bias", "H0", "C0")
    operands += [op.name_or_none(grad_name(slot)) for slot in wanted]
    return Call(name, operands, *_numbers(op, count, rows))


_LSTM = {
    "use_peepholes": True,
    "is_reverse": False,
    "gate_activation": "sigmoid",
    "cell_activation": "tanh",
    "candidate_activation": "tanh",
}
_LSTMP = {**_LSTM, "proj_activation": "tanh", "cell_clip": 0.0, "proj_clip": 0.0}


def _register(op_type: str, out: str, kernel: Any, back: Any, attrs: dict[str, Any], doc: str) -> None:
    """Declare the operator and its gradient; Fluid has no gradient of `Cell`."""
    projected = op_type == "lstmp"
    takes = ("Input", "H0?", "C0?", "Weight", *(["ProjWeight"] if projected else []), "Bias")
    made = ("Cell", "BatchGate", "BatchCellPreAct", *(["BatchHidden"] if projected else []))
    names = [slot.rstrip("?") for slot in takes]
    register_pair(
        op_type,
        takes,
        kernel,
        back,
        _infer,
        doc,
        outputs=(out, *made),
        attrs=attrs,
        keep=names[1:] if projected else ["Input#", *names[1:]],
        keep_out=(out, *made),
        no_grad=made,
        sequences=Sequences(takes_lod=True, levels=Levels("Input", outs=(out, "Cell"))),
        infer_back=_infer_grad,
        native=(_native, _native_grad),
    )


def _infer_grad(op: OpView) -> None:
    """Each gradient is like its variable; lstmp_grad has gates of Input's shape, but not Input."""
    for slot, names in op.outputs.items():
        source = slot.removesuffix(GRAD)
        like = source if op.has(source) else "BatchGate"
        if any(names):
            op.set(slot, op.shape(like), op.dtype(like))


_register(
    "lstm",
    "Hidden",
    _lstm,
    _lstm_grad,
    _LSTM,
    "A long short-term memory over each sequence; Batch...: rows in the order of steps, longest sequence first.",
)
_register(
    "lstmp",
    "Projection",
    _lstmp,
    _lstmp_grad,
    _LSTMP,
    "A long short-term memory over each sequence whose state is a product of what the cell shows and ProjWeight.",
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


def _infer_gru(op: OpView) -> None:
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


def _native_gru(op: OpView) -> Call | None:
    name, found = typed(op, "gru", ("Input", "Weight")), segments_of(op, "Input")
    if name is None or found is None:
        return None
    offsets, count, rows = found
    operands = [op.name("Input"), offsets, op.name_or_none("H0"), op.name("Weight"), op.name_or_none("Bias")]
    operands += [op.name(out) for out in ("Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden")]
    return Call(name, operands, _ints(op, count, rows))


def _native_gru_grad(op: OpView) -> Call | None:
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
    _infer_gru,
    "A gated recurrent unit over each sequence; Batch...: rows in the order of steps, longest sequence first.",
    outputs=("BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden"),
    attrs=_GRU,
    keep=("Input#", "H0", "Weight", "Bias"),
    keep_out=("BatchGate", "BatchResetHiddenPrev", "BatchHidden#", "Hidden"),
    no_grad=("BatchGate", "BatchResetHiddenPrev", "BatchHidden"),
    sequences=Sequences(takes_lod=True, levels=Levels("Input", outs=("Hidden",))),
    native=(_native_gru, _native_gru_grad),
)
