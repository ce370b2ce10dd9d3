"""`cupy.cuda.runtime`: the functions of the CUDA runtime that CuPy shows."""

from typing import Any

from . import devices, errors, memory, streams
from .capture import RELAXED, Graph, forbid_in_capture
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


def setDevice(device: int) -> None:  # noqa: N802
    devices.set_device(device)


def getDeviceProperties(device: int) -> dict[str, Any]:  # noqa: N802
    return devices.properties(device)


def deviceGetAttribute(attrib: int, device: int) -> int:  # noqa: N802
    devices.check(device)
    return {16: 132, 97: 232448, 10: 32}[attrib]


def driverGetVersion() -> int:  # noqa: N802
    options = machine().options
    if options.no_driver:
        return 0
    return 11040 if options.driver_too_old else options.driver_version


def runtimeGetVersion() -> int:  # noqa: N802
    return machine().options.runtime_version


def deviceSynchronize() -> None:  # noqa: N802
    streams.synchronize_device(machine().device)


def deviceCanAccessPeer(device: int, peerDevice: int) -> int:  # noqa: N802, N803
    devices.check(device)
    devices.check(peerDevice)
    return 0


def deviceEnablePeerAccess(peerDevice: int) -> None:  # noqa: N802, N803
    devices.check(peerDevice)
    raise CUDARuntimeError(217, "peer access is not supported between these devices")


def memGetInfo() -> tuple[int, int]:  # noqa: N802
    return devices.Device().mem_info


def malloc(size: int) -> int:
    return memory.malloc(size)


def free(ptr: int) -> None:
    if ptr:
        memory.free(ptr)


def memcpy(dst: int, src: int, size: int, kind: int) -> None:
    memory.copy(dst, src, size, kind)


def memcpyAsync(dst: int, src: int, size: int, kind: int, stream: int) -> None:  # noqa: N802
    memory.copy_async(dst, src, size, kind, stream)


def memcpyPeer(dst: int, dstDevice: int, src: int, srcDevice: int, size: int) -> None:  # noqa: N802, N803
    _check_peer(dst, dstDevice, src, srcDevice)
    memory.copy(dst, src, size, memory.DEVICE_TO_DEVICE)


def memcpyPeerAsync(  # noqa: N802
    dst: int, dstDevice: int, src: int, srcDevice: int, size: int, stream: int  # noqa: N803
) -> None:  # fmt: skip
    _check_peer(dst, dstDevice, src, srcDevice)
    memory.copy_async(dst, src, size, memory.DEVICE_TO_DEVICE, stream)


def _check_peer(dst: int, dst_device: int, src: int, src_device: int) -> None:
    m = machine()
    for pointer, device in ((dst, dst_device), (src, src_device)):
        if m.device_of(pointer) != device:
            raise CUDARuntimeError(errors.INVALID_VALUE, f"{pointer:#x} is not memory of device {device}")


def memset(ptr: int, value: int, size: int) -> None:
    memory.set_async(ptr, value, size, 0)
    streams.synchronize_queue(streams.legacy_queue(machine().device))


def memsetAsync(ptr: int, value: int, size: int, stream: int) -> None:  # noqa: N802
    memory.set_async(ptr, value, size, stream)


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


def streamSynchronize(stream: int) -> None:  # noqa: N802
    streams.synchronize_queue(streams.queue_of(stream))


def streamQuery(stream: int) -> int:  # noqa: N802
    return 0 if streams.ExternalStream(stream).done else 600


def streamIsCapturing(stream: int) -> bool:  # noqa: N802
    return streams.ExternalStream(stream).is_capturing()


def streamBeginCapture(stream: int, mode: int = RELAXED) -> None:  # noqa: N802
    streams.ExternalStream(stream).begin_capture(mode)


def graphLaunch(graphExec: int, stream: int) -> None:  # noqa: N802, N803
    Graph._known[graphExec].launch(streams.ExternalStream(stream))


def pointerGetAttributes(ptr: int) -> Any:  # noqa: N802
    m = machine()
    device = m.device_of(ptr)
    kind = 2 if device is not None else 1 if m.is_pinned(ptr) else 0
    return PointerAttributes(-1 if device is None else device, ptr if kind == 2 else 0, ptr, kind)


class PointerAttributes:
    """What is known of an address."""

    def __init__(self, device: int, devicePointer: int, hostPointer: int, type: int) -> None:  # noqa: N803
        self.device, self.devicePointer, self.hostPointer, self.type = (
            device,
            devicePointer,
            hostPointer,
            type,
        )
