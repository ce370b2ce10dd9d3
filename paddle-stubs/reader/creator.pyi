# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.reader import (
    np_array as np_array,
    recordio as recordio,
    text_file as text_file,
)
