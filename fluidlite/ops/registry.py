"""How operators are declared: `OpDef` says everything about one operator type, `register` makes it known.

Nothing here knows about programs or modes; graph building, planning, interpretation and eager calls all look at
operators through `OpView` (`op_view.py`), whose names stand here as well.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..base.dtypes import attribute
from ..base.errors import NotSupportedError, UnknownOperator
from ..base.errors import OperatorError as OperatorError
from ..base.selected_rows import SelectedRows, as_dense
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

if TYPE_CHECKING:
    from ..backend.cupy_.device import CudaDevice

FIRST = ""
"""See `OpDef.lod_sources`."""

ROLES = {
    "count": "adds `step` to X",
    "read": "the element of the tensor array X at index I",
    "write": "puts X at index I of the tensor array Out",
    "shorten": "the first rows of X: those of sequences of RankTable that have a step I",
    "limit": "whether X is less than Y",
    "product": "a product of X and the matrix Y",
    "activation": "a function of each element that products can end with (`epilogue`)",
    "entropy": "the cross entropy of the probabilities X and Label",
    "lookup": "the rows of the table W that Ids name",
}
"""What `OpDef.role` may be. The gradient of an operator with a role has the same with `_grad` behind it."""

LodFrom = str | dict[str, str] | None
Kernel = Callable[..., Any]


@dataclass(eq=False, repr=False)
class RowRule:
    """What an operator does with `SelectedRows` as they are; operators without such a rule get them made dense.

    It applies when every variable of the input `slots` is SelectedRows and attribute `when`, if named, is true.
    `kernel` is called as `OpDef.kernel` is. `out`: the output that is SelectedRows too; `count(op)`: how many rows it
    gets, by default those of all inputs. `native`: the C kernels; see `rows.parts` for what they work on. `cuda`: the
    launcher for GPUs, as that of an `OpDef`.
    """

    kernel: Callable[..., Any]
    slots: tuple[str, ...] = ()
    out: str | None = None
    when: str | None = None
    count: Callable[[OpView], int] | None = None
    native: Callable[[OpView], list[Call] | None] | None = None
    cuda: str | None = None

    def applies(self, op: OpView) -> bool:
        """Whether the operator works on SelectedRows."""
        if self.when is not None and not op.attr(self.when):
            return False
        return all(op.rows(slot, k) is not None for slot in self.slots for k in range(op.count(slot)))

    def mark(self, op: OpView) -> None:
        """After `infer`: say which output is SelectedRows."""
        if self.out is None or not op.has(self.out) or not self.applies(op):
            return
        if self.count is not None:
            total = self.count(op)
        else:
            counts = [op.rows(slot, k) or 0 for slot in self.slots for k in range(op.count(slot))]
            total = -1 if min(counts) < 0 else sum(counts)
        op.meta.set_rows(op.name(self.out), total)  # type: ignore[attr-defined]


class Levels(NamedTuple):
    """How many levels of sequences outputs of an operator that works on sequences are declared with.

    `more` than the first variable of the input `slot` has (with "" none), but at least `least`. `outs`: the slots of
    these outputs; (): all.
    """

    slot: str = ""
    more: int = 0
    least: int = 0
    outs: tuple[str, ...] = ()


@dataclass(eq=False, repr=False)
class OpDef:
    """The one declaration of an operator type; see docs/add_an_operator.md.

    `inputs`, `outputs`: slots (see `Slot`). `attrs`: names and defaults. `infer`, `kernel`, `grad`, `native`: see
    docs/architecture.md. `direct`: of an operator whose results have sizes that only the data know, so that no plan can
    have it, what is called instead of `kernel` with arrays of NumPy, to be faster. `inplace`: pairs (output, input)
    that may share memory. `view`: (output, input) where the output is the input's memory with another shape. `lod`: the
    kernel takes `lod=`. `levels`: the lod_level that its outputs are declared with; see `Levels`. `carried`: its
    `infer` says whose sequences each output has (`OpView.carry`), so that plans call the kernel where there is no
    native one. `lod_from`: of operators that do not, whose sequences the outputs have; see `lod_sources`. `random`:
    each run draws new numbers. `stop_gradient`: outputs without gradient. `gradable`: inputs that may have one (by
    default all of them). `host`: does more than compute (prints, reads files, ...); never dropped as unused.
    `control`: runs the blocks that its attributes name, by a function of `executor/control`; it has no kernel.
    `updates`: outputs that the kernel changes instead of making them; what they hold, or None, arrives under their
    keyword. `rows`: what it does with SelectedRows. `cuda`: what to call on a GPU instead of `kernel`, named as
    `launchers.launcher` of `backend/cupy_` has it; see `call`. `sizes`: of an operator whose only result is integers
    that follow from sizes of its inputs, these integers. `epilogue`: the number under which kernels of products
    know an activation that they can end with; 0 for everything else. `wire`: the type (`LONG`, `LONGS`, ...) that
    an attribute has in saved programs, where its default does not show it. `by_row`: whether the operator may work
    on the rows of many turns of a loop at once (`ops/by_row.py`); None: never. `copies`: the output slot that has
    just the values of an input slot, and that; None where that is not so. `role`: what the operator is to those who
    look for several that belong together; see `ROLES`. `zero_rows`: what it does with rows of zeros, of which a
    plan has more than Fluid, as it does not know how many rows of SelectedRows are different: "left" over in its
    result, "kept" as rows of zeros, "summed" if `reduce_all`; "" shows how many there are. `takes_out`: an input
    slot with which the operator changes what it reads. `may_skip`: may not run its blocks, and then leaves alone
    what these write. `counted`: whether eager results take part in the count that Fluid names tensors by.
    `passes_errors`: what the kernel raises is the user's own, and is raised as it is. `unset`: input slots whose
    variables may not have a value yet; the kernel then gets None. `passes_on`: (output, input) where the output is
    the input as it is, so that there is nothing to do where both are one variable. It follows from the kernel that
    an operator is `hosted`: works on the host, wherever its arrays are. `outside`: what the operator does to the
    machine rather than to variables ("writes files"); a model that is loaded may have no such operator.
    """

    type: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ("Out",)
    attrs: dict[str, Any] = field(default_factory=dict)
    infer: Callable[[OpView], None] | None = None
    kernel: Callable[..., Any] | None = None
    grad: Callable[[OpView], list[OpSpec]] | None = None
    native: Callable[[OpView], Call | list[Call] | None] | None = None
    direct: Callable[..., Any] | None = None
    inplace: tuple[tuple[str, str], ...] = ()
    view: tuple[str, str] | None = None
    lod: bool = False
    levels: Levels | None = None
    carried: bool = False
    lod_from: LodFrom | Callable[[OpView], LodFrom] = FIRST
    random: bool = False
    host: bool = False
    control: bool = False
    updates: tuple[str, ...] = ()
    rows: RowRule | None = None
    stop_gradient: tuple[str, ...] = ()
    gradable: tuple[str, ...] | None = None
    cuda: str | None = None
    epilogue: int = 0
    sizes: Callable[[OpView], Sequence[int]] | None = None
    wire: dict[str, str] = field(default_factory=dict)
    by_row: Callable[[OpView, Callable[[str], bool]], bool] | None = None
    copies: Callable[[OpView], tuple[str, str] | None] | None = None
    role: str = ""
    zero_rows: str = ""
    takes_out: str = ""
    may_skip: bool = False
    counted: bool = True
    passes_errors: bool = False
    unset: tuple[str, ...] = ()
    passes_on: tuple[str, str] | None = None
    outside: str = ""
    doc: str = ""

    def __post_init__(self) -> None:
        self.attrs = {name: attribute(value) for name, value in self.attrs.items()}
        self.input_slots = tuple(Slot.parse(text) for text in self.inputs)
        self.output_slots = tuple(Slot.parse(text) for text in self.outputs)
        self.inputs_by_name = {slot.name: slot for slot in self.input_slots}
        self.outputs_by_name = {slot.name: slot for slot in self.output_slots}
        self.unread = frozenset(slot.name for slot in self.input_slots if slot.unread)
        self.slots = {**self.inputs_by_name, **self.outputs_by_name}
        self._lod_sources = {} if callable(self.lod_from) else self._sources(self.lod_from)
        self._takes = self._parameters(self.kernel)
        self.hosted: bool = getattr(self.kernel, "hosted", False)
        self._rows_takes = self._parameters(self.rows.kernel) if self.rows is not None else self._takes

    def lod_sources(self, op: OpView) -> dict[str, str]:
        """Output slots with the input slots whose sequences they have, if they have as many rows; {} if `lod`.

        `lod_from` names the input slot for all outputs, or the output slots with an input slot each. Of several
        variables the first counts, or all one after the other if the name ends with `*`. None: no sequences. A function
        of the operator returns one of these where attributes matter. FIRST, the default: the first input slot; for each
        gradient the variable whose gradient it is, or else what remembers its shape, or the gradient that arrives.
        """
        return self._sources(self.lod_from(op)) if callable(self.lod_from) else self._lod_sources

    def _sources(self, lod_from: LodFrom) -> dict[str, str]:
        if isinstance(lod_from, dict):
            return lod_from
        if lod_from is None or self.lod or not self.inputs:
            return {}
        made = [slot.name for slot in self.output_slots]
        if lod_from == FIRST and self.type.endswith("_grad"):
            arriving = ["XShape", *(slot.name for slot in self.input_slots if slot.name.endswith(GRAD))]
            other = next((name for name in arriving if name in self.inputs_by_name), None)
            own = {name: name.removesuffix(GRAD) for name in made}
            found = {name: slot if slot in self.inputs_by_name else other for name, slot in own.items()}
            return {name: slot for name, slot in found.items() if slot is not None}
        return dict.fromkeys(made, lod_from or self.input_slots[0].name)

    def _parameters(
        self, kernel: Callable[..., Any] | None
    ) -> tuple[tuple[tuple[str, str, bool], ...], tuple[tuple[str, str], ...]]:
        """The slots and attributes that a kernel takes, each with its keyword; all attributes if it has `**attrs`."""
        code = getattr(kernel, "__code__", None)
        named = set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) if code else set()
        every = bool(code and code.co_flags & inspect.CO_VARKEYWORDS)
        taken = [*self.input_slots, *(self.outputs_by_name[name] for name in self.updates)]
        slots = [(slot.name, keyword(slot.name), slot.many) for slot in taken]
        attrs = [(name, keyword(name)) for name in self.attrs]
        return tuple(s for s in slots if s[1] in named), tuple(a for a in attrs if every or a[1] in named)

    @property
    def has_gradient(self) -> bool:
        """Whether gradients go through operators of this type."""
        return self.grad is not None and self.grad is not _no_second

    def call(
        self,
        xp: Any,
        inputs: dict[str, list[Any]],
        attrs: dict[str, Any],
        lods: dict[str, list[Any]] | None = None,
        device: CudaDevice | None = None,
        wanted: Collection[str] | None = None,
        direct: bool = False,
    ) -> list[Any]:
        """Run the reference kernel: lists of arrays by input slot in, one result (or None) per output slot out.

        Slot `X` arrives as keyword `X`, slot `Out@GRAD` as `Out_grad`; lists for list slots, None for missing ones.
        SelectedRows are made dense unless the operator has a rule for them. NumPy's float16 arrives as float32, and
        results may be that.
        A result is an array, a `LodArray`, or a list of them for a list slot.

        With `direct` what the operator has by this name is called instead, on arrays of NumPy.

        With a `device`, which must be active, `xp` is CuPy and the arrays are of that device. Then the launcher that
        `cuda` names is called first, with the device in place of `xp` and otherwise as `kernel` is; when it returns
        NotImplemented (another dtype, an odd shape) the reference kernel runs on the device. Launchers of updates write
        into `Param` and the like and return those same arrays. `wanted`: the output slots that somebody takes (None:
        all); launchers with a keyword of this name get it and may leave the others out.
        """
        cuda = None if device is None or lods is not None else self._cuda(inputs, attrs)
        if cuda is not None:
            launch, selective, (slots, words) = self._launcher(cuda)
            arguments = self._arguments(inputs, attrs, slots, words)
            if selective:
                arguments["wanted"] = wanted
            results = launch(device, **arguments)
            if results is not NotImplemented:
                return [results] if len(self.output_slots) == 1 else list(results)
        kernel, (slots, words) = self.kernel, self._takes
        if direct and self.direct is not None:
            kernel = self.direct
        if kernel is None:
            raise NotSupportedError(f"operator {self.type} has no kernel")
        if device is not None and self.hosted:
            from .host_fallback import call_on_host

            return call_on_host(self, inputs, attrs, lods, device)
        if self.rows is not None and self._by_rows(self.rows, inputs, attrs):
            kernel, (slots, words) = self.rows.kernel, self._rows_takes
        elif _sparse(inputs):
            inputs = {name: [as_dense(value, xp) for value in given] for name, given in inputs.items()}
        if xp is np and not (self.host or self.updates or self.view):
            inputs = _in_single(inputs)
        arguments = self._arguments(inputs, attrs, slots, words)
        if self.lod:
            arguments["lod"] = lods or {}
        # Infinities and NaNs are results like any other, as they are for native kernels.
        with np.errstate(all="ignore"):
            results = kernel(xp, **arguments)
        if len(self.output_slots) == 1:
            return [results]
        return list(results)

    def _arguments(
        self,
        inputs: dict[str, list[Any]],
        attrs: dict[str, Any],
        slots: Sequence[tuple[str, str, bool]],
        words: Sequence[tuple[str, str]],
    ) -> dict[str, Any]:
        """The keyword arguments of a kernel that takes these slots and attributes."""
        arguments: dict[str, Any] = {}
        for name, word, many in slots:
            given = inputs.get(name)
            arguments[word] = (given or []) if many else (given[0] if given else None)
        for name, word in words:
            arguments[word] = attrs[name] if name in attrs else self.attrs[name]
        return arguments

    def _cuda(self, inputs: dict[str, list[Any]], attrs: dict[str, Any]) -> str | None:
        """The name of the launcher for these inputs, if there is one."""
        if not _sparse(inputs):
            return self.cuda
        return self.rows.cuda if self.rows is not None and self._by_rows(self.rows, inputs, attrs) else None

    def _launcher(self, name: str) -> Any:
        """The launcher of this name, whether it takes `wanted`, and the slots and attributes that it takes."""
        known = self.__dict__.setdefault("_launchers", {})
        if name not in known:
            from ..backend.cupy_.launchers import launcher

            launch = launcher(name)
            selective = "wanted" in inspect.signature(launch).parameters
            known[name] = launch, selective, self._parameters(launch)
        return known[name]

    def _by_rows(self, rule: RowRule, inputs: dict[str, list[Any]], attrs: dict[str, Any]) -> bool:
        if rule.when is not None and not attrs.get(rule.when, self.attrs[rule.when]):
            return False
        return all(type(value) is SelectedRows for slot in rule.slots for value in inputs.get(slot, ()))


def check_result(op_type: str, value: Any, shape: Sequence[int], dtype: np.dtype) -> None:
    """Raise OperatorError unless what a reference kernel made is of the inferred shape (-1: any) and type.

    Real numbers may have another precision; nothing else is converted: it would hide a wrong kernel or shape rule.
    """
    made = np.shape(value)
    fits = len(made) == len(shape) and all(n in (-1, m) for n, m in zip(shape, made, strict=True))
    kind = getattr(value, "dtype", None) or np.result_type(value)
    if not fits or (kind != dtype and not kind.kind == dtype.kind == "f"):
        raise OperatorError(
            f"operator {op_type}: its kernel made {kind} {list(made)}, but {dtype} {list(shape)} was inferred"
        )


def _sparse(inputs: dict[str, list[Any]]) -> bool:
    """Whether there are SelectedRows among the inputs."""
    return any(type(value) is SelectedRows for given in inputs.values() for value in given)


_HALF = np.dtype(np.float16)


def _in_single(inputs: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The inputs with float32 for float16, which the CPU stores and does not compute with; callers narrow results."""
    if not any(getattr(value, "dtype", None) is _HALF for given in inputs.values() for value in given):
        return inputs
    return {name: list(map(_single, given)) for name, given in inputs.items()}


def _single(value: Any) -> Any:
    return value.astype(np.float32) if type(value) is np.ndarray and value.dtype is _HALF else value


_OPS: dict[str, OpDef] = {}


def _no_second(op: OpView) -> list[OpSpec]:
    raise op.fail("has no gradient of its own, so that second derivatives cannot go through it")


def register(definition: OpDef) -> OpDef:
    """Make an operator known; raises ValueError if its type is taken.

    A gradient operator without a gradient rule gets one that raises: to leave its part out would give wrong numbers.
    """
    if definition.type in _OPS:
        raise ValueError(f"operator {definition.type!r} is declared twice")
    forward, suffix, _ = definition.type.rpartition("_grad")
    if suffix:
        if definition.grad is None and definition.type.endswith("_grad"):
            definition.grad = _no_second
        if not definition.role and forward in _OPS and _OPS[forward].role:
            definition.role = _OPS[forward].role + "_grad"
    _OPS[definition.type] = definition
    return definition


def find(op_type: str) -> OpDef:
    """The declaration of an operator type; raises NotSupportedError naming it if there is none."""
    try:
        return _OPS[op_type]
    except KeyError:
        return _load(op_type)


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
            if slot.name not in definition.stop_gradient and op.outputs.get(slot.name):
                takes[grad_name(slot.name)] = [grad_name(name) for name in op.outputs[slot.name]]
        gives = {}
        for slot in definition.input_slots:
            if definition.gradable is not None and slot.name not in definition.gradable:
                continue
            names = op.inputs.get(slot.name)
            if names:
                gives[grad_name(slot.name)] = [grad_name(name) for name in names]
        return [OpSpec(type or definition.type + "_grad", takes, gives, dict(op.attrs))]

    return rule
