"""Joins the softmax on a GPU with the cross entropy behind it and the mean of that; and their gradients."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...base.dtypes import VarType
from ...base.shapes import product, rows_along
from ...ops.registry import OpView, grad_name
from .joining import Joining
from .launch import Get, Launch

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

_OUT_GRAD, _X_GRAD, _Y_GRAD, _LOSS_GRAD = (grad_name(slot) for slot in ("Out", "X", "Y", "Loss"))
_FUSED = "softmax_with_cross_entropy"


def join_losses(launches: Sequence[Launch], needed: Collection[str]) -> list[Launch]:
    """The launches with softmax, cross entropy of class numbers and mean joined.

    `needed`: see `fusion.fuse`.
    """
    joined = _Losses(launches, needed).gradients()
    return _Losses(joined, needed).forward()


class _Losses(Joining):
    def forward(self) -> list[Launch]:
        """With softmax, cross entropy and the mean of the losses joined, where at least two of these meet."""
        return self._joined(self._loss)

    def gradients(self) -> list[Launch]:
        """With their gradients joined."""
        return self._joined(self._gradient)

    def _loss(self, position: int) -> tuple[Launch, int] | None:
        first = self._view(position, ("softmax", _FUSED))
        if first is None:
            return None
        if first.type == "softmax":
            view, count, logits, loss = self._view(position + 1, _ENTROPIES), 2, "X", "Y"
            if view is None or view.name("X") != first.name("Out"):
                return None
        else:
            view, count, logits, loss = first, 1, "Logits", "Loss"
        rows = _rows(first, logits, view)
        if rows is None or not view.has(loss):
            return None
        mean = self._view(position + count, ("mean",))
        if mean is not None and mean.name("X") == view.name(loss):
            count += 1
        else:
            mean = None
        if count == 1:
            return None
        run = _Loss(
            (first.name(logits), view.name("Label")),
            view.type,
            rows,
            int(view.attr("ignore_index")),
            first.name_or_none("Out" if first is not view else "Softmax"),
            (view.name(loss), tuple(view.shape(loss))),
            _shaped(view, "MatchX"),
            _shaped(view, "XShape"),
            mean.name("Out") if mean is not None else None,
        )
        return self._launch(position, count, run.reads, run.writes, run), count

    def _gradient(self, position: int) -> tuple[Launch, int] | None:
        start, factor = position, 1.0
        mean = self._view(position, ("mean_grad",))
        if mean is not None:
            if not self._only_next(position, mean.name_or_none(_X_GRAD)) or not product(mean.shape("X")):
                return None
            factor = 1 / product(mean.shape("X"))
            position += 1
        view = self._view(position, (*_ENTROPY_GRADS, _FUSED + "_grad"))
        if view is None:
            return None
        last, softmax, given, result = view, "Softmax", _LOSS_GRAD, grad_name("Logits")
        if view.type != _FUSED + "_grad":
            behind = self._view(position + 1, ("softmax_grad",))
            if behind is None or not self._follows(position, view, behind):
                return None
            last, softmax, given, result = behind, "Out", _Y_GRAD, _X_GRAD
            position += 1
        if position == start or not last.has(result):
            return None
        if mean is not None and mean.name(_X_GRAD) != view.name(given):
            return None
        rows = _rows(last, softmax, view)
        if rows is None:
            return None
        run = _Gradient(
            last.name(softmax),
            view.name("Label"),
            mean.name(_OUT_GRAD) if mean is not None else view.name(given),
            last.name(result),
            view.type,
            rows,
            int(view.attr("ignore_index")),
            factor,
        )
        count = position + 1 - start
        return self._launch(start, count, run.reads, (run.result,), run), count

    def _follows(self, position: int, view: OpView, last: OpView) -> bool:
        """Whether `last` is the gradient of the softmax whose cross entropy `view` is the gradient of."""
        softmax = last.name("Out")
        if last.name(_OUT_GRAD) != view.name(_X_GRAD) or not self._only_next(position, view.name(_X_GRAD)):
            return False
        if view.has("X"):
            return view.name("X") == softmax
        # This one has the probabilities of the labels only: who made these?
        match = view.name("MatchX")
        makers = [launch.view for launch in self.launches if match in launch.writes]
        written = self.uses.written
        return (
            len(makers) == 1
            and makers[0] is not None
            and makers[0].type == "cross_entropy2"
            and makers[0].name("X") == softmax
            and written[softmax] == 1
        )


_ENTROPIES = ("cross_entropy", "cross_entropy2")
_ENTROPY_GRADS = ("cross_entropy_grad", "cross_entropy_grad2")


def _rows(view: OpView, slot: str, entropy: OpView) -> tuple[int, int] | None:
    """`slot` as rows, if there are kernels for its type, and for the labels of `entropy`; else None."""
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
    """An output with its shape; None if the operator has none of this name."""
    return (view.name(slot), tuple(view.shape(slot))) if view.outputs.get(slot) else None


@dataclass(frozen=True)
class _Loss:
    """Runs softmax, cross entropy and mean. Outputs are pairs of name and shape, or None if there is no such."""

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
        from ...backend.cupy_.softmax import picked

        logits, label = map(get, self.reads)
        found = picked(
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
        made = {self.loss[0]: found.loss.reshape(self.loss[1])}
        if self.softmax is not None:
            made[self.softmax] = found.softmax
        if self.match is not None:
            made[self.match[0]] = found.match.reshape(self.match[1])
        if self.empty is not None:
            made[self.empty[0]] = device.xp.empty(self.empty[1], logits.dtype)
        if self.mean is not None:
            made[self.mean] = found.mean
        return made


@dataclass(frozen=True)
class _Gradient:
    """Runs the gradients of mean, cross entropy and softmax."""

    softmax: str
    label: str
    given: str
    result: str
    op_type: str
    rows: tuple[int, int]
    ignore: int
    factor: float

    @property
    def reads(self) -> tuple[str, ...]:
        return self.softmax, self.label, self.given

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        from ...backend.cupy_.softmax import picked_grad

        softmax, label, g = map(get, self.reads)
        dx = picked_grad(device, self.op_type, softmax, label, g, self.rows, self.ignore, self.factor)
        return {self.result: dx}
