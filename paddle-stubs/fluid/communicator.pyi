# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
)
from fluidlite.communicator import (
    Communicator as Communicator,
    DistributedMode as DistributedMode,
    Program as Program,
)
from fluidlite.executor.scope import global_scope as global_scope
