# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.contrib.slim.nas.search_agent import (
    SearchAgent as SearchAgent,
)
from fluidlite.log_helper import (
    get_logger as get_logger,
)
