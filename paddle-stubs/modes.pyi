# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.modes import (
    disable_dygraph as disable_dygraph,
    disable_static as disable_static,
    enable_dygraph as enable_dygraph,
    enable_static as enable_static,
    in_dygraph_mode as in_dygraph_mode,
    in_dynamic_mode as in_dynamic_mode,
)
