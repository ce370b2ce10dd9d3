# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.nn.functional.loss import (
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cosine_embedding_loss as cosine_embedding_loss,
    cross_entropy as cross_entropy,
    dice_loss as dice_loss,
    hinge_embedding_loss as hinge_embedding_loss,
    kl_div as kl_div,
    l1_loss as l1_loss,
    log_loss as log_loss,
    margin_ranking_loss as margin_ranking_loss,
    mse_loss as mse_loss,
    nll_loss as nll_loss,
    npair_loss as npair_loss,
    sigmoid_focal_loss as sigmoid_focal_loss,
    smooth_l1_loss as smooth_l1_loss,
    softmax_with_cross_entropy as softmax_with_cross_entropy,
    square_error_cost as square_error_cost,
    triplet_margin_loss as triplet_margin_loss,
)
