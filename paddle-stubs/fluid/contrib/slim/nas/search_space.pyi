# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.contrib.slim.nas.search_space import (
    SearchSpace as SearchSpace,
)
