# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.small_modules import (
    signature_safe_contextmanager as signature_safe_contextmanager,
    wrap_decorator as wrap_decorator,
)
