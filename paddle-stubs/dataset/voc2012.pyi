# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.dataset.common import (
    download as download,
)
from fluidlite.dataset.image import (
    batch_images_from_tar as batch_images_from_tar,
    center_crop as center_crop,
    left_right_flip as left_right_flip,
    load_and_transform as load_and_transform,
    load_image as load_image,
    load_image_bytes as load_image_bytes,
    random_crop as random_crop,
    resize_short as resize_short,
    simple_transform as simple_transform,
    to_chw as to_chw,
)
from fluidlite.dataset.voc2012 import (
    CACHE_DIR as CACHE_DIR,
    DATA_FILE as DATA_FILE,
    LABEL_FILE as LABEL_FILE,
    SET_FILE as SET_FILE,
    VOC_MD5 as VOC_MD5,
    VOC_URL as VOC_URL,
    reader_creator as reader_creator,
    test as test,
    train as train,
    val as val,
)
