"""Kernels of dense layers and their training: products, attention, reductions, softmax, losses, updates."""

from __future__ import annotations

from .fusion import Epilogue
from .kernel_def import NUMERIC, declare

declare(
    "gemm",
    "A B C Bias?",
    "C",
    ints="m n k trans_a trans_b act?",
    floats="alpha beta",
    epilogue=Epilogue("Bias", ("m", "n"), last_axis=True, activation="act", accumulates="beta"),
)
declare(
    "gemm_batched",
    "A B C",
    ints="m n k trans_a trans_b batch stride_a stride_b stride_c",
    floats="alpha beta",
)
declare("gemm_pack", "B Packed", ints="k n trans_b")
declare("gemm_packed", "A Packed C Bias?", "C", ints="m n k act?", floats="beta")

_HEADS = "outer heads m n k d across"
_STRIDES = "outer_stride_{0} head_stride_{0} row_stride_{0}"


def _strides(*names: str) -> str:
    """The strides of operands, and those of the bias, which has one more."""
    return " ".join([*map(_STRIDES.format, names), _STRIDES.format("bias"), "column_stride_bias"])


declare(
    "attention",
    "Q K V Bias? Mask? Out",
    ints=f"{_HEADS} {_strides('q', 'k', 'v', 'out')}",
    floats="alpha factor",
)
declare(
    "attention_grad",
    "Q K V Bias? Mask? DOut DQ? DK? DV?",
    "DQ DK DV",
    ints=f"{_HEADS} {_strides('q', 'k', 'v', 'dout', 'dq', 'dk', 'dv')}",
    floats="alpha factor",
)


_SOFT, _CLASSES = "rows n", "rows n ignore_index"

declare("softmax", "X Out", ints=_SOFT, alias="Out=X", epilogue=Epilogue(logarithm="log_softmax"))
declare("log_softmax", "X Out", ints=_SOFT, alias="Out=X")
declare("softmax_grad", "Out DOut DX", ints=_SOFT, alias="DX=DOut DX=Out")
declare("cross_entropy", "X Label Y MatchX?", "Y MatchX", ints=_CLASSES)
declare("cross_entropy_grad", "X? MatchX? Label DY DX", ints=_CLASSES, alias="DX=X")
declare("cross_entropy_soft", "X Label Y", ints=_SOFT)
declare("cross_entropy_soft_grad", "X Label DY DX", ints=_SOFT, alias="DX=X")
for _name, _ints in (("softmax_with_cross_entropy", _CLASSES), ("softmax_with_cross_entropy_soft", _SOFT)):
    declare(_name, "Logits Label Softmax Loss", "Softmax Loss", ints=_ints, alias="Softmax=Logits")
    declare(f"{_name}_grad", "Softmax Label DLoss DLogits", ints=_ints, alias="DLogits=Softmax")
declare("softmax_cross_entropy_grad", "Softmax Label DY DX", ints=_CLASSES, alias="DX=Softmax")
declare("top_k", "X Out Indices", "Out Indices", ints="rows n k")
declare(
    "accuracy", "Indices Label Accuracy Correct Total", "Accuracy Correct Total", ints="rows k", types="f32"
)

_NCE = "rows classes_of_a_row labels classes width sampler num_neg_samples"
_TREE = "rows longest nodes width classes"
_NCE_READ = "Input Weight Bias? SampleWeight? CustomDistProbs?"
_TREE_READ = "X W Label PathTable? PathCode? Bias?"
declare(
    "nce_samples",
    "Label CustomDistAlias? CustomDistAliasProbs? SampleLabels",
    ints="rows classes_of_a_row labels classes sampler seed negatives*",
    types="",
)
declare("nce", f"{_NCE_READ} SampleLabels SampleLogits Cost", "SampleLogits Cost", ints=_NCE)
_NCE_GRAD = f"{_NCE_READ} SampleLogits SampleLabels DCost"
declare("nce_grad", f"{_NCE_GRAD} DInput? DWeight? DBias?", "DInput DWeight DBias", ints=_NCE)
declare("nce_grad_rows", f"{_NCE_GRAD} DInput? Rows Values DBias?", "DInput Rows Values DBias", ints=_NCE)
declare("hierarchical_sigmoid", f"{_TREE_READ} Out PreOut", "Out PreOut", ints=_TREE)
_TREE_GRAD = f"{_TREE_READ} PreOut DOut"
declare("hierarchical_sigmoid_grad", f"{_TREE_GRAD} DX? DW? DBias?", "DX DW DBias", ints=_TREE)
declare(
    "hierarchical_sigmoid_grad_rows",
    f"{_TREE_GRAD} DX? Rows Values DBias?",
    "DX Rows Values DBias",
    ints=_TREE,
)


_AXES = "pre n post"

declare("reduce_sum", "X Out", ints=_AXES, floats="scale?", types=NUMERIC)
for _name in ("max", "min", "prod"):
    declare(f"reduce_{_name}", "X Out", ints=_AXES, types=NUMERIC)
for _name in ("all", "any"):
    declare(f"reduce_{_name}", "X Out", ints=_AXES, types="u8")
for _name in ("max", "min"):
    declare(f"reduce_{_name}_grad", "X Out DOut DX", ints=_AXES, alias="DX=X")
    declare(f"arg_{_name}", "X Out", ints=_AXES, types=NUMERIC)
declare("squared_l2_norm", "X Out", ints="n")
declare("clip_by_norm", "X Out", ints="n", floats="max_norm", alias="Out=X")


_POWERS = "Beta1Pow Beta2Pow"


def _updates(name: str, state: str, read: str = "Param Grad", ints: str = "", floats: str = "") -> None:
    """An update in place of the parameter and the accumulators `state`, of many parameters at once."""
    operands = f"LearningRate ({read}{' ' if state else ''}{state})*"
    declare(name, operands, f"Param {state}", ints=f"{ints} n*", floats=floats, multi_tensor=True)


_updates("sgd", "")
_updates("momentum", "Velocity", ints="use_nesterov", floats="mu")
_updates("adam", f"Moment1 Moment2 {_POWERS}", floats="beta1 beta2 epsilon")
_updates("adagrad", "Moment", floats="epsilon")
_updates("rmsprop", "Moment MeanSquare MeanGrad", ints="centered", floats="decay momentum epsilon")
declare(
    "average_accumulates",
    "Param Sum1 Sum2 Sum3 NumAccumulates OldNumAccumulates NumUpdates",
    "Sum1 Sum2 Sum3 NumAccumulates OldNumAccumulates NumUpdates",
    ints="n min_window max_window steps_in_a_sum",
    floats="window_rate",
)
_ROWS = "LearningRate Param Rows Values"
declare("sgd_rows", _ROWS, "Param", ints="n height width")
declare("adagrad_rows", f"{_ROWS} Moment", "Param Moment", ints="n height width", floats="epsilon")
declare(
    "adam_rows",
    f"{_ROWS} Moment1 Moment2 {_POWERS}",
    f"Param Moment1 Moment2 {_POWERS}",
    ints="n height width lazy",
    floats="beta1 beta2 epsilon",
)
