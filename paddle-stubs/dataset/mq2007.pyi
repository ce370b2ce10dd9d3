# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.dataset.common import (
    download as download,
)
from fluidlite.dataset.mq2007 import (
    MD5 as MD5,
    Query as Query,
    QueryList as QueryList,
    URL as URL,
    fetch as fetch,
    gen_list as gen_list,
    gen_pair as gen_pair,
    gen_plain_txt as gen_plain_txt,
    gen_point as gen_point,
    load_from_text as load_from_text,
    query_filter as query_filter,
    test as test,
    train as train,
)
