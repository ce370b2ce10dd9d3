"""GPU fusion of a softmax with the cross entropy and the mean that follow it, and of their gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...base.dtypes import VarType
from ...base.sizes.shapes import product, rows_along
from ...ops.registry import OpView, grad_name
from ..ir.instructions import Instruction, Uses
from ..passes.rewriting import Replacement
from .launch import Get

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

_OUT_GRAD, _X_GRAD, _Y_GRAD, _LOSS_GRAD = (grad_name(slot) for slot in ("Out", "X", "Y", "Loss"))
_FUSED = "softmax_with_cross_entropy"


def loss(before: Instruction, after: Instruction, uses: Uses) -> Replacement | None:
    """Fuse a softmax with the cross entropy of class numbers, and these (or one operator for both) with the mean."""
    view = after.view
    if view is None:
        return None
    run = before.action if isinstance(before.action, _Loss) else None
    if before.kind == "softmax" and after.kind == "entropy" and view.name("X") == before.writes[0]:
        run = _loss(before.view, "X", "Out", view, "Y")
    else:
        if before.kind == _FUSED:
            run = _loss(before.view, "Logits", "Softmax", before.view, "Loss")
        if run is None or run.mean is not None or view.type != "mean" or view.name("X") != run.loss[0]:
            return None
        run = replace(run, mean=view.name("Out"))
    return None if run is None else Replacement((before, after), run, run.reads, run.writes)


def _loss(first: OpView | None, logits: str, softmax: str, view: OpView | None, result: str) -> _Loss | None:
    assert first is not None and view is not None
    rows = _rows(first, logits, view)
    if rows is None or not view.has(result):
        return None
    return _Loss(
        (first.name(logits), view.name("Label")),
        view.type,
        rows,
        int(view.attr("ignore_index")),
        first.name_or_none(softmax),
        (view.name(result), tuple(view.shape(result))),
        _shaped(view, "MatchX"),
        _shaped(view, "XShape"),
        None,
    )


def loss_grad(before: Instruction, after: Instruction, uses: Uses) -> Replacement | None:
    """Fuse the gradients of mean, cross entropy and softmax."""
    view, last, run = before.view, after.view, after.action
    if view is None:
        return None
    if view.type == "mean_grad":
        if after.kind == _FUSED + "_grad" and last is not None:
            run = _gradient(last, last, "Softmax", _LOSS_GRAD, grad_name("Logits"))
        if not isinstance(run, _Gradient) or run.factor is not None:
            return None
        if view.name_or_none(_X_GRAD) != run.gradient or not product(view.shape("X")):
            return None
        run = replace(run, gradient=view.name(_OUT_GRAD), factor=1 / product(view.shape("X")))
    else:
        if before.kind != "entropy_grad" or last is None or last.type != "softmax_grad":
            return None
        run = _gradient(view, last, "Out", _Y_GRAD, _X_GRAD) if _follows(view, last, uses) else None
    return None if run is None else Replacement((before, after), run, run.reads, (run.result,))


def _gradient(view: OpView, last: OpView, softmax: str, slot: str, result: str) -> _Gradient | None:
    rows = _rows(last, softmax, view)
    if rows is None or not last.has(result):
        return None
    return _Gradient(
        last.name(softmax),
        view.name("Label"),
        view.name(slot),
        last.name(result),
        view.type,
        rows,
        int(view.attr("ignore_index")),
    )


def _follows(view: OpView, last: OpView, uses: Uses) -> bool:
    """True if `last` is the gradient of the softmax that feeds the cross entropy of `view`."""
    softmax = last.name("Out")
    if last.name(_OUT_GRAD) != view.name_or_none(_X_GRAD):
        return False
    if view.has("X"):
        return view.name("X") == softmax
    # This operator reads the probabilities of the labels only: find the softmax through their producer.
    match = view.name("MatchX")
    maker = uses.producers.get(match)
    return (
        maker is not None
        and maker.view is not None
        and maker.kind == "entropy"
        and maker.view.name("X") == softmax
        and uses.written[match] == uses.written[softmax] == 1
    )


def _rows(view: OpView, slot: str, entropy: OpView) -> tuple[int, int] | None:
    """The shape of `slot` as rows; None if there are no kernels for its dtype or for the labels of `entropy`."""
    if "soft_label" in entropy.definition.attrs and entropy.attr("soft_label"):
        return None
    if view.dtype(slot) not in (VarType.FP32, VarType.FP64) or entropy.dtype("Label") not in (
        VarType.INT32,
        VarType.INT64,
    ):
        return None
    rows = rows_along(tuple(view.shape(slot)), view.attr("axis"))
    return rows if rows is not None and 0 not in rows else None


def _shaped(view: OpView, slot: str) -> tuple[str, tuple[int, ...]] | None:
    """The name and shape of an output; None if the operator does not have it."""
    return (view.name(slot), tuple(view.shape(slot))) if view.outputs.get(slot) else None


@dataclass(frozen=True)
class _Loss:
    """Runs softmax, cross entropy and mean. Outputs are pairs of name and shape, None for an absent one."""

    reads: tuple[str, str]
    op_type: str
    rows: tuple[int, int]
    ignore: int
    softmax: str | None
    loss: tuple[str, tuple[int, ...]]
    match: tuple[str, tuple[int, ...]] | None
    empty: tuple[str, tuple[int, ...]] | None
    mean: str | None

    @property
    def writes(self) -> tuple[str, ...]:
        pairs = (self.loss, self.match, self.empty)
        names = (self.softmax, *(pair[0] for pair in pairs if pair is not None), self.mean)
        return tuple(name for name in names if name is not None)

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        from ...backend.cupy_.launchers.losses import label_losses

        logits, label = map(get, self.reads)
        losses = label_losses(
            device,
            self.op_type,
            logits,
            label,
            self.rows,
            self.ignore,
            softmax=self.softmax is not None,
            match=self.op_type != _FUSED,
            mean=self.mean is not None,
        )
        outputs = {self.loss[0]: losses.loss.reshape(self.loss[1])}
        if self.softmax is not None:
            outputs[self.softmax] = losses.softmax
        if self.match is not None:
            outputs[self.match[0]] = losses.match.reshape(self.match[1])
        if self.empty is not None:
            outputs[self.empty[0]] = device.xp.empty(self.empty[1], logits.dtype)
        if self.mean is not None:
            outputs[self.mean] = losses.mean
        return outputs


@dataclass(frozen=True)
class _Gradient:
    """Runs the gradients of mean, cross entropy and softmax."""

    softmax: str
    label: str
    gradient: str
    result: str
    op_type: str
    rows: tuple[int, int]
    ignore: int
    factor: float | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        return self.softmax, self.label, self.gradient

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        from ...backend.cupy_.launchers.losses import label_losses_grad

        softmax, label, g = map(get, self.reads)
        factor = 1.0 if self.factor is None else self.factor
        dx = label_losses_grad(device, self.op_type, softmax, label, g, self.rows, self.ignore, factor)
        return {self.result: dx}
