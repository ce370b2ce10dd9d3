"""Devices, and what asking for them answers."""

from typing import Any

from . import errors, streams
from .errors import CUDARuntimeError
from .machine import machine


class Device:
    """A device by number, the current one by default; a context manager that makes it current."""

    def __init__(self, device: Any = None) -> None:
        if device is None:
            machine().check_driver()
            self.id = machine().device
        else:
            self.id = int(device)
        self._stack: list[int] = []

    def __int__(self) -> int:
        return self.id

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return self.id

    def __enter__(self) -> "Device":
        self._stack.append(machine().device)
        self.use()
        return self

    def __exit__(self, *_: Any) -> None:
        machine().device = self._stack.pop()

    def use(self) -> None:
        """Make this the current device of the thread."""
        set_device(self.id)

    def synchronize(self) -> None:
        """Wait for all streams of the device."""
        check(self.id)
        streams.synchronize_device(self.id)

    @property
    def mem_info(self) -> tuple[int, int]:
        """Free and total bytes."""
        check(self.id)
        total = machine().options.memory
        return total - machine().devices[self.id].used, total

    @property
    def compute_capability(self) -> str:
        check(self.id)
        return machine().options.compute_capability

    @property
    def attributes(self) -> dict[str, int]:
        check(self.id)
        return {
            "MaxThreadsPerBlock": 1024,
            "WarpSize": 32,
            "MultiProcessorCount": 132,
            "MaxSharedMemoryPerBlock": 49152,
            "MaxSharedMemoryPerBlockOptin": 232448,
        }

    @property
    def pci_bus_id(self) -> str:
        return f"0000:{self.id + 1:02X}:00.0"


def check(device: int) -> None:
    """Raise unless there is such a device."""
    m = machine()
    m.check_driver()
    if not 0 <= device < len(m.devices):
        raise CUDARuntimeError(errors.INVALID_DEVICE)


def set_device(device: int) -> None:
    """`cudaSetDevice`."""
    check(device)
    machine().device = device


def device_count() -> int:
    """`cudaGetDeviceCount`."""
    machine().check_driver()
    return len(machine().devices)


def is_available() -> bool:
    """Whether there is a device that can be used."""
    m = machine()
    return not (m.options.driver_too_old or m.options.no_driver) and bool(m.devices)


def properties(device: int) -> dict[str, Any]:
    """`cudaGetDeviceProperties`."""
    check(device)
    m = machine()
    major, minor = m.options.compute_capability[:-1], m.options.compute_capability[-1]
    return {
        "name": b"Simulated CUDA device",
        "totalGlobalMem": m.options.memory,
        "major": int(major),
        "minor": int(minor),
        "multiProcessorCount": 132,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiProcessor": 2048,
        "maxThreadsDim": (1024, 1024, 64),
        "maxGridSize": (2147483647, 65535, 65535),
        "warpSize": 32,
        "sharedMemPerBlock": 49152,
        "sharedMemPerBlockOptin": 232448,
        "sharedMemPerMultiprocessor": 233472,
        "regsPerBlock": 65536,
        "concurrentKernels": 1,
        "asyncEngineCount": 3,
        "unifiedAddressing": 1,
        "integrated": 0,
        "pciBusID": device + 1,
        "uuid": bytes(16),
    }
