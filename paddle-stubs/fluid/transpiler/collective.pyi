# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
    unique_name as unique_name,
)
from fluidlite.fluid.transpiler.collective import (
    Collective as Collective,
    GradAllReduce as GradAllReduce,
    LocalSGD as LocalSGD,
    OpRole as OpRole,
    Program as Program,
    SingleProcessMultiThread as SingleProcessMultiThread,
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
)
from fluidlite.fluid.transpiler.details import (
    wait_server_ready as wait_server_ready,
)
