"""The declaration of an operator type, `OpDef`, and the groups of facts that few operators need.

Nothing here knows about programs or modes; graph building, planning, interpretation and eager calls all look at
operators through `OpView` (`op_view.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..base.dtypes import attribute
from ..base.errors import NotSupportedError, OperatorError
from ..base.selected_rows import SelectedRows, as_dense
from .op_view import GRAD, Call, OpSpec, OpView, Slot, keyword

if TYPE_CHECKING:
    from ..backend.cupy_.device import CudaDevice

FIRST = ""
"""The default of `Sequences.source`: the first input slot; of gradient operators see `OpDef.lod_sources`."""

PATTERNS = {
    "count": "adds `step` to X",
    "read": "the element of the tensor array X at index I",
    "write": "puts X at index I of the tensor array Out",
    "shorten": "the first rows of X: those of sequences of RankTable that have a step I",
    "limit": "whether X is less than Y",
    "product": "a product of X and the matrix Y",
    "activation": "a function of each element that products can end with (`KernelDef.activation`)",
    "entropy": "the cross entropy of the probabilities X and Label",
    "lookup": "the rows of the table W that Ids name",
}
"""The values of `Planning.pattern`; gradient operators get that of their operator with `_grad` at its end."""

LodFrom = str | dict[str, str] | None
Kernel = Callable[..., Any]


@dataclass(frozen=True)
class Attr:
    """The default of an attribute together with its type in saved programs, where the default does not show that."""

    default: Any
    type: str
    """`LONG`, `LONGS`, `INTS`, `FLOATS`, `STRINGS` or `BLOCKS`."""


class Levels(NamedTuple):
    """The lod_level that outputs of an operator on sequences are declared with while a program is built."""

    slot: str = ""
    """The input slot whose first variable the number is counted from; "": from 0."""

    more: int = 0
    """How many more levels than that variable the outputs have."""

    least: int = 0
    """The smallest number."""

    outs: tuple[str, ...] = ()
    """The slots of these outputs; (): all."""


@dataclass(frozen=True)
class Sequences:
    """The sequences (LoD) that the outputs of an operator have; by default those of the first input slot."""

    takes_lod: bool = False
    """The kernel takes `lod=`, the sequences by slot, and returns `LodArray`s."""

    inferred: bool = False
    """`infer` says which sequences each output has (`OpView.carry`), so that plans may call the reference kernel."""

    source: LodFrom | Callable[[OpView], LodFrom] = FIRST
    """The input slot whose sequences the outputs of a kernel without `lod=` have; see `OpDef.lod_sources`."""

    levels: Levels | None = None
    """The lod_level of the outputs in a program; None: what the layer sets."""


@dataclass(frozen=True)
class Control:
    """How an operator runs the block in its attribute `sub_block`, by a function of `executor/interpreter`.

    The defaults are those of operators that choose between variables (`select_input`), without a block.
    """

    kind: Literal["", "branch", "loop", "recurrent"] = ""
    """The construct that it becomes in a plan (`executor/control_flow`); "" for operators without a block."""

    gradient: bool = False
    """Whether it is the gradient of an operator of this kind."""

    predicate: str = ""
    """The input slot with the one variable that decides whether, or how often, the block runs."""

    reads: str = ""
    """The input slot of the outer variables that the block reads. Gradients name all of these, with `EMPTY` where no
    gradient is wanted."""

    scopes: str = ""
    """The slot of the values stashed for the gradient: an output, of gradients an input."""


@dataclass(frozen=True)
class Effects:
    """Side effects of an operator, and other facts about how it is run."""

    host: bool = False
    """Does more than compute (prints, reads files, ...): runs on the host and is never dropped as unused."""

    control: Control | None = None
    """Set for operators that run blocks, which have no kernel."""

    random: bool = False
    """Each run draws new numbers."""

    updates: tuple[str, ...] = ()
    """Output slots that the kernel changes in place; it gets their values, or None, under their keywords."""

    consumes: str = ""
    """The input slot (a tensor array) from which the operator takes out the element that it reads."""

    uninitialized: tuple[str, ...] = ()
    """Input slots whose variables may have no value yet; the kernel then gets None."""

    external: str = ""
    """The effect outside of the program ("writes files"); models with such an operator are not loaded."""

    user_errors: bool = False
    """True if the kernel calls the user's code, whose exceptions are not wrapped."""

    numbered: bool = True
    """Eager results take part in the count that Fluid names tensors by."""

    @property
    def may_skip(self) -> bool:
        """True if the operator may leave its outputs unwritten, as its block may not run."""
        control = self.control
        return control is not None and control.kind in ("branch", "loop") and not control.gradient


@dataclass(frozen=True)
class Planning:
    """Facts that plans and their passes rely on."""

    inplace: tuple[tuple[str, str], ...] = ()
    """Pairs (output, input) that a program may have as one variable. What memory plans share follows from the kernels
    (`KernelDef.alias`)."""

    view: tuple[str, str] | None = None
    """(output, input) where the output is the input's memory with another shape."""

    noop: tuple[str, str] | None = None
    """(output, input): nothing is left to do where both are one variable."""

    identity: Callable[[OpView], tuple[str, str] | None] | None = None
    """(output, input) where the output has just the values of the input, else None; rules: `ops/planning_rules.py`."""

    batchable: Callable[[OpView, Callable[[str], bool]], bool] | None = None
    """Whether many iterations of a loop may be one call, along axis 0 (`ops/planning_rules.py`); None: never."""

    size_values: Callable[[OpView], Sequence[int]] | None = None
    """The elements of the only output, integers that follow from the sizes of inputs."""

    padding_rows: str = ""
    """How an operator treats rows of zeros, of which SelectedRows in plans have more than in Fluid, as plans do not
    know how many rows are different: "left" over in its result, "kept" as rows of zeros, "summed" if `reduce_all`.
    By default they would show in the result."""

    pattern: str = ""
    """The part that the operator plays in patterns of several operators; see `PATTERNS`."""


@dataclass(eq=False, repr=False)
class RowRule:
    """The kernels of an operator for `SelectedRows`; operators without such a rule get them made dense.

    The rule applies when every variable of the input `slots` is SelectedRows and attribute `when`, if named, is true.
    """

    kernel: Callable[..., Any]
    """Called as `OpDef.kernel` is."""

    slots: tuple[str, ...] = ()
    """The input slots that have to be SelectedRows."""

    out: str | None = None
    """The output that is SelectedRows too."""

    when: str | None = None
    """An attribute that has to be true."""

    count: Callable[[OpView], int] | None = None
    """How many rows `out` gets, by default those of all inputs."""

    native: Callable[[OpView], list[Call] | None] | None = None
    """The C kernels; see `tensor/gather.py` for what they work on."""

    cuda: str | None = None
    """The launcher for GPUs, as `Dispatch.cuda`."""

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


@dataclass(frozen=True)
class Dispatch:
    """Kernels that are called instead of `OpDef.kernel`, and return the same."""

    cuda: str | None = None
    """The launcher of CUDA kernels, named as `launcher` of `backend/cupy_/launchers` has it; see `OpDef.call`."""

    rows: RowRule | None = None
    """The kernels for SelectedRows."""

    numpy: Callable[..., Any] | None = None
    """A faster kernel for arrays of NumPy, where results have sizes that only the data know, so that plans cannot have
    a native kernel."""


@dataclass(eq=False, repr=False)
class OpDef:
    """The one declaration of an operator type; docs/add_an_operator.md has examples."""

    type: str
    """The name of the operator in programs: Fluid's own, where Fluid has the operator."""

    inputs: tuple[str, ...] = ()
    """The input slots, with their marks; see `Slot`."""

    outputs: tuple[str, ...] = ("Out",)
    """The output slots, in the order of the kernel's results."""

    attrs: dict[str, Any] = field(default_factory=dict)
    """The attributes with their defaults; an `Attr` where the default does not show the type."""

    infer: Callable[[OpView], None] | None = None
    """Sets shapes and element types of the outputs, or raises `OpView.fail`."""

    kernel: Callable[..., Any] | None = None
    """The reference kernel: `kernel(xp, **slots, **attrs)` with those slots and attributes that it names."""

    grad: Callable[[OpView], list[OpSpec]] | None = None
    """The gradient rule: the operators that compute the gradients; see `standard_grad`."""

    no_grad: tuple[str, ...] = ()
    """Input and output slots that have no gradient, as those of indices."""

    native: Callable[[OpView], Call | list[Call] | None] | None = None
    """Chooses the native kernel for the shapes and types of a plan; None: the plan calls the reference kernel."""

    dispatch: Dispatch = Dispatch()
    """Other kernels: on GPUs, for SelectedRows."""

    sequences: Sequences = Sequences()
    """The sequences that the outputs have."""

    effects: Effects = Effects()
    """Side effects."""

    planning: Planning = Planning()
    """Facts for plans: views, copies, patterns."""

    doc: str = ""
    """The computation, in one or two sentences."""

    def __post_init__(self) -> None:
        self.attr_types = {name: value.type for name, value in self.attrs.items() if isinstance(value, Attr)}
        defaults = {name: v.default if isinstance(v, Attr) else v for name, v in self.attrs.items()}
        self.attrs = {name: attribute(value) for name, value in defaults.items()}
        self.input_slots = tuple(Slot.parse(text) for text in self.inputs)
        self.output_slots = tuple(Slot.parse(text) for text in self.outputs)
        self.inputs_by_name = {slot.name: slot for slot in self.input_slots}
        self.outputs_by_name = {slot.name: slot for slot in self.output_slots}
        self.required = tuple(slot.name for slot in self.input_slots if not slot.optional)
        self.shape_only = frozenset(slot.name for slot in self.input_slots if slot.shape_only)
        self.slots = {**self.inputs_by_name, **self.outputs_by_name}
        source, rule = self.sequences.source, self.dispatch.rows
        self._lod_sources = {} if callable(source) else self._sources(source)
        self._takes = self._parameters(self.kernel)
        self.hosted: bool = getattr(self.kernel, "hosted", False)
        self._rows_takes = self._parameters(rule.kernel) if rule is not None else self._takes
        self._takes_lod = self.sequences.takes_lod
        self._computes = not (self.effects.host or self.effects.updates or self.planning.view)
        # Whether a kernel computes the results from inputs and attributes alone, and nothing else happens.
        acts = self.effects.control or self.effects.random or self.effects.host or self.effects.updates
        self.is_pure = self.kernel is not None and not acts

    def lod_sources(self, op: OpView) -> dict[str, str]:
        """Output slots with the input slots whose sequences they have, if they have as many rows; {} if `takes_lod`.

        `Sequences.source` names the input slot for all outputs, or the output slots with an input slot each. Of several
        variables the first counts, or all one after the other if the name ends with `*`. None: no sequences. A function
        of the operator returns one of these where attributes matter. FIRST, the default: the first input slot; for each
        gradient the variable whose gradient it is, or else what remembers its shape, or the gradient that arrives.
        """
        source = self.sequences.source
        return self._sources(source(op)) if callable(source) else self._lod_sources

    def _sources(self, source: LodFrom) -> dict[str, str]:
        if isinstance(source, dict):
            return source
        if source is None or self.sequences.takes_lod or not self.inputs:
            return {}
        made = [slot.name for slot in self.output_slots]
        if source == FIRST and self.type.endswith("_grad"):
            arriving = ["XShape", *(slot.name for slot in self.input_slots if slot.name.endswith(GRAD))]
            other = next((name for name in arriving if name in self.inputs_by_name), None)
            own = {name: name.removesuffix(GRAD) for name in made}
            found = {name: slot if slot in self.inputs_by_name else other for name, slot in own.items()}
            return {name: slot for name, slot in found.items() if slot is not None}
        return dict.fromkeys(made, source or self.input_slots[0].name)

    def _parameters(
        self, kernel: Callable[..., Any] | None
    ) -> tuple[tuple[tuple[str, str, bool], ...], tuple[tuple[str, str], ...]]:
        """The slots and attributes that a kernel takes, each with its keyword; all attributes if it has `**attrs`."""
        code = getattr(kernel, "__code__", None)
        named = set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) if code else set()
        every = bool(code and code.co_flags & inspect.CO_VARKEYWORDS)
        taken = [*self.input_slots, *(self.outputs_by_name[name] for name in self.effects.updates)]
        slots = [(slot.name, keyword(slot.name), slot.many) for slot in taken]
        attrs = [(name, keyword(name)) for name in self.attrs]
        return tuple(s for s in slots if s[1] in named), tuple(a for a in attrs if every or a[1] in named)

    @property
    def has_gradient(self) -> bool:
        """Whether gradients go through operators of this type."""
        return self.grad is not None and self.grad is not no_second_derivative

    def call(
        self,
        xp: Any,
        inputs: dict[str, list[Any]],
        attrs: dict[str, Any],
        lods: dict[str, list[Any]] | None = None,
        device: CudaDevice | None = None,
        wanted: Collection[str] | None = None,
        on_numpy: bool = False,
    ) -> list[Any]:
        """Run the reference kernel: lists of arrays by input slot in, one result (or None) per output slot out.

        Slot `X` arrives as keyword `X`, slot `Out@GRAD` as `Out_grad`; lists for list slots, None for missing ones.
        SelectedRows are made dense unless the operator has a rule for them. NumPy's float16 arrives as float32, and
        results may be that.
        A result is an array, a `LodArray`, or a list of them for a list slot.

        With `on_numpy` all arrays are NumPy's, and `Dispatch.numpy` is called if there is one.

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
        if on_numpy and self.dispatch.numpy is not None:
            kernel = self.dispatch.numpy
        if kernel is None:
            raise NotSupportedError(f"operator {self.type} has no kernel")
        if device is not None and self.hosted:
            from .host_fallback import call_on_host

            return call_on_host(self, inputs, attrs, lods, device)
        rule = self.dispatch.rows
        if rule is not None and self._by_rows(rule, inputs, attrs):
            kernel, (slots, words) = rule.kernel, self._rows_takes
        elif _sparse(inputs):
            inputs = {name: [as_dense(value, xp) for value in given] for name, given in inputs.items()}
        if xp is np and self._computes:
            inputs = _in_single(inputs)
        arguments = self._arguments(inputs, attrs, slots, words)
        if self._takes_lod:
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
            return self.dispatch.cuda
        rule = self.dispatch.rows
        return rule.cuda if rule is not None and self._by_rows(rule, inputs, attrs) else None

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


def no_second_derivative(op: OpView) -> list[OpSpec]:
    raise op.fail("has no gradient of its own, so that second derivatives cannot go through it")
