# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.executor.scope import (
    global_scope as global_scope,
)
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.communicator import (
    Communicator as Communicator,
    DistributedMode as DistributedMode,
    Program as Program,
)
