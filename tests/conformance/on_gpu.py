"""Has the cases run on a GPU: `check.py --preload on_gpu:start`.

Cases name `fluid.CPUPlace()`, which means GPU 0 then: a real one if there is one and FLUIDLITE_TEST_REAL_GPU is set,
otherwise the simulated one of the tests.
"""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import ExitStack
from pathlib import Path

_while_running = ExitStack()


def start() -> None:
    """Set up the GPU; call it before the first case."""
    import fluidlite

    if os.environ.get("FLUIDLITE_TEST_REAL_GPU", "0") in ("", "0"):
        sys.path.append(str(Path(__file__).parents[2]))
        from tests.simulated_cuda import simulated

        _while_running.enter_context(simulated())
        atexit.register(_while_running.close)
    fluidlite.CPUPlace = lambda: fluidlite.CUDAPlace(0)  # type: ignore[assignment, misc]
