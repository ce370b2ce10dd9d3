"""Eager tensors on a GPU: calls of operators; copies from and to the host; other libraries' views of their memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._ext import eager as core
from ..backend import dlpack, on_device
from ..backend.cupy_ import library
from ..base.place import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place
from ..base.selected_rows import SelectedRows
from ..ops.host_fallback import call_on_host
from ..ops.registry import LodArray, OpDef
from . import autograd, placing

if TYPE_CHECKING:
    from ..backend.cupy_.device import CudaDevice
    from .tensor import Tensor


class Located(core.Value):
    """The methods of tensors about the device of their elements."""

    @property
    def place(self) -> Place:
        """The device that holds the elements."""
        return placing.place_of(self.array)

    def cuda(self, device_id: int | None = None, blocking: bool = True) -> Tensor:
        """This tensor on a GPU; itself if it is there, otherwise a copy that gradients go through.

        Args:
            device_id: the number of the GPU; by default that where the tensor is, or the first one.
            blocking: accepted; nothing needs to wait for the copy, since whatever uses it comes after it on the same
                stream.

        Returns:
            A tensor of the same shape and dtype, whatever they are. Without a usable GPU: on the CPU, with a warning.

        Raises:
            ValueError: there are GPUs, but none of this number.
            MemoryError: it is full.

        Follows `paddle.Tensor.cuda`.
        """
        if device_id is None and on_device(self.array):
            return self._self
        return self._moved(CUDAPlace(device_id or 0))

    def cpu(self) -> Tensor:
        """This tensor on the CPU; itself if it is there, otherwise a copy that gradients go through.

        A copy waits for what computes the tensor. It has the same shape and dtype, whatever they are. Raises what
        kernels of the GPU have found wrong so far (OperatorError). Follows `paddle.Tensor.cpu`.
        """
        return self._moved(CPUPlace())

    def pin_memory(self) -> Tensor:
        """This tensor in page-locked memory of the host, from where copies to GPUs are fastest.

        Itself if it is there, otherwise a copy that gradients go through, of the same shape and dtype. Without a usable
        GPU: on the CPU, with a warning. Raises MemoryError if the system locks no more pages. Follows
        `paddle.Tensor.pin_memory`.
        """
        return self._moved(CUDAPinnedPlace())

    def _copy_to(self, place: Place, blocking: bool = True) -> Tensor:
        """A copy that no gradients go through, also where the tensor is at `place` already.

        Args:
            place: `CPUPlace`, `CUDAPlace` or `CUDAPinnedPlace`; without a usable GPU each means the CPU.
            blocking: accepted; see `cuda`.

        Returns:
            A tensor of the same shape, dtype, name and `persistable`.

        Raises:
            TypeError: `place` is no place.
            ValueError, MemoryError: see `cuda`.

        Follows `VarBase._copy_to`.
        """
        if not isinstance(place, Place):
            raise TypeError(f"a place is fluid.CPUPlace() or fluid.CUDAPlace(0), got {place!r}")
        array = placing.at(self.array, place)
        copy = self._self._named_copy(placing.duplicate(array) if array is self.array else array)
        copy.persistable = self.persistable
        return copy

    @property
    def _self(self) -> Tensor:
        return self  # type: ignore[return-value]

    def _moved(self, place: Place) -> Tensor:
        """This tensor at `place`: itself, or a copy recorded for gradients."""
        array = placing.at(self.array, place)
        if array is self.array:
            return self._self
        copy = self._self._new(array)
        if not self.stop_gradient and autograd.is_recording() and array.dtype.kind == "f":
            core.record_call(_Back(self.array), [self], [copy], [True])
        return copy

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The elements' memory for other libraries (`torch.from_dlpack(tensor)`); see `backend.dlpack.capsule`."""
        return dlpack.capsule(self.array, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.device_code(self.array)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory of a tensor on a GPU, for Numba, CuPy and others; tensors on the host do not have this."""
        device = placing.device_of(self.array)
        if device is None:
            raise AttributeError("this tensor is on the host and has no __cuda_array_interface__")
        with device.active():
            interface: dict[str, Any] = self.array.__cuda_array_interface__
        return interface


class _Back:
    """The gradient of a copy: the same, moved to the device of the original."""

    def __init__(self, original: Any) -> None:
        self._device = placing.device_of(original)

    def __call__(self, grads: list[Any], retain: bool) -> list[Any | SelectedRows | None]:
        return [None if gradient is None else placing.to_device(gradient, self._device) for gradient in grads]


Run = Callable[[list[Any]], list[Any]]
"""Computes the results of an operator for a list of arrays."""

Layout = tuple[np.dtype, tuple[int, ...]]

Own = Callable[[Any, Layout | None, list[Any]], Any]
"""Turns a kernel's result into an array that owns its memory: (result, declared layout, arguments) -> array."""

UPDATES = frozenset({"Param", "LearningRate"})
"""Kernels of operators with these inputs update them in place."""


def guarded(device: CudaDevice, op_type: str, run: Run) -> Run:
    """`run` with the device active; errors of CUDA name the operator."""
    what = f"operator {op_type} on GPU {device.number}"

    def call(arrays: list[Any]) -> list[Any]:
        try:
            with device.active():
                return run(arrays)
        except Exception:
            with library.errors(what):  # translates errors of CUDA
                raise

    return call


def call(
    definition: OpDef,
    form: core.Form,
    inputs: dict[str, list[Any]],
    lods: dict[str, list[Any]] | None,
    device: CudaDevice,
) -> list[Any]:
    """Run an operator's kernel on arrays of `device`, which must be active. Raises MemoryError if it is full."""
    try:
        if definition.effects.host:
            return call_on_host(definition, inputs, form.attrs, lods, device)
        if UPDATES.intersection(form.inputs):
            # Launchers of updates write into their arguments, but eager results own their memory.
            return definition.call(device.xp, inputs, form.attrs, lods)
        return definition.call(device.xp, inputs, form.attrs, lods, device, form.outputs)
    except Exception:
        with library.errors(f"operator {definition.type} on GPU {device.number}"):
            raise


def reshaped(device: CudaDevice, outputs: list[Layout | None]) -> Run:
    """A Run for operators whose first result is the reshaped input; further results are empty."""
    (_, shape), *others = [layout for layout in outputs if layout is not None]
    empty = [placing.zeros(device, shape, dtype) for dtype, shape in others]

    def run(arrays: list[Any]) -> list[Any]:
        return [arrays[0].reshape(shape), *empty]

    return run


def from_host(device: CudaDevice, run: Run) -> Run:
    """A Run for operators without arguments: `run` computes on the host, the results are copied to the device."""

    def compute(arrays: list[Any]) -> list[Any]:
        return [placing.to_device(array, device) for array in run(arrays)]

    return compute


def owner(device: CudaDevice) -> Own:
    """An Own for `device`: results become contiguous arrays of the declared type."""
    kind = library.array_type
    assert kind is not None
    xp = device.xp

    def own(value: Any, declared: Layout | None, arrays: list[Any]) -> Any:
        if isinstance(value, LodArray):
            value = value.array
        if type(value) is SelectedRows:
            return placing.to_device(value, device)
        dtype = declared[0] if declared is not None else None
        if not isinstance(value, kind):
            return device.put(np.array(value, dtype))
        array = xp.ascontiguousarray(value, dtype)
        part = array.base is not None and array.base.nbytes != array.nbytes
        if part or any(array.data.mem is held for held in map(_memory, arrays)):
            array = array.copy()
        return array

    return own


def _memory(array: Any) -> Any:
    """The memory object of an array or of the values of SelectedRows."""
    return array.values.data.mem if type(array) is SelectedRows else array.data.mem
