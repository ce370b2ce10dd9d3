# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.incubate.fleet.utils.fleet_barrier_util import (
    check_all_trainers_ready as check_all_trainers_ready,
    fleet as fleet,
)
from fluidlite.incubate.fleet.utils.hdfs import (
    HDFSClient as HDFSClient,
)
