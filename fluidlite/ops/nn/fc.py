"""`fc`: a fully connected layer in one operator, which programs optimised for inference have."""

from __future__ import annotations

from typing import Any

from ..infer import product
from ..registry import OpDef, OpView, register


def _infer(op: OpView) -> None:
    x, w, split = op.shape("Input"), op.shape("W"), op.attr("in_num_col_dims")
    if len(w) != 2:
        raise op.fail(f"W must be a matrix, got {list(w)}")
    if not 0 < split < len(x):
        raise op.fail(f"in_num_col_dims must be in [1, {len(x) - 1}], got {split}")
    width = product(x[split:])
    if width >= 0 <= w[0] and width != w[0]:
        raise op.fail(f"W has {w[0]} rows, but the rows of Input have {width} elements")
    if op.has("Bias") and product(op.shape("Bias")) not in (w[1], -1):
        raise op.fail(f"Bias must have {w[1]} elements, got the shape {list(op.shape('Bias'))}")
    if op.attr("activation_type") == "relu" and not op.has("Bias"):
        raise op.fail("relu needs a Bias, as in Fluid")
    op.set("Out", (*x[:split], w[1]), op.dtype("Input"))


def _fc(xp: Any, Input: Any, W: Any, Bias: Any, in_num_col_dims: int, activation_type: str) -> Any:
    rows, columns = Input.shape[:in_num_col_dims], W.shape[1]
    out = (Input.reshape(product(rows), -1) @ W).reshape(*rows, columns)
    if Bias is not None:
        out = out + Bias.reshape(columns)
    return xp.maximum(out, 0) if activation_type == "relu" else out


register(
    OpDef(
        "fc",
        inputs=("Input", "W", "Bias?"),
        attrs={
            "in_num_col_dims": 1,
            "activation_type": "",
            "padding_weights": False,
            "use_mkldnn": False,
            "use_quantizer": False,
            "force_fp32_output": False,
            "Scale_in": 1.0,
            "Scale_weights": [1.0],
            "Scale_out": 1.0,
        },
        infer=_infer,
        kernel=_fc,
        doc="Input, flattened to a matrix after its `in_num_col_dims` first dimensions, times W, plus Bias; then relu, "
        "if `activation_type` says so (Fluid heeds no other).",
    )
)
