"""A stand-in for CuPy that computes on the CPU and is as strict as a GPU; tests of the CUDA backend run on it.

`with simulated(devices=2) as cuda:` puts a package `cupy` into `sys.modules` for a while. Work on streams is queued and
happens as late as it may; memory is that of devices and cannot be read by accident; what the real CuPy lacks, this one
lacks too. See `install.py` for what there is.
"""

from .install import install, simulated, uninstall
from .machine import machine
from .memory import device_view
from .streams import enqueue

__all__ = ["device_view", "enqueue", "install", "machine", "simulated", "uninstall"]
