# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    paddle as paddle,
)
from fluidlite.dataset.uci_housing import (
    FLUID_MD5_MODEL as FLUID_MD5_MODEL,
    FLUID_URL_MODEL as FLUID_URL_MODEL,
    MD5 as MD5,
    URL as URL,
    feature_names as feature_names,
    feature_range as feature_range,
    fetch as fetch,
    fluid_model as fluid_model,
    load_data as load_data,
    predict_reader as predict_reader,
    test as test,
    train as train,
)
