# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.distributed.launch_ps import (
    REMAINDER as REMAINDER,
    launch as launch,
    parse_args as parse_args,
    start_procs as start_procs,
)
