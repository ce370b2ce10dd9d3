# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    paddle as paddle,
)
from fluidlite.dataset.wmt14 import (
    END as END,
    MD5_DEV_TEST as MD5_DEV_TEST,
    MD5_MODEL as MD5_MODEL,
    MD5_TRAIN as MD5_TRAIN,
    START as START,
    UNK as UNK,
    UNK_IDX as UNK_IDX,
    URL_DEV_TEST as URL_DEV_TEST,
    URL_MODEL as URL_MODEL,
    URL_TRAIN as URL_TRAIN,
    fetch as fetch,
    gen as gen,
    get_dict as get_dict,
    reader_creator as reader_creator,
    test as test,
    train as train,
)
from fluidlite.paddle import (
    compat as cpt,
)
