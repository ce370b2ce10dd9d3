# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.transpiler.details import (
    string_types as string_types,
    wait_server_ready as wait_server_ready,
)
