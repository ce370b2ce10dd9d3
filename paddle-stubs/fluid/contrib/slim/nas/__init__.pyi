# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    controller_server as controller_server,
    light_nas_strategy as light_nas_strategy,
    search_agent as search_agent,
    search_space as search_space,
)
from fluidlite.fluid.contrib.slim.nas import (
    ControllerServer as ControllerServer,
    LOCK_EX as LOCK_EX,
    LOCK_UN as LOCK_UN,
    LightNASStrategy as LightNASStrategy,
    SearchAgent as SearchAgent,
    SearchSpace as SearchSpace,
    lock as lock,
    unlock as unlock,
)
