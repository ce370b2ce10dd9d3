"""The device of a tensor: copies between the host and GPUs, and other libraries' views of its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._ext import eager as core
from ..backend import dlpack, on_device
from ..base.place import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place
from ..base.selected_rows import SelectedRows
from . import autograd, placing

if TYPE_CHECKING:
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
