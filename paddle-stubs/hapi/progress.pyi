# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.hapi.callbacks import ProgBarLogger as ProgBarLogger
