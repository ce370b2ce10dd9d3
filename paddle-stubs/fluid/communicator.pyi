# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
)
from fluidlite.communicator import (
    Communicator as Communicator,
)
from fluidlite.executor.tensors.scope import (
    global_scope as global_scope,
)
from fluidlite.framework.program import (
    Program as Program,
)
from fluidlite.transpiler.distribute_transpiler import (
    DistributedMode as DistributedMode,
)
