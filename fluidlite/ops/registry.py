"""The operators that are known, by type: `register` makes one known, `find` gives its declaration (`OpDef`).

What declarations are written with stands here as well, wherever it is defined.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ParamSpec, TypeVar

from ..base.errors import OperatorError as OperatorError
from ..base.errors import UnknownOperator
from .op_def import FIRST as FIRST
from .op_def import PATTERNS as PATTERNS
from .op_def import Attr as Attr
from .op_def import Control as Control
from .op_def import Dispatch as Dispatch
from .op_def import Effects as Effects
from .op_def import Kernel as Kernel
from .op_def import Levels as Levels
from .op_def import LodFrom as LodFrom
from .op_def import OpDef as OpDef
from .op_def import Planning as Planning
from .op_def import RowRule as RowRule
from .op_def import Sequences as Sequences
from .op_def import check_result as check_result
from .op_def import no_second_derivative
from .op_view import EMPTY as EMPTY
from .op_view import GRAD as GRAD
from .op_view import LEVEL as LEVEL
from .op_view import VERSION as VERSION
from .op_view import Call as Call
from .op_view import LodArray as LodArray
from .op_view import OpSpec as OpSpec
from .op_view import OpView as OpView
from .op_view import Shape as Shape
from .op_view import Slot as Slot
from .op_view import grad_name as grad_name
from .op_view import keyword as keyword
from .places import PLACES

Fields = ParamSpec("Fields")
R = TypeVar("R")

_OPS: dict[str, OpDef] = {}


def _with_fields_of(declaration: Callable[Fields, Any]) -> Callable[[Callable[..., R]], Callable[Fields, R]]:
    """Type a function as one that takes the fields of a declaration."""
    return lambda function: function


@_with_fields_of(OpDef)
def register(*args: Any, **fields: Any) -> OpDef:
    """Declare an operator by the fields of its `OpDef`; raises ValueError if its type is taken.

    A gradient operator without a gradient rule gets one that raises: to leave its part out would give wrong numbers.
    """
    definition = OpDef(*args, **fields)
    if definition.type in _OPS:
        raise ValueError(f"operator {definition.type!r} is declared twice")
    forward, suffix, _ = definition.type.rpartition("_grad")
    if suffix:
        if definition.grad is None and definition.type.endswith("_grad"):
            definition.grad = no_second_derivative
        pattern = _OPS[forward].planning.pattern if forward in _OPS else ""
        if pattern and not definition.planning.pattern:
            definition.planning = replace(definition.planning, pattern=pattern + "_grad")
    _OPS[definition.type] = definition
    return definition


def find(op_type: str) -> OpDef:
    """The declaration of an operator type; raises NotSupportedError naming it if there is none."""
    try:
        return _OPS[op_type]
    except KeyError:
        return _load(op_type)


def kernel_of(op_type: str) -> Kernel:
    """The reference kernel of an operator, which kernels of fused operators call."""
    kernel = find(op_type).kernel
    assert kernel is not None, op_type
    return kernel


def is_known(op_type: str) -> bool:
    """Whether there is an operator of this type."""
    return op_type in _OPS or op_type in _places() or op_type in known_types()


def known_types() -> list[str]:
    """All declared operator types, sorted."""
    load_all()
    return sorted(_OPS)


@cache
def load_all() -> None:
    """Load every module that declares operators."""
    import pkgutil  # slow to import

    for family in pkgutil.iter_modules([os.path.dirname(__file__)]):
        if family.ispkg:
            package = importlib.import_module(f"{__package__}.{family.name}")
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{package.__name__}.{module.name}")


@cache
def _places() -> dict[str, str]:
    """The module that declares an operator type, by this type."""
    return {op_type: module for module, types in PLACES.items() for op_type in types.split()}


def _load(op_type: str) -> OpDef:
    """The declaration of an operator type that nobody has asked for before."""
    if op_type in _places():
        importlib.import_module(f"{__package__}.{_places()[op_type]}")
    if op_type not in _OPS:
        load_all()
    if op_type not in _OPS:
        import difflib  # slow to import

        near = difflib.get_close_matches(str(op_type), _OPS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UnknownOperator(f"fluidlite has no operator {op_type!r}{hint}")
    return _OPS[op_type]


def standard_grad(
    inputs: Sequence[str] = (), outputs: Sequence[str] = (), type: str | None = None
) -> Callable[[OpView], list[OpSpec]]:
    """The usual gradient rule: `<type>_grad` of the named inputs and outputs, the gradients of all differentiable
    outputs and all attributes, giving the gradient of every input that may have one.
    """

    def rule(op: OpView) -> list[OpSpec]:
        definition = op.definition
        takes: dict[str, list[str]] = {slot: list(op.inputs[slot]) for slot in inputs if op.inputs.get(slot)}
        takes.update({slot: list(op.outputs[slot]) for slot in outputs if op.outputs.get(slot)})
        for slot in definition.output_slots:
            if slot.name not in definition.no_grad and op.outputs.get(slot.name):
                takes[grad_name(slot.name)] = [grad_name(name) for name in op.outputs[slot.name]]
        gives = {}
        for slot in definition.input_slots:
            if slot.name in definition.no_grad:
                continue
            names = op.inputs.get(slot.name)
            if names:
                gives[grad_name(slot.name)] = [grad_name(name) for name in names]
        return [OpSpec(type or definition.type + "_grad", takes, gives, dict(op.attrs))]

    return rule
