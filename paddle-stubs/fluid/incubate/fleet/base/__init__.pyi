# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    fleet_base as fleet_base,
    mode as mode,
    role_maker as role_maker,
)
