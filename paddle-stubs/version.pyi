# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.small_modules import (
    commit as commit,
    full_version as full_version,
    istaged as istaged,
    major as major,
    minor as minor,
    mkl as mkl,
    patch as patch,
    rc as rc,
    show as show,
    with_mkl as with_mkl,
)
