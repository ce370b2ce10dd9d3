# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.dtypes import (
    bool as bool,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    get_default_dtype as get_default_dtype,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    int8 as int8,
    set_default_dtype as set_default_dtype,
    uint8 as uint8,
)
