# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    quantize_transpiler as quantize_transpiler,
)
from fluidlite.fluid.contrib.quantize import (
    QuantizeTranspiler as QuantizeTranspiler,
)
