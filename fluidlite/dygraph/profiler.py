"""`fluid.dygraph.profiler`: gperftools' profiler, which Paddle's releases are built without."""

from ..base import missing
from ..core import start_imperative_gperf_profiler as start_gperf_profiler
from ..core import stop_imperative_gperf_profiler as stop_gperf_profiler

__all__ = ["start_gperf_profiler", "stop_gperf_profiler"]

__getattr__ = missing.reporter(__name__)
