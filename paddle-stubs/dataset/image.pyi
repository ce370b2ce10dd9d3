# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.dataset.image import (
    batch_images_from_tar as batch_images_from_tar,
    center_crop as center_crop,
    err as err,
    import_cv2_proc as import_cv2_proc,
    left_right_flip as left_right_flip,
    load_and_transform as load_and_transform,
    load_image as load_image,
    load_image_bytes as load_image_bytes,
    out as out,
    random_crop as random_crop,
    resize_short as resize_short,
    retcode as retcode,
    simple_transform as simple_transform,
    to_chw as to_chw,
)
