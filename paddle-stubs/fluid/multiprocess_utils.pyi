# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
)
from fluidlite.reader.watchdog import (
    CleanupFuncRegistrar as CleanupFuncRegistrar,
    multiprocess_queue_set as multiprocess_queue_set,
)
