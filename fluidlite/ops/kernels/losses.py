"""Kernels of softmax, entropies and measures of predictions."""

from __future__ import annotations

from .epilogues import Epilogue
from .kernel_def import declare

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
