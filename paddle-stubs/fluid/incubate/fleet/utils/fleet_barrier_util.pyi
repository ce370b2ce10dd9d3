# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.incubate.fleet.parameter_server.distribute_transpiler import (
    fleet as fleet,
)
from fluidlite.fluid.incubate.fleet.utils.hdfs import (
    HDFSClient as HDFSClient,
    check_all_trainers_ready as check_all_trainers_ready,
)
