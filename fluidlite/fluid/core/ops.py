"""`fluid.core.ops`: operators as functions of eager tensors, `core.ops.elementwise_add(x, y, "axis", -1)`.

All follow from the declarations of operators. The arguments are one for each input that an operator must have (a list
for a list of tensors), a number for each list of results, then names and values of attributes in turn. Results are
all outputs that the operator must have: one tensor, or a tuple of tensors and lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from ... import eager
from ...base import missing
from ...base.errors import EnforceNotMet
from ...base.place import CPUPlace
from ...executor.functions import BoundOperator
from ...executor.scope import Scope
from ...framework import Variable
from ...ops.registry import OpDef, Slot, find, known_types
from ..layer_helper import run_op

_TAKES = {
    "adagrad": ("Param", "Grad", "Moment", "LearningRate"),
    "decayed_adagrad": ("Param", "Grad", "Moment", "LearningRate"),
    "gru_unit": ("Input", "HiddenPrev", "Weight", "Bias"),
    "label_smooth": ("X", "PriorDist"),
    "lars_momentum": ("Param", "Grad", "Velocity", "LearningRate"),
    "layer_norm": ("X", "Scale", "Bias"),
    "momentum": ("Param", "Grad", "Velocity", "LearningRate"),
    "random_crop": ("X", "Seed"),
    "sgd": ("Param", "LearningRate", "Grad"),
}
"""Inputs in the order of Fluid where the declaration has another one, or calls one optional."""

_GIVES = {
    "center_loss": ("CentersOut", "SampleCenterDiff", "Loss"),
    "fused_elemwise_activation": ("Out", "IntermediateOut"),
    "random_crop": ("Out", "SeedOut"),
    "sample_logits": (
        "Samples",
        "Probabilities",
        "LogitsDim",
        "LabelsDim",
        "SampledLogits",
        "SampledLabels",
    ),
    "sequence_pool": ("Out", "MaxIndex"),
}
"""Outputs, likewise."""

_INTO = {
    "accuracy": ("Correct", "Total"),
    "adam": ("ParamOut", "Moment1Out", "Moment2Out", "Beta1PowOut", "Beta2PowOut"),
    "batch_norm": ("MeanOut", "VarianceOut"),
    "fill_constant": ("Out",),
    "matmul": ("Out",),
    "momentum": ("ParamOut", "VelocityOut"),
    "sgd": ("ParamOut",),
}
"""Outputs that are passed as tensors, as arguments after the inputs."""


def _slots(
    declared: tuple[Slot, ...], by_name: dict[str, Slot], listed: tuple[str, ...] | None
) -> list[Slot]:
    if listed is None:
        return [slot for slot in declared if not slot.optional]
    return [by_name[name] for name in listed]


class _Function:
    """One operator as a function; see above."""

    def __init__(self, definition: OpDef) -> None:
        self.__name__ = self.type = definition.type
        self.takes = _slots(definition.input_slots, definition.inputs_by_name, _TAKES.get(self.type))
        self.gives = _slots(definition.output_slots, definition.outputs_by_name, _GIVES.get(self.type))
        self.into = _INTO.get(self.type, ())
        lists = [slot.name for slot in self.gives if slot.many]
        self.lists = lists
        self.count = len(self.takes) + len(lists) + len(self.into)
        said = [f"[{slot.name}, ...]" if slot.many else slot.name for slot in self.takes]
        said += [f"the number of {name}" for name in lists]
        self.__doc__ = (
            f"{self.type}({', '.join([*said, *self.into, 'name, value, ...'])})\n\n{definition.doc}"
        )

    def __repr__(self) -> str:
        return f"<core.ops.{self.type}>"

    def __call__(self, *args: Any) -> Any:
        given, attrs = args[: self.count], args[self.count :]
        if len(given) < self.count or not all(self._fits(k, value) for k, value in enumerate(given)):
            kinds = ", ".join(type(value).__name__ for value in given)
            assert self.__doc__ is not None
            raise TypeError(
                f"{self.type}(): incompatible function arguments: it is {self.__doc__.splitlines()[0]}, "
                f"called with ({kinds})"
            )
        if len(attrs) % 2:
            raise EnforceNotMet(
                f"The number of arguments for attributes of core.ops.{self.type} should be even, names and values in "
                f"turn, but there are {len(attrs)}"
            )
        inputs = {
            slot.name: value for slot, value in zip(self.takes, given, strict=False) if value is not None
        }
        counts = dict(zip(self.lists, given[len(self.takes) :], strict=False))
        into = dict(zip(self.into, given[len(self.takes) + len(self.lists) :], strict=True))
        wanted = [(slot.name, counts.get(slot.name, 1)) for slot in self.gives]
        named = dict(zip(attrs[::2], attrs[1::2], strict=True))
        made = self._run(inputs, wanted, named, into)
        return self._grouped(made if isinstance(made, tuple) else (made,), counts) if wanted else None

    def _run(
        self,
        inputs: dict[str, Any],
        wanted: list[tuple[str, int]],
        attrs: dict[str, Any],
        into: dict[str, Any],
    ) -> Any:
        return run_op(self.type, inputs, wanted, attrs, name=self.type, into=into, any_type=True)

    def _grouped(self, made: Sequence[Any], counts: dict[str, int]) -> Any:
        """A result or a list of them for each output; the only one as it is."""
        rest = iter(made)
        groups = [
            [next(rest) for _ in range(counts[slot.name])] if slot.many else next(rest) for slot in self.gives
        ]
        return groups[0] if len(groups) == 1 else tuple(groups)

    def _fits(self, position: int, value: Any) -> bool:
        """Whether an argument is of the kind that its position requires."""
        kinds = (eager.Tensor, Variable)
        if position < len(self.takes) and self.takes[position].many:
            return isinstance(value, (list, tuple)) and all(isinstance(item, kinds) for item in value)
        if len(self.takes) <= position < len(self.takes) + len(self.lists):
            return isinstance(value, int) and not isinstance(value, bool)
        return value is None or isinstance(value, kinds)


class _OnServers(_Function):
    """An operator that communicates with parameter servers: it runs in a scope of its own, and has no gradient."""

    def _run(
        self,
        inputs: dict[str, Any],
        wanted: list[tuple[str, int]],
        attrs: dict[str, Any],
        into: dict[str, Any],
    ) -> Any:
        scope = Scope()
        takes: dict[str, list[str]] = {}
        for slot, given in inputs.items():
            tensors = given if isinstance(given, (list, tuple)) else [given]
            takes[slot] = [f"{slot}_{k}" for k in range(len(tensors))]
            for name, tensor in zip(takes[slot], tensors, strict=True):
                scope.var(name).get_tensor().set(tensor.numpy(), CPUPlace())
        gives = {slot: [f"{slot}_{k}" for k in range(count)] for slot, count in wanted}
        held = [scope.var(name) for names in gives.values() for name in names]
        BoundOperator(self.type, takes, gives, attrs).run(scope, CPUPlace())
        return tuple([eager.to_variable(one.get_tensor().numpy()) for one in held])


_SERVERS = frozenset({"distributed_lookup_table", "recv_save"})


@cache
def _names() -> frozenset[str]:
    declared = ((name, find(name)) for name in known_types() if "_grad" not in name)
    return _SERVERS | {name for name, one in declared if one.kernel is not None and not one.effects.control}


@cache
def _function(name: str) -> _Function:
    return (_OnServers if name in _SERVERS else _Function)(find(name))


_missing = missing.reporter(__name__)


def __getattr__(name: str) -> Any:
    if name in _names():
        return _function(name)
    return _missing(name)


def __dir__() -> list[str]:
    return sorted(_names())
