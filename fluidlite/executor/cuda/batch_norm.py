"""GPU fusion of batch normalisation with the sum and the relu that follow it, and of their gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...ops.registry import OpView, grad_name
from ..ir.instructions import Instruction, Uses
from ..passes.rewriting import Replacement
from .launch import Get, one_by_one

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

_OUT_GRAD, _X_GRAD, _Y_GRAD = grad_name("Out"), grad_name("X"), grad_name("Y")
_RUNNING = (("MeanOut", "Mean"), ("VarianceOut", "Variance"))
_INPUTS = ("X", "Scale", "Mean", "Variance")
_ATTRS = ("is_test", "epsilon", "data_layout", "use_global_stats", "trainable_statistics")


def normalized(before: Instruction, after: Instruction, uses: Uses) -> Replacement | None:
    """Fuse a normalisation with an addition of a tensor of the same shape, and either with a relu."""
    view, run = after.view, before.action
    if view is None:
        return None
    if not isinstance(run, _Normalized):
        norm = before.view
        if norm is None or norm.type != "batch_norm":
            return None
        if any(norm.name(out) != norm.name(source) for out, source in _RUNNING):
            return None
        run = _Normalized((before,), norm, None, False, (norm.name("Y"),))
    if run.relu:
        return None
    result, parts = run.results[0], (*run.parts, after)
    if view.type == "relu" and view.name("X") == result:
        run = replace(run, parts=parts, relu=True, results=(view.name("Out"), *run.results[1:]))
        return Replacement(
            (before, after), run, before.reads, _replaced(before.writes, result, run.results[0])
        )
    names = view.names("X") + view.names("Y")
    if view.type != "elementwise_add" or run.other is not None or names.count(result) != 1:
        return None
    if view.shape("X") != view.shape("Y") or view.dtype("X") != view.dtype("Y"):
        return None
    other = names[1 - names.index(result)]
    run = replace(run, parts=parts, other=other, results=(view.name("Out"), *run.results[1:]))
    return Replacement(
        (before, after), run, (*before.reads, other), _replaced(before.writes, result, run.results[0])
    )


def _replaced(names: Sequence[str], old: str, new: str) -> tuple[str, ...]:
    return tuple(new if name == old else name for name in names)


def normalized_grad(before: Instruction, after: Instruction, uses: Uses) -> Replacement | None:
    """Fuse the gradient of a normalisation with that of the relu that follows it."""
    relu, view = before.view, after.view
    if relu is None or view is None or relu.type != "relu_grad" or view.type != "batch_norm_grad":
        return None
    slope = view.name(_Y_GRAD)
    if relu.name_or_none(_X_GRAD) != slope:
        return None
    run = _Gradient((before, after), view, relu.name("Out"), relu.name(_OUT_GRAD))
    return Replacement(
        (before, after), run, (*before.reads, *(n for n in after.reads if n != slope)), after.writes
    )


def _arguments(view: OpView, get: Get, slots: Sequence[str], attrs: Sequence[str]) -> dict[str, Any]:
    """The arguments of a launcher: inputs (None for an absent one) and attributes."""
    names = ((slot, view.name_or_none(slot)) for slot in slots)
    arrays = {slot: None if name is None else get(name) for slot, name in names}
    return arrays | {attr: view.attr(attr) for attr in attrs}


@dataclass(frozen=True)
class _Normalized:
    """Runs a normalisation and its epilogue. Of the `results` after the first only the shapes are read."""

    parts: tuple[Instruction, ...]
    view: OpView
    other: str | None
    relu: bool
    results: tuple[str, ...]

    def with_shapes(self, names: Sequence[str]) -> _Normalized:
        return replace(self, results=(*self.results, *names))

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        from ...backend.cupy_.launchers.normalization import forward

        other = None if self.other is None else get(self.other)
        arguments = _arguments(self.view, get, (*_INPUTS, "MomentumTensor", "Bias"), (*_ATTRS, "momentum"))
        results = forward(device, **arguments, other=other, relu=self.relu)
        if results is NotImplemented:
            return one_by_one(self.parts, device, get)
        outputs = zip(self.view.definition.output_slots[1:], results[1:], strict=True)
        kept = {self.view.name(slot.name): array for slot, array in outputs if self.view.has(slot.name)}
        return {**dict.fromkeys(self.results, results[0]), **kept}


@dataclass(frozen=True)
class _Gradient:
    """Runs the gradients of a relu and of the normalisation before it."""

    parts: tuple[Instruction, ...]
    view: OpView
    out: str
    dout: str

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        from ...backend.cupy_.launchers.normalization import gradient

        arguments = _arguments(self.view, get, (*_INPUTS, "SavedMean", "SavedVariance"), _ATTRS)
        wanted = [slot for slot, names in self.view.outputs.items() if names]
        results = gradient(device, **arguments, Y_grad=get(self.dout), wanted=wanted, relu_out=get(self.out))
        if results is NotImplemented:
            return one_by_one(self.parts, device, get)
        slots = zip(self.view.definition.output_slots, results, strict=True)
        return {self.view.name(slot.name): array for slot, array in slots if array is not None}
