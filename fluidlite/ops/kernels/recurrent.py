"""Kernels of recurrent layers."""

from __future__ import annotations

from .kernel_def import declare

_LSTM = "sequences rows size out_width gates_width bias_width reverse act_gates act_cell act_candidate act_projection"
_CUDNN = "steps batch width size layers directions weights seed"
_GRU = "sequences rows size gates_width reverse origin_mode act_gates act_candidate"
_KEPT = "Cell BatchGate BatchCellPreAct"

declare(
    "lstm",
    f"X Offsets H0? C0? Weight ProjWeight? Bias Out {_KEPT} BatchHidden?",
    f"Out {_KEPT} BatchHidden",
    ints=_LSTM,
    floats="cell_clip projection_clip",
)
declare(
    "lstm_grad",
    f"Offsets H0? C0? Weight ProjWeight? Bias Out {_KEPT} BatchHidden? DOut DX? DWeight? DProjWeight? DBias? DH0? DC0?",
    "DX DWeight DProjWeight DBias DH0 DC0",
    ints=_LSTM,
    floats="cell_clip projection_clip",
)
declare("cudnn_lstm", "X H0 C0 W Out HLast CLast", "Out HLast CLast", ints=_CUDNN, floats="dropped")
declare(
    "cudnn_lstm_grad",
    "X H0 C0 W DOut DHLast DCLast DX? DH0? DC0? DW?",
    "DX DH0 DC0 DW",
    ints=_CUDNN,
    floats="dropped",
)
declare("lstm_unit", "X CPrev C H", "C H", ints="rows size gates_width", floats="forget_bias")
declare(
    "lstm_unit_grad",
    "X CPrev C DC DH DX? DCPrev?",
    "DX DCPrev",
    ints="rows size gates_width",
    floats="forget_bias",
)
declare(
    "gru",
    "X Offsets? H0? Weight Bias? Out BatchGate BatchResetHiddenPrev BatchHidden?",
    "Out BatchGate BatchResetHiddenPrev BatchHidden",
    ints=_GRU,
)
declare(
    "gru_grad",
    "Offsets? H0? Weight Out BatchGate BatchResetHiddenPrev DOut DX? DWeight? DBias? DH0?",
    "DX DWeight DBias DH0",
    ints=_GRU,
)
