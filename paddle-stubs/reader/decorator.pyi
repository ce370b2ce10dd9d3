# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    ComposeNotAligned as ComposeNotAligned,
)
from fluidlite.paddle import (
    compat as cpt,
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
    XmapEndSignal as XmapEndSignal,
    buffered as buffered,
    xmap_readers as xmap_readers,
)
