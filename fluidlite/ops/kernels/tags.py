"""Kernels of tags and labels of sequences."""

from __future__ import annotations

from .kernel_def import INTEGER, declare

_FIELD = "sequences rows tags steps"

declare(
    "linear_chain_crf",
    "Emission Offsets? Length? Transition Label Alpha EmissionExps TransitionExps LogLikelihood",
    "Alpha EmissionExps TransitionExps LogLikelihood",
    ints=_FIELD,
)
declare(
    "linear_chain_crf_grad",
    "Emission Offsets? Length? Transition Label DLogLikelihood DEmission? DTransition?",
    "DEmission DTransition",
    ints=_FIELD,
)
declare("crf_decoding", "Emission Offsets? Length? Transition Label? ViterbiPath", ints=_FIELD)
declare(
    "warpctc",
    "Logits Offsets? Length? Label LabelOffsets? LabelLength? WarpCTCGrad Loss",
    "WarpCTCGrad Loss",
    ints="sequences rows classes steps blank labels label_steps label_bytes",
)
declare(
    "warpctc_grad",
    "Offsets? Length? WarpCTCGrad DLoss DLogits",
    ints="sequences rows classes steps divide",
)
declare(
    "ctc_align",
    "Input Length Output OutputLength?",
    "Output OutputLength",
    ints="sequences steps blank merge_repeated padding",
    types=INTEGER,
)
declare(
    "edit_distance",
    "Hyps HypsOffsets? HypsLength? Refs RefsOffsets? RefsLength? Out SequenceNum",
    "Out SequenceNum",
    ints="sequences hyps refs hyps_steps refs_steps normalized",
    types=INTEGER,
)
declare(
    "chunk_eval",
    "Inference Label Offsets? LabelOffsets? Length? Precision Recall F1 NumInfer NumLabel NumCorrect",
    "Precision Recall F1 NumInfer NumLabel NumCorrect",
    ints="sequences labels steps tags types begins ends excluded*",
    types="",
)
