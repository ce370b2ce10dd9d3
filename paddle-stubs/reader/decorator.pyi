# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle import (
    compat as cpt,
)
from fluidlite.reader import (
    ComposeNotAligned as ComposeNotAligned,
    buffered as buffered,
    cache as cache,
    chain as chain,
    compose as compose,
    firstn as firstn,
    map_readers as map_readers,
    multiprocess_reader as multiprocess_reader,
    shuffle as shuffle,
    xmap_readers as xmap_readers,
)
from fluidlite.reader.threaded import (
    XmapEndSignal as XmapEndSignal,
)
