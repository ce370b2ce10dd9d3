# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.core import (
    start_imperative_gperf_profiler as start_gperf_profiler,
    stop_imperative_gperf_profiler as stop_gperf_profiler,
)
