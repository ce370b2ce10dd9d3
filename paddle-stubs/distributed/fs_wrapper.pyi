# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.distributed.fs_wrapper import (
    BDFS as BDFS,
    FS as FS,
    LocalFS as LocalFS,
)
