# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.annotations import (
    deprecated as deprecated,
)
