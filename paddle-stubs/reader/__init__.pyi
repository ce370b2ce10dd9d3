# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    creator as creator,
    decorator as decorator,
)
from fluidlite import (
    ComposeNotAligned as ComposeNotAligned,
    paddle as paddle,
)
from fluidlite.reader.decorators import (
    cache as cache,
    chain as chain,
    compose as compose,
    firstn as firstn,
    map_readers as map_readers,
    shuffle as shuffle,
)
from fluidlite.reader.processes import (
    multiprocess_reader as multiprocess_reader,
)
from fluidlite.reader.threaded import (
    buffered as buffered,
    xmap_readers as xmap_readers,
)
