"""Places: where tensors live and programs run (`CPUPlace`, `CUDAPlace`, `CUDAPinnedPlace`)."""

from __future__ import annotations

import os
from collections.abc import Callable

from . import callsite, flags


class Place:
    """Base of all places; places of the same kind and number are equal.

    As in Fluid, a plain `Place` is undefined until `set_place`.
    """

    __slots__ = ("_stands_for", "device")

    kind = 0

    def __init__(self, device: int = 0) -> None:
        self.device = device
        self._stands_for: Place | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Place):
            return NotImplemented
        mine, theirs = self._meant(), other._meant()
        return type(mine) is type(theirs) and mine.device == theirs.device

    def __hash__(self) -> int:
        meant = self._meant()
        return hash((type(meant).__name__, meant.device))

    def __repr__(self) -> str:
        return type(self).__name__ if self._stands_for is None else repr(self._stands_for)

    def _meant(self) -> Place:
        return self if self._stands_for is None else self._stands_for

    def set_place(self, place: Place) -> None:
        """Make this a copy of `place` (`fluid.core.Place.set_place`)."""
        self._stands_for = place._meant()

    def _type(self) -> int:
        """The number that Fluid gives to this kind of place."""
        return self._meant().kind

    def _equals(self, other: Place) -> bool:
        """Whether both are the same place; TypeError for anything but a place."""
        if not isinstance(other, Place):
            raise TypeError(f"_equals takes a place, got {other!r}")
        return self == other

    def is_cpu_place(self) -> bool:
        return isinstance(self._meant(), CPUPlace)

    def is_gpu_place(self) -> bool:
        return isinstance(self._meant(), CUDAPlace)

    def is_cuda_pinned_place(self) -> bool:
        return isinstance(self._meant(), CUDAPinnedPlace)

    def gpu_device_id(self) -> int:
        """The number of the GPU; RuntimeError for a place that is none."""
        if not self.is_gpu_place():
            raise RuntimeError(f"{self!r} is not a GPU")
        return self._meant().device


class CPUPlace(Place):
    """The CPU (`fluid.CPUPlace()`).

    Example:
        >>> import paddle.fluid as fluid
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> exe.place
        CPUPlace
    """

    __slots__ = ()

    kind = 1

    def __init__(self) -> None:
        super().__init__(0)


class CUDAPlace(Place):
    """GPU number `device` (`fluid.CUDAPlace(0)`).

    On a machine without a usable GPU programs placed here run on the CPU, with one warning; with
    `FLUIDLITE_REQUIRE_GPU=1` (or `--device gpu`) that is a RuntimeError.

    Args:
        device: the number of a GPU, from 0 on.

    Raises:
        ValueError: `device` is something else.

    Example:
        >>> import paddle.fluid as fluid
        >>> fluid.CUDAPlace(1)
        CUDAPlace(1)
    """

    __slots__ = ()

    kind = 0

    def __init__(self, device: int = 0) -> None:
        if isinstance(device, bool) or not isinstance(device, int) or device < 0:
            raise ValueError(f"CUDAPlace takes the number of a GPU (0, 1, ...), got {device!r}")
        super().__init__(device)

    def __repr__(self) -> str:
        return f"CUDAPlace({self.device})"


class CUDAPinnedPlace(Place):
    """Page-locked memory of the host (`fluid.CUDAPinnedPlace()`)."""

    __slots__ = ()

    kind = 2

    def __init__(self) -> None:
        super().__init__(0)


def as_place(device: Place | str) -> Place:
    """A place, or what Paddle 2.0 calls it: 'cpu', 'gpu' (the first one), 'gpu:1', 'gpu_pinned'.

    Raises ValueError for another name, TypeError for anything else.
    """
    if isinstance(device, Place):
        return device
    if not isinstance(device, str):
        raise TypeError(f"a device is a place or a name such as 'cpu' or 'gpu:0', got {device!r}")
    kind, colon, number = device.partition(":")
    if device == "cpu":
        return CPUPlace()
    if device == "gpu_pinned":
        return CUDAPinnedPlace()
    if kind == "gpu" and (number.isdigit() if colon else True):
        return CUDAPlace(int(number or 0))
    raise ValueError(f"the device must be 'cpu', 'gpu' or 'gpu:NUMBER', got {device!r}")


_warned = False


def resolve(place: Place) -> Place:
    """The place that computes for `place`: the CPU when there is no usable GPU.

    Warns once per process; raises RuntimeError instead if a GPU is required (see `CUDAPlace`).
    """
    global _warned
    place = place._meant()
    if isinstance(place, CPUPlace) or cuda_device_count():
        return place
    if flags.device() == "gpu":
        raise RuntimeError(
            f"{place!r} was asked for and a GPU is required, but no usable GPU was found ({_why_none()}); "
            "use --device cpu (or unset FLUIDLITE_REQUIRE_GPU) to run on the CPU"
        )
    if not _warned and flags.device() != "cpu":
        _warned = True
        reason = _why_none().partition(":")[0]
        callsite.warn(
            f"no usable GPU was found ({reason}): {place!r} is the CPU. --device gpu tells more, "
            "--device cpu silences this",
            RuntimeWarning,
        )
    return CPUPlace()


def _nothing() -> int:
    return 0


def _no_backend() -> str:
    return "the GPU backend was not imported"


_count: Callable[[], int] = _nothing
_why_none: Callable[[], str] = _no_backend


def set_probe(count: Callable[[], int], why_none: Callable[[], str]) -> None:
    """Set the functions that count the usable GPUs and explain their absence (called by `backend`)."""
    global _count, _why_none
    _count, _why_none = count, why_none


def cuda_device_count() -> int:
    """The number of usable GPUs; 0 with `--device cpu`. Looks for CuPy and GPUs at the first call.

    Returns:
        An integer, 0 where there is no GPU.

    Example:
        >>> import paddle.fluid as fluid
        >>> place = fluid.CUDAPlace(0) if fluid.core.get_cuda_device_count() else fluid.CPUPlace()
    """
    return 0 if flags.device() == "cpu" else _count()


def usable_gpus() -> str:
    """A clause for messages that names the usable GPUs."""
    count = cuda_device_count()
    if not count:
        return "no usable GPU was found"
    names = "CUDAPlace(0)" if count == 1 else f"CUDAPlace(0) to CUDAPlace({count - 1})"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    shown = f", as CUDA_VISIBLE_DEVICES={visible} shows them" if visible else ""
    return f"there {'is' if count == 1 else 'are'} {names}{shown}"


def is_compiled_with_cuda() -> bool:
    """Whether `fluid.CUDAPlace` can mean a GPU here (`fluid.is_compiled_with_cuda`)."""
    return cuda_device_count() > 0


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """`device_count` CPU places; by default as many as the environment variable CPU_NUM says, or one.

    Raises ValueError if the number is not a positive integer.
    """
    if device_count is None:
        text = os.environ.get("CPU_NUM", "1")
        if not text.isdecimal() or int(text) < 1:
            raise ValueError(f"CPU_NUM must be a positive integer, got {text!r}")
        device_count = int(text)
    if device_count < 1:
        raise ValueError(f"the number of CPU places must be positive, got {device_count}")
    return [CPUPlace() for _ in range(device_count)]


def cuda_places(device_ids: int | list[int] | tuple[int, ...] | None = None) -> list[Place]:
    """One place for each GPU named in `device_ids`, or for all of them (`FLAGS_selected_gpus` chooses).

    Without a usable GPU: the places asked for (one if none was named), which run on the CPU with one warning.
    """
    if device_ids is None:
        device_ids = _selected() or list(range(max(cuda_device_count(), 1)))
    elif isinstance(device_ids, int):
        device_ids = [device_ids]
    places: list[Place] = [CUDAPlace(i) for i in device_ids]
    for place in places:
        resolve(place)
    return places


def _selected() -> list[int]:
    """The GPUs that FLAGS_selected_gpus names, none if it is not set; ValueError if it is no list of their numbers."""
    text = os.environ.get("FLAGS_selected_gpus", "")
    parts = [part.strip() for part in text.split(",")] if text else []
    count = cuda_device_count()
    for part in parts:
        if not part.isdecimal() or (count and int(part) >= count):
            raise ValueError(
                f"FLAGS_selected_gpus must be numbers of GPUs with commas between, got {text!r}; {usable_gpus()}"
            )
    return [int(part) for part in parts]


def cuda_pinned_places(device_count: int | None = None) -> list[CUDAPinnedPlace]:
    """`device_count` pinned places; by default CPU_NUM, or one."""
    return [CUDAPinnedPlace() for _ in cpu_places(device_count)]
