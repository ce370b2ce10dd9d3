"""`cupy.cuda.runtime`: the functions of the CUDA runtime that CuPy shows."""

from typing import Any

from . import devices, errors, memory, streams
from .capture import forbid_in_capture
from .errors import CUDARuntimeError
from .machine import machine

CONSTANTS = {
    "memcpyHostToHost": 0,
    "memcpyHostToDevice": 1,
    "memcpyDeviceToHost": 2,
    "memcpyDeviceToDevice": 3,
    "memcpyDefault": 4,
    "streamDefault": 0,
    "streamNonBlocking": 1,
    "streamLegacy": 1,
    "streamPerThread": 2,
    "streamCaptureModeGlobal": 0,
    "streamCaptureModeThreadLocal": 1,
    "streamCaptureModeRelaxed": 2,
    "streamCaptureStatusNone": 0,
    "streamCaptureStatusActive": 1,
    "streamCaptureStatusInvalidated": 2,
    "eventDefault": 0,
    "eventBlockingSync": 1,
    "eventDisableTiming": 2,
    "eventInterprocess": 4,
    "hostAllocDefault": 0,
    "hostAllocPortable": 1,
    "hostAllocMapped": 2,
    "hostAllocWriteCombined": 4,
    "memoryTypeUnregistered": 0,
    "memoryTypeHost": 1,
    "memoryTypeDevice": 2,
    "memoryTypeManaged": 3,
    "is_hip": False,
    "CUDA_R_32F": 0,
    "CUDA_R_64F": 1,
    "CUDA_R_16F": 2,
    "CUDA_R_16BF": 14,
    "cudaDevAttrComputeCapabilityMajor": 75,
    "cudaDevAttrMultiProcessorCount": 16,
    "cudaDevAttrMaxSharedMemoryPerBlockOptin": 97,
    "cudaDevAttrWarpSize": 10,
}


def getDeviceCount() -> int:  # noqa: N802
    return devices.device_count()


def getDevice() -> int:  # noqa: N802
    machine().check_driver()
    return machine().device


def getDeviceProperties(device: int) -> dict[str, Any]:  # noqa: N802
    return devices.properties(device)


def driverGetVersion() -> int:  # noqa: N802
    options = machine().options
    if options.no_driver:
        return 0
    return 11040 if options.driver_too_old else options.driver_version


def runtimeGetVersion() -> int:  # noqa: N802
    return machine().options.runtime_version


def deviceSynchronize() -> None:  # noqa: N802
    streams.synchronize_device(machine().device)


def memGetInfo() -> tuple[int, int]:  # noqa: N802
    return devices.Device().mem_info


def memcpyAsync(dst: int, src: int, size: int, kind: int, stream: int) -> None:  # noqa: N802
    memory.copy_async(dst, src, size, kind, stream)


def _check_peer(dst: int, dst_device: int, src: int, src_device: int) -> None:
    m = machine()
    for pointer, device in ((dst, dst_device), (src, src_device)):
        if m.device_of(pointer) != device:
            raise CUDARuntimeError(errors.INVALID_VALUE, f"{pointer:#x} is not memory of device {device}")


def hostRegister(ptr: int, size: int, flags: int) -> None:  # noqa: N802
    m = machine()
    m.check_driver()
    forbid_in_capture("cudaHostRegister")
    if any(start < ptr + size and ptr < start + length for start, length in m.registered.items()):
        raise CUDARuntimeError(712)
    m.registered[ptr] = size


def hostUnregister(ptr: int) -> None:  # noqa: N802
    m = machine()
    if ptr not in m.registered:
        raise CUDARuntimeError(713)
    with m.lock:
        for queue in list(m.queues.values()):
            if queue.capture is None:
                queue.drain()
        del m.registered[ptr]


class PointerAttributes:
    """What is known of an address."""

    def __init__(self, device: int, devicePointer: int, hostPointer: int, type: int) -> None:  # noqa: N803
        self.device, self.devicePointer, self.hostPointer, self.type = (
            device,
            devicePointer,
            hostPointer,
            type,
        )
