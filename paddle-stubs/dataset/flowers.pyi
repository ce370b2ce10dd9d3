# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    ComposeNotAligned as ComposeNotAligned,
)
from fluidlite.dataset.common import (
    download as download,
)
from fluidlite.dataset.flowers import (
    DATA_MD5 as DATA_MD5,
    DATA_URL as DATA_URL,
    LABEL_MD5 as LABEL_MD5,
    LABEL_URL as LABEL_URL,
    SETID_MD5 as SETID_MD5,
    SETID_URL as SETID_URL,
    TEST_FLAG as TEST_FLAG,
    TRAIN_FLAG as TRAIN_FLAG,
    VALID_FLAG as VALID_FLAG,
    default_mapper as default_mapper,
    fetch as fetch,
    load_image_bytes as load_image_bytes,
    map_readers as map_readers,
    reader_creator as reader_creator,
    simple_transform as simple_transform,
    test as test,
    test_mapper as test_mapper,
    train as train,
    train_mapper as train_mapper,
    valid as valid,
    xmap_readers as xmap_readers,
)
from fluidlite.dataset.image import (
    batch_images_from_tar as batch_images_from_tar,
    center_crop as center_crop,
    left_right_flip as left_right_flip,
    load_and_transform as load_and_transform,
    load_image as load_image,
    random_crop as random_crop,
    resize_short as resize_short,
    to_chw as to_chw,
)
from fluidlite.paddle import (
    compat as cpt,
)
from fluidlite.reader.decorators import (
    cache as cache,
    chain as chain,
    compose as compose,
    firstn as firstn,
    shuffle as shuffle,
)
from fluidlite.reader.processes import (
    multiprocess_reader as multiprocess_reader,
)
from fluidlite.reader.threaded import (
    buffered as buffered,
)
