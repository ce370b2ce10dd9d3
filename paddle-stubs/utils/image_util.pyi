# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.utils.image_util import (
    ImageTransformer as ImageTransformer,
    crop_img as crop_img,
    decode_jpeg as decode_jpeg,
    flip as flip,
    load_image as load_image,
    load_meta as load_meta,
    oversample as oversample,
    preprocess_img as preprocess_img,
    resize_image as resize_image,
)
