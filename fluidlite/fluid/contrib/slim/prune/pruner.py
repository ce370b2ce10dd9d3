"""Selection of the entries of parameters to prune, and of all that depends on them
(`fluid.contrib.slim.prune.pruner`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .....framework import OpRole
from ..graph import GraphWrapper, OpWrapper

__all__ = ["Pruner", "StructurePruner"]


class Pruner:
    """Base of pruners (`fluid.contrib.slim.prune.Pruner`)."""

    def prune(self, param: Any) -> Any:
        """Prune a parameter; subclasses define it."""


class StructurePruner(Pruner):
    """Prunes the entries of an axis with the smallest norms (`fluid.contrib.slim.prune.StructurePruner`).

    Args:
        pruning_axis: name of a parameter -> axis; '*' stands for all others.
        criterions: name of a parameter -> criterion, 'l1_norm'; '*' as above.
    """

    def __init__(self, pruning_axis: Mapping[str, int], criterions: Mapping[str, str]) -> None:
        self.pruning_axis = pruning_axis
        self.criterions = criterions

    def cal_pruned_idx(
        self, name: str, param: np.ndarray, ratio: float, axis: int | None = None
    ) -> np.ndarray:
        """The indices of the entries of `param` with the smallest norms, the fraction `ratio` of those along `axis`.

        `axis`: that of `name` in `pruning_axis` if None.

        Raises KeyError for a parameter without an axis or criterion, ValueError for an unknown criterion.
        """
        criterion = self.criterions[name if name in self.criterions else "*"]
        if criterion != "l1_norm":
            raise ValueError(f"entries of {name} can be compared by 'l1_norm', got {criterion!r}")
        if axis is None:
            axis = self.pruning_axis[name if name in self.pruning_axis else "*"]
        count = int(round(param.shape[axis] * ratio))
        sums = np.abs(param).sum(axis=tuple(other for other in range(param.ndim) if other != axis))
        return sums.argsort()[:count]

    def prune_tensor(
        self, tensor: np.ndarray, pruned_idx: Sequence[int], pruned_axis: int, lazy: bool = False
    ) -> np.ndarray:
        """A copy of `tensor` without the entries `pruned_idx` of an axis; with `lazy`, `tensor` with zeros there."""
        if not lazy:
            return np.delete(tensor, pruned_idx, pruned_axis)
        np.moveaxis(tensor, pruned_axis, 0)[list(pruned_idx)] = 0
        return tensor


Axis = tuple[str, int]

_SAME = """
    abs bilinear_interp dropout elu hard_sigmoid hard_swish leaky_relu nearest_interp pool2d relu relu6 scale sigmoid
    sqrt square swish tanh
""".split()


class Channels:
    """The entries to prune of the variables of a graph, by variable and axis.

    Pruning propagates to all axes that must keep the same size: the result of a convolution, tensors added to it, the
    parameters of normalizations, the filters of the next convolutions, rows of the next product.
    """

    def __init__(self, graph: GraphWrapper) -> None:
        self._graph = graph
        self.out: defaultdict[Axis, set[int]] = defaultdict(set)
        self._ops: defaultdict[str, list[OpWrapper]] = defaultdict(list)
        for op in graph.ops():
            if not op._role() & ~int(OpRole.Loss):
                for name in {var.name() for var in (*op.all_inputs(), *op.all_outputs())}:
                    self._ops[name].append(op)

    def take_out(self, name: str, axis: int, entries: Iterable[int]) -> None:
        """Prune entries of an axis and all that depend on them. Raises ValueError if an operator does not allow it."""
        waiting = [(name, axis, set(entries))]
        while waiting:
            name, axis, entries = waiting.pop()
            new = entries - self.out[name, axis]
            if not new:
                continue
            self.out[name, axis] |= new
            if not self._graph.is_persistable(self._graph.var(name)) and not self._made(name):
                raise ValueError(f"pruning would take channels out of {name}, which no operator computes")
            for op in self._ops[name]:
                waiting += self._along(op, name, axis, new)

    def _made(self, name: str) -> bool:
        return any(name in op._op.output_arg_names for op in self._ops[name])

    def _shape(self, name: str) -> tuple[int, ...]:
        return self._graph.var(name).shape()

    def _along(
        self, op: OpWrapper, name: str, axis: int, entries: set[int]
    ) -> Iterator[tuple[str, int, set[int]]]:
        """The (variable, axis, entries) that an operator ties to `entries` of an axis of `name`."""
        slots = {slot: op._op.input(slot) for slot in op._op.input_names}
        kind = op.type()
        if kind == "concat":
            yield from self._concat(op, name, axis, entries)
        elif kind == "mul" and (name == slots["X"][0] or (name == slots["Y"][0] and axis == 0)):
            yield self._rows(op, name, axis, entries)
        else:
            for group in self._groups(op, slots, name):
                if (name, axis) in group:
                    yield from ((other, at, entries) for other, at in group if (other, at) != (name, axis))
                    return
            if kind != "batch_norm":  # its SavedMean and SavedVariance need no pruning
                raise self._refusal(op, name)

    def _rows(self, op: OpWrapper, name: str, axis: int, entries: set[int]) -> tuple[str, int, set[int]]:
        """The rows of the right operand of a product for channels of the left one, or the reverse."""
        (left,), (right,), first = op._op.input("X"), op._op.input("Y"), op.attr("x_num_col_dims")
        shape = self._shape(left)[first:]
        rows = np.arange(np.prod(shape)).reshape(shape)
        if name == left:
            if axis < first:
                raise self._refusal(op, name)
            return right, 0, set(rows.take(sorted(entries), axis - first).ravel().tolist())
        channels = {row // rows[0].size for row in entries}
        if set(rows[sorted(channels)].ravel().tolist()) != entries:
            raise self._refusal(op, name)
        return left, first, channels

    def _refusal(self, op: OpWrapper, name: str) -> ValueError:
        return ValueError(f"pruning takes channels out of {name}, which {op.type()} does not allow")

    def _groups(self, op: OpWrapper, slots: dict[str, list[str]], name: str) -> list[list[Axis]]:
        """Groups of axes that an operator keeps at the same size."""
        kind = op.type()
        if kind in ("conv2d", "depthwise_conv2d", "conv2d_transpose"):
            (data,), (weight,), (out,) = slots["Input"], slots["Filter"], op._op.output("Output")
            groups, transposed = op.attr("groups"), kind == "conv2d_transpose"
            if op.attr("data_format") == "NHWC":
                raise self._refusal(op, name)
            if groups == 1:
                return [[(out, 1), (weight, int(transposed))], [(data, 1), (weight, 1 - transposed)]]
            if not transposed and groups == self._shape(weight)[0] == self._shape(data)[1]:
                return [[(out, 1), (weight, 0), (data, 1)]]
            raise self._refusal(op, name)
        if kind == "batch_norm":
            parameters = [slots[slot][0] for slot in ("Scale", "Bias", "Mean", "Variance")]
            return [[(slots["X"][0], 1), (op._op.output("Y")[0], 1), *((one, 0) for one in parameters)]]
        if kind.startswith("elementwise_"):
            (left,), (right,), (out,) = slots["X"], slots["Y"], op._op.output("Out")
            wide, narrow = self._shape(left), self._shape(right)
            offset = op.attr("axis")
            if offset < 0:
                offset = len(wide) - len(narrow)
            both = [[(left, at), (out, at)] for at in range(len(wide))]
            for at, size in enumerate(narrow):
                if size == wide[at + offset]:
                    both[at + offset].append((right, at))
            return both
        if kind in _SAME:
            (data,), (out,) = slots["X"], op._op.output("Out")
            return [[(data, 1), (out, 1)]]
        if kind == "mul":
            (out,) = op._op.output("Out")
            return [[(slots["Y"][0], 1), (out, op.attr("x_num_col_dims"))]]
        return []

    def _concat(
        self, op: OpWrapper, name: str, axis: int, entries: set[int]
    ) -> Iterator[tuple[str, int, set[int]]]:
        names, (out,) = op._op.input("X"), op._op.output("Out")
        joined = op.attr("axis") % len(self._shape(out))
        begin = 0
        for part in names:
            size = self._shape(part)[axis]
            if axis != joined:
                yield part, axis, entries
            elif name == out:
                yield part, axis, {entry - begin for entry in entries if begin <= entry < begin + size}
            elif name == part:
                yield out, axis, {entry + begin for entry in entries}
            begin += size
        if axis != joined:
            yield out, axis, entries
