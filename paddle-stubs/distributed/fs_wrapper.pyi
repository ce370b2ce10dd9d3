# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.distributed.files import (
    BDFS as BDFS,
    FS as FS,
    LocalFS as LocalFS,
)
