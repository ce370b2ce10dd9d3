# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    controller_server as controller_server,
    light_nas_strategy as light_nas_strategy,
    lock as lock,
    search_agent as search_agent,
    search_space as search_space,
)
from fluidlite.contrib.slim.nas import (
    LOCK_EX as LOCK_EX,
    LOCK_UN as LOCK_UN,
)
from fluidlite.contrib.slim.nas.controller_server import (
    ControllerServer as ControllerServer,
)
from fluidlite.contrib.slim.nas.light_nas_strategy import (
    LightNASStrategy as LightNASStrategy,
)
from fluidlite.contrib.slim.nas.lock import (
    unlock as unlock,
)
from fluidlite.contrib.slim.nas.search_agent import (
    SearchAgent as SearchAgent,
)
from fluidlite.contrib.slim.nas.search_space import (
    SearchSpace as SearchSpace,
)
