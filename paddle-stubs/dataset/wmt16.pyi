# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    paddle as paddle,
)
from fluidlite.dataset.wmt16 import (
    DATA_MD5 as DATA_MD5,
    DATA_URL as DATA_URL,
    END_MARK as END_MARK,
    START_MARK as START_MARK,
    TOTAL_DE_WORDS as TOTAL_DE_WORDS,
    TOTAL_EN_WORDS as TOTAL_EN_WORDS,
    UNK_MARK as UNK_MARK,
    fetch as fetch,
    get_dict as get_dict,
    reader_creator as reader_creator,
    test as test,
    train as train,
    validation as validation,
)
from fluidlite.paddle import (
    compat as cpt,
)
