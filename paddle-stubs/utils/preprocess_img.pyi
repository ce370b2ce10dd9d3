# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.utils import (
    preprocess_util as preprocess_util,
)
from fluidlite.paddle.utils.image_util import (
    crop_img as crop_img,
    resize_image as resize_image,
)
from fluidlite.paddle.utils.preprocess_util import (
    DiskImage as DiskImage,
    ImageClassificationDatasetCreater as ImageClassificationDatasetCreater,
)
