# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
    unique_name as unique_name,
)
from fluidlite.framework.operator import (
    OpRole as OpRole,
)
from fluidlite.framework.program import (
    Program as Program,
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
)
from fluidlite.transpiler.collective import (
    Collective as Collective,
    GradAllReduce as GradAllReduce,
    LocalSGD as LocalSGD,
    SingleProcessMultiThread as SingleProcessMultiThread,
)
from fluidlite.transpiler.details.checkport import (
    wait_server_ready as wait_server_ready,
)
