"""The exceptions of the simulated CUDA, with the numbers and texts of the real ones."""

RUNTIME = {
    1: ("cudaErrorInvalidValue", "invalid argument"),
    2: ("cudaErrorMemoryAllocation", "out of memory"),
    9: ("cudaErrorInvalidConfiguration", "invalid configuration argument"),
    21: ("cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"),
    35: ("cudaErrorInsufficientDriver", "CUDA driver version is insufficient for CUDA runtime version"),
    100: ("cudaErrorNoDevice", "no CUDA-capable device is detected"),
    101: ("cudaErrorInvalidDevice", "invalid device ordinal"),
    400: ("cudaErrorInvalidResourceHandle", "invalid resource handle"),
    600: ("cudaErrorNotReady", "device not ready"),
    700: ("cudaErrorIllegalAddress", "an illegal memory access was encountered"),
    704: ("cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"),
    712: ("cudaErrorHostMemoryAlreadyRegistered",
        "part or all of the requested memory range is already mapped"),
    713: ("cudaErrorHostMemoryNotRegistered", "pointer does not correspond to a registered memory region"),
    719: ("cudaErrorLaunchFailure", "unspecified launch failure"),
    800: ("cudaErrorNotPermitted", "operation not permitted"),
    900: ("cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"),
    901: ("cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"),
    903: ("cudaErrorStreamCaptureUnmatched", "capture was not initiated in this stream"),
    904: ("cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"),
    905: ("cudaErrorStreamCaptureIsolation", "dependency created on uncaptured work in another stream"),
    906: ("cudaErrorStreamCaptureImplicit",
        "operation would make the legacy stream depend on a capturing blocking stream"),
    907: ("cudaErrorCapturedEvent",
        "operation not permitted on an event last recorded in a capturing stream"),
    908: ("cudaErrorStreamCaptureWrongThread",
        "attempt to terminate a thread-local capture sequence from another thread"),
}  # fmt: skip

DRIVER = {
    1: ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    500: ("CUDA_ERROR_NOT_FOUND", "named symbol not found"),
}

INVALID_VALUE, NO_MEMORY, INVALID_CONFIGURATION = 1, 2, 9
INVALID_DIRECTION, INSUFFICIENT_DRIVER, NO_DEVICE, INVALID_DEVICE = 21, 35, 100, 101
INVALID_HANDLE, ILLEGAL_ADDRESS, LAUNCH_FAILURE, NOT_PERMITTED = 400, 700, 719, 800
CAPTURE_UNSUPPORTED, CAPTURE_INVALIDATED, CAPTURE_UNMATCHED, CAPTURE_UNJOINED = 900, 901, 903, 904
CAPTURE_ISOLATION, CAPTURE_IMPLICIT, CAPTURED_EVENT, CAPTURE_WRONG_THREAD = 905, 906, 907, 908


class CUDARuntimeError(RuntimeError):
    """What the runtime API answers; `status` is its number, `detail` says what the simulation saw."""

    def __init__(self, status: int, detail: str = "") -> None:
        self.status = status
        self.detail = detail
        name, text = RUNTIME.get(status, (f"cudaError{status}", "error"))
        super().__init__(f"{name}: {text}" + (f" [simulated: {detail}]" if detail else ""))

    def __reduce__(self) -> tuple:
        return type(self), (self.status, self.detail)


class CUDADriverError(RuntimeError):
    """What the driver API answers; `status` is its number."""

    def __init__(self, status: int, detail: str = "") -> None:
        self.status = status
        name, text = DRIVER[status]
        super().__init__(f"{name}: {text}" + (f" [simulated: {detail}]" if detail else ""))


class OutOfMemoryError(MemoryError):
    """A device has no memory left."""

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        text = f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes"
        super().__init__(text + (f", limit set to: {limit:,} bytes)." if limit else ")."))


class CompileException(Exception):
    """CUDA C that does not compile."""

    def __init__(self, message: str, source: str, name: str, options: tuple[str, ...], backend: str) -> None:
        super().__init__(message)
        self._msg, self.source, self.name, self.options, self.backend = (
            message, source, name, options, backend,
        )  # fmt: skip

    def get_message(self) -> str:
        return self._msg

    def __str__(self) -> str:
        return self._msg


for _class, _module in (
    (CUDARuntimeError, "cupy_backends.cuda.api.runtime"),
    (CUDADriverError, "cupy_backends.cuda.api.driver"),
    (OutOfMemoryError, "cupy.cuda.memory"),
    (CompileException, "cupy.cuda.compiler"),
):
    _class.__module__ = _module
