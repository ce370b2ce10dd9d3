# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.incubate.fleet.utils import (
    hdfs as hdfs,
    utils as utils,
)
from fluidlite.fluid.incubate.fleet.utils.fleet_util import (
    FleetUtil as FleetUtil,
    HDFSClient as HDFSClient,
    fleet_transpiler as fleet_transpiler,
)
from fluidlite.fluid.small_modules import (
    get_logger as get_logger,
)
