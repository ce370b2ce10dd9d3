# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.nn.functional.common import (
    affine_grid as affine_grid,
    alpha_dropout as alpha_dropout,
    bilinear as bilinear,
    cosine_similarity as cosine_similarity,
    dropout as dropout,
    dropout2d as dropout2d,
    dropout3d as dropout3d,
    embedding as embedding,
    grid_sample as grid_sample,
    interpolate as interpolate,
    label_smooth as label_smooth,
    linear as linear,
    normalize as normalize,
    one_hot as one_hot,
    pad as pad,
    pairwise_distance as pairwise_distance,
    pixel_shuffle as pixel_shuffle,
    unfold as unfold,
    upsample as upsample,
    zeropad2d as zeropad2d,
)
