# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    paddle as paddle,
)
from fluidlite.dataset.imdb import (
    MD5 as MD5,
    URL as URL,
    build_dict as build_dict,
    fetch as fetch,
    reader_creator as reader_creator,
    test as test,
    tokenize as tokenize,
    train as train,
    word_dict as word_dict,
)
