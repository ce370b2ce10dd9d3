# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    fleet_barrier_util as fleet_barrier_util,
    fleet_util as fleet_util,
    hdfs as hdfs,
    utils as utils,
)
