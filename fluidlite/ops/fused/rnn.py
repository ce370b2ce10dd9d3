"""fusion_gru, fusion_lstm: a recurrent layer with the product in front of it."""

from __future__ import annotations

from typing import Any

from ...backend.products import matmul
from ..registry import OpDef, OpView, Sequences, find, register
from ..sequence import Lods


def _gru(
    xp: Any,
    X: Any,
    H0: Any,
    WeightX: Any,
    WeightH: Any,
    Bias: Any,
    activation: str,
    gate_activation: str,
    is_reverse: bool,
    lod: Lods,
) -> Any:
    """A projection followed by `gru`; as in Fluid, `origin_mode` has no effect."""
    layer = find("gru").kernel
    assert layer is not None
    made = layer(
        xp,
        Input=matmul(xp, X, WeightX),
        H0=H0,
        Weight=WeightH,
        Bias=Bias,
        gate_activation=gate_activation,
        activation=activation,
        is_reverse=is_reverse,
        origin_mode=False,
        lod={"Input": lod["X"]},
    )
    return None, None, None, None, made[3]


def _lstm(
    xp: Any,
    X: Any,
    WeightX: Any,
    WeightH: Any,
    Bias: Any,
    H0: Any,
    C0: Any,
    use_peepholes: bool,
    is_reverse: bool,
    gate_activation: str,
    cell_activation: str,
    candidate_activation: str,
    lod: Lods,
) -> Any:
    layer = find("lstm").kernel
    assert layer is not None
    made = layer(
        xp,
        Input=matmul(xp, X, WeightX),
        H0=H0,
        C0=C0,
        Weight=WeightH,
        Bias=Bias,
        use_peepholes=use_peepholes,
        is_reverse=is_reverse,
        gate_activation=gate_activation,
        cell_activation=cell_activation,
        candidate_activation=candidate_activation,
        lod={"Input": lod["X"]},
    )
    return *made[:2], *[None] * 7


def _infer(gates: int, outs: tuple[str, ...]) -> Any:
    def infer(op: OpView) -> None:
        x, wide, state = op.shape("X"), op.shape("WeightX"), op.shape("WeightH")
        size = state[0]
        if len(x) != 2 or wide != (x[1], gates * size) or state != (size, gates * size):
            raise op.fail(
                f"X must be [rows, width], WeightX [width, {gates} * size] and WeightH [size, {gates} * size], got "
                f"{list(x)}, {list(wide)} and {list(state)}"
            )
        biases = gates * size if op.type == "fusion_gru" or not op.attr("use_peepholes") else 7 * size
        if op.has("Bias") and op.shape("Bias") != (1, biases):
            raise op.fail(f"Bias must be [1, {biases}], got {list(op.shape('Bias'))}")
        for out in outs:
            op.set(out, (x[0], size), op.dtype("X"))
            op.carry(out, op.lod("X"))

    return infer


register(
    OpDef(
        "fusion_gru",
        ("X", "H0?", "WeightX", "WeightH", "Bias?"),
        ("ReorderedH0?", "XX?", "BatchedInput?", "BatchedOut?", "Hidden"),
        {
            "activation": "tanh",
            "gate_activation": "sigmoid",
            "is_reverse": False,
            "use_seq": True,
            "origin_mode": False,
        },
        infer=_infer(3, ("Hidden",)),
        kernel=_gru,
        no_grad=("ReorderedH0", "XX", "BatchedInput", "BatchedOut", "Hidden"),
        sequences=Sequences(takes_lod=True, inferred=True),
        doc="gru of the product of X and WeightX; what is between is not kept.",
    )
)
register(
    OpDef(
        "fusion_lstm",
        ("X", "WeightX", "WeightH", "Bias", "H0?", "C0?"),
        (
            "Hidden",
            "Cell",
            "XX?",
            "BatchedInput?",
            "BatchedHidden?",
            "BatchedCell?",
            "ReorderedH0?",
            "ReorderedC0?",
            "CheckedCell?",
        ),
        {
            "use_peepholes": True,
            "is_reverse": False,
            "use_seq": True,
            "gate_activation": "sigmoid",
            "cell_activation": "tanh",
            "candidate_activation": "tanh",
        },
        infer=_infer(4, ("Hidden", "Cell")),
        kernel=_lstm,
        no_grad=(
            "Hidden",
            "Cell",
            "XX",
            "BatchedInput",
            "BatchedHidden",
            "BatchedCell",
            "ReorderedH0",
            "ReorderedC0",
            "CheckedCell",
        ),
        sequences=Sequences(takes_lod=True, inferred=True),
        doc="lstm of the product of X and WeightX; what is between is not kept.",
    )
)
