# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    base as base,
    collective as collective,
    parameter_server as parameter_server,
    utils as utils,
)
