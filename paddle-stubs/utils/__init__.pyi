# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    dlpack as dlpack,
    image_util as image_util,
    plot as plot,
    plotcurve as plotcurve,
    preprocess_img as preprocess_img,
    preprocess_util as preprocess_util,
)
from fluidlite.paddle.utils import (
    Ploter as Ploter,
)
