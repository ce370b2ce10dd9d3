# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.profiler import (
    NVPROF_CONFIG as NVPROF_CONFIG,
    cuda_profiler as cuda_profiler,
    profiler as profiler,
    reset_profiler as reset_profiler,
    signature_safe_contextmanager as signature_safe_contextmanager,
    start_profiler as start_profiler,
    stop_profiler as stop_profiler,
)
