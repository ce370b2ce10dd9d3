# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.slim.graph import (
    GraphWrapper as GraphWrapper,
)
from fluidlite.fluid.contrib.slim.nas import (
    ControllerServer as ControllerServer,
    Executor as Executor,
    LightNASStrategy as LightNASStrategy,
    SearchAgent as SearchAgent,
    Strategy as Strategy,
    get_logger as get_logger,
    lock as lock,
    unlock as unlock,
)
