# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.compat import (
    floor_division as floor_division,
    get_exception_message as get_exception_message,
    int_type as int_type,
    long_type as long_type,
    round as round,
    to_bytes as to_bytes,
    to_text as to_text,
)
