# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.incubate.fleet.utils.fleet_barrier_util import (
    HDFSClient as HDFSClient,
    check_all_trainers_ready as check_all_trainers_ready,
    fleet as fleet,
)
