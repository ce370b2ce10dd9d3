# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.contrib.slim.core.strategy import (
    Strategy as Strategy,
)
from fluidlite.contrib.slim.graph.graph_wrapper import (
    GraphWrapper as GraphWrapper,
)
from fluidlite.contrib.slim.nas.controller_server import (
    ControllerServer as ControllerServer,
)
from fluidlite.contrib.slim.nas.light_nas_strategy import (
    LightNASStrategy as LightNASStrategy,
)
from fluidlite.contrib.slim.nas.lock import (
    lock as lock,
    unlock as unlock,
)
from fluidlite.contrib.slim.nas.search_agent import (
    SearchAgent as SearchAgent,
)
from fluidlite.executor.running.executor import (
    Executor as Executor,
)
from fluidlite.log_helper import (
    get_logger as get_logger,
)
