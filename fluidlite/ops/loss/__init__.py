"""Losses, and what classifiers over many classes and taggers are trained and read by."""

from . import (  # noqa: F401
    center_loss,
    class_scores,
    crf,
    cross_entropy,
    ctc,
    cvm,
    hsigmoid,
    likelihood,
    modified_huber,
    nce,
    regression,
    sample_logits,
    sigmoid,
)
