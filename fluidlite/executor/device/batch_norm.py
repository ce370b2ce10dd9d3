"""Joins batch normalisation on a GPU with the sum and the relu behind it, and its gradients with that of the relu."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...ops.registry import OpView, grad_name
from .joining import Joining
from .launch import Get, Launch
from .uses import one_by_one

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

_OUT_GRAD, _X_GRAD, _Y_GRAD = grad_name("Out"), grad_name("X"), grad_name("Y")
_MOVED = (("MeanOut", "Mean"), ("VarianceOut", "Variance"))
_OWN = ("X", "Scale", "Mean", "Variance")
_HOW = ("is_test", "epsilon", "data_layout", "use_global_stats", "trainable_statistics")


def join_batch_norms(launches: Sequence[Launch], needed: Collection[str]) -> list[Launch]:
    """The launches with normalisations joined to what follows them. `needed`: see `fusion.fuse`."""
    joined = _BatchNorms(launches, needed).gradients()
    return _BatchNorms(joined, needed).forward()


class _BatchNorms(Joining):
    """Finds `batch_norm`, `elementwise_add` of an image of the same shape, `relu`; and their gradients."""

    def forward(self) -> list[Launch]:
        """With normalisation, sum and relu joined: all of them, or without the sum, or without the relu."""
        return self._joined(self._normalized)

    def gradients(self) -> list[Launch]:
        """With the gradients of relu and normalisation joined."""
        return self._joined(self._gradient)

    def _normalized(self, position: int) -> tuple[Launch, int] | None:
        view = self._view(position, ("batch_norm",))
        if view is None or any(view.name(out) != view.name(given) for out, given in _MOVED):
            return None
        result, other, shapes, count = view.name("Y"), None, [], 1
        add = self._view(position + 1, ("elementwise_add",))
        if add is not None and result in (add.name("X"), add.name("Y")) and add.shape("X") == add.shape("Y"):
            private, shape_wanted = self._between(result, self.launches[position + 1])
            other = add.name("Y") if add.name("X") == result else add.name("X")
            if not private or other == result or add.dtype("X") != add.dtype("Y"):
                return None
            shapes += [result] if shape_wanted else []
            result, count = add.name("Out"), 2
        relu = self._view(position + count, ("relu",))
        if relu is not None and relu.name("X") == result:
            private, shape_wanted = self._between(result, self.launches[position + count])
            if private:
                shapes += [result] if shape_wanted else []
                result, count = relu.name("Out"), count + 1
            else:
                relu = None
        else:
            relu = None
        if count == 1:
            return None
        parts = tuple(self.launches[position : position + count])
        reads = (*parts[0].reads, *(() if other is None else (other,)))
        kept = [name for name in parts[0].writes if name != view.name("Y")]
        writes = tuple(dict.fromkeys((result, *shapes, *kept)))
        run = _Normalized(parts, view, other, relu is not None, (result, *shapes))
        return self._launch(position, count, tuple(dict.fromkeys(reads)), writes, run), count

    def _gradient(self, position: int) -> tuple[Launch, int] | None:
        relu = self._view(position, ("relu_grad",))
        view = self._view(position + 1, ("batch_norm_grad",))
        if relu is None or view is None or relu.name_or_none(_X_GRAD) != view.name(_Y_GRAD):
            return None
        if not self._only_next(position, relu.name(_X_GRAD)):
            return None
        parts = tuple(self.launches[position : position + 2])
        reads = (*parts[0].reads, *(name for name in parts[1].reads if name != view.name(_Y_GRAD)))
        run = _Gradient(parts, view, relu.name("Out"), relu.name(_OUT_GRAD))
        return self._launch(position, 2, tuple(dict.fromkeys(reads)), parts[1].writes, run), 2


def _given(view: OpView, get: Get, slots: Sequence[str], attrs: Sequence[str]) -> dict[str, Any]:
    """The arguments of a launcher: inputs (None for those that are missing) and attributes."""
    names = ((slot, view.name_or_none(slot)) for slot in slots)
    arrays = {slot: None if name is None else get(name) for slot, name in names}
    return arrays | {attr: view.attr(attr) for attr in attrs}


@dataclass(frozen=True)
class _Normalized:
    """Runs a normalisation and what follows. The arrays of `results` after the first are for their shapes only."""

    parts: tuple[Launch, ...]
    view: OpView
    other: str | None
    relu: bool
    results: tuple[str, ...]

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        from ...backend.cupy_.batch_norm import forward

        other = None if self.other is None else get(self.other)
        given = _given(self.view, get, (*_OWN, "MomentumTensor", "Bias"), (*_HOW, "momentum"))
        made = forward(device, **given, other=other, relu=self.relu)
        if made is NotImplemented:
            return one_by_one(self.parts, device, get)
        outputs = zip(self.view.definition.output_slots[1:], made[1:], strict=True)
        kept = {self.view.name(slot.name): array for slot, array in outputs if self.view.has(slot.name)}
        return {**dict.fromkeys(self.results, made[0]), **kept}


@dataclass(frozen=True)
class _Gradient:
    """Runs the gradients of a relu and of the normalisation before it."""

    parts: tuple[Launch, ...]
    view: OpView
    out: str
    dout: str

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        from ...backend.cupy_.batch_norm import gradient

        given = _given(self.view, get, (*_OWN, "SavedMean", "SavedVariance"), _HOW)
        wanted = [slot for slot, names in self.view.outputs.items() if names]
        made = gradient(device, **given, Y_grad=get(self.dout), wanted=wanted, relu_out=get(self.out))
        if made is NotImplemented:
            return one_by_one(self.parts, device, get)
        slots = zip(self.view.definition.output_slots, made, strict=True)
        return {self.view.name(slot.name): array for slot, array in slots if array is not None}
