# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.utils import (
    preprocess_util as preprocess_util,
)
from fluidlite.paddle.utils.preprocess_img import (
    DiskImage as DiskImage,
    ImageClassificationDatasetCreater as ImageClassificationDatasetCreater,
    crop_img as crop_img,
    resize_image as resize_image,
)
