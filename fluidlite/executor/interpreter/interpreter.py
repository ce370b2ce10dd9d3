"""Runs a program operator by operator with the reference kernels.

Plans are tested against it (`FLUIDLITE_ENGINE=interpret`). On a GPU it runs programs that cannot be planned; on the
host these are partitioned into segments (`segmented.py`), and it runs only the fallback operators.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend import record, to_host
from ...backend.cupy_ import library
from ...base.dtypes import FLOATS, VarType, to_numpy, to_vartype
from ...base.lod import Lod
from ...base.reports import profiling
from ...base.selected_rows import SelectedRows, as_dense
from ...base.tensor_array import TensorArray
from ...framework import Block, Operator, Program, sequences
from ...framework.operator import BlockMeta
from ...ops import kernel_types
from ...ops.registry import LodArray, OpView, Shape
from ...ops.tensor.gather import ROWS, VALUES
from .. import failures
from ..cuda import launch as device_launch
from ..feeding import Feed, placed
from ..ir.inference import declared_type
from ..ir.legalization import check_finite, checked_results
from ..lod_tensor import LoDTensor, LoDTensorArray
from ..scope import Scope
from .control import control_function
from .frame import Frame, RunContext

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


class RetypedMeta(BlockMeta):
    """The `Meta` of an operator with inputs of other element types than declared.

    `actual`: the types of these inputs; `inferred`: those of the outputs.
    """

    __slots__ = ("actual", "inferred")
    building = False

    def __init__(self, block: Block, actual: dict[str, VarType]) -> None:
        super().__init__(block)
        self.actual = actual
        self.inferred: dict[str, VarType] = {}

    def declared(self, name: str) -> VarType:
        return super().dtype(name)

    def dtype(self, name: str) -> VarType:
        return self.actual[name] if name in self.actual else super().dtype(name)

    def set(self, name: str, shape: Shape, dtype: VarType) -> None:
        self.inferred[name] = dtype


class RunMeta(BlockMeta):
    """The `Meta` of an operator on the values of a frame; ignores inferred outputs."""

    __slots__ = ("frame",)
    building = False

    def __init__(self, block: Block, frame: Frame) -> None:
        super().__init__(block)
        self.frame = frame

    def shape(self, name: str) -> Shape:
        return _shape(self.frame.find(name))

    def value(self, name: str) -> np.ndarray | None:
        value = self.frame.find(name)
        return None if value is None else to_host(value)

    def set(self, name: str, shape: Shape, dtype: VarType) -> None:
        pass


def _shape(value: Any) -> Shape:
    """The shape of an array or of SelectedRows, () for anything else."""
    return getattr(value, "shape", ())


def _is_part(value: Any, inputs: dict[str, list[Any]]) -> bool:
    """True if a result may share memory with an operand."""
    if getattr(value, "base", None) is not None:
        return True
    return any(value is array for arrays in inputs.values() for array in arrays)


class Interpreter:
    """One run of a program, operator by operator; `frame` holds the temporaries of the global block.

    Args:
        device: the device that computes, to which feeds and variables of the scope are copied; None for the host.
        check_finite: whether results with NaN or infinities are refused.
    """

    def __init__(
        self,
        program: Program,
        scope: Scope,
        feed: Feed,
        device: CudaDevice | None = None,
        check_finite: bool = False,
    ) -> None:
        self.program = program
        self.check_finite = check_finite
        self.scope = scope
        self.device = device
        self.frame = Frame(program.global_block(), context=RunContext(scope, device, feed))
        self.xp: Any = self.frame.context.xp
        written = written_arrays(program, scope) if feed else ()
        for name, (array, lod) in placed(feed, device).items():
            if isinstance(array, np.ndarray) and any([np.may_share_memory(array, each) for each in written]):
                array = array.copy()  # the program may write the variable that shares its memory
            self.frame.keep(name, array, lod)

    @property
    def values(self) -> dict[str, Any]:
        """The values of the variables of the global block."""
        return self.frame.values

    def _active(self) -> AbstractContextManager[Any]:
        """A context in which the run's device is current."""
        return nullcontext() if self.device is None else self.device.active()

    def run(self, part: Any = None) -> None:
        """Run the operators of the global block, or those of `part`, on the current values."""
        self.run_each(self.program.global_block().ops if part is None else part)

    def run_block(self, block: Block, frame: Frame) -> None:
        for op in block.ops:
            self.run_operator(op, frame)

    def run_each(self, ops: Iterable[Operator]) -> None:
        """Run operators of the global block one by one."""
        with self._active(), np.errstate(all="ignore"):  # infinities and NaNs are results like any other
            for op in ops:
                self.run_operator(op, self.frame)

    def run_operator(self, op: Operator, frame: Frame) -> None:
        """Run an operator; with `check_finite`, raise EnforceNotMet after its results have been stored."""
        if op.definition.effects.control:
            control_function(op.type)(self, op, frame)
            return
        recorder = profiling.active
        begin = 0 if recorder is None else time.perf_counter_ns()
        self.run_op(op, frame)
        if recorder is not None:
            record(recorder, op.type, begin, time.perf_counter_ns(), self.device)
        if self.check_finite:
            for name in checked_results(op):
                check_finite(op, name, frame.find(name), self.xp)

    def run_op(self, op: Operator, frame: Frame) -> None:
        """Run the kernel of an operator on the values of its inputs."""
        definition = op.definition
        if definition.kernel is None:
            if definition.effects.host:
                return  # reader operators: the executor has already taken their batch
            raise failures.in_operator(op, NotImplementedError(f"operator {op.type} cannot be run"))
        get = frame.get
        inputs = {
            slot: [get(name, op) for name in names]
            for slot, names in op.inputs.items()
            if names and not (slot in definition.effects.uninitialized and frame.find(names[0]) is None)
        }
        lods = None
        if definition.sequences.takes_lod:
            lods = {slot: [frame.lod_of(name) for name in names] for slot, names in op.inputs.items()}
        args = inputs
        if definition.effects.updates:
            present = {slot: op.outputs.get(slot, []) for slot in definition.effects.updates}
            args = {
                **inputs,
                **{s: [frame.find(name) for name in names] for s, names in present.items()},
            }
        try:
            types, shape_only = self._types(op, inputs, frame) if inputs else ({}, {})
            args = args | shape_only if shape_only else args
            if self.device is None:
                results = definition.call(np, args, op.attrs, lods)
            else:
                with library.errors(f"operator {op.type}"):
                    results = device_launch.call(op, args, self.device, lods)
        except Exception as error:
            if self.device is not None and isinstance(error, MemoryError):
                raise
            failures.raise_in_operator(op, error)
        kept = {}
        for one in self._kept(op, frame) if inputs else ():
            source = frame.lod_of(one.source)
            if source:
                levels = [source, *map(frame.lod_of, one.others)]
                kept[one.out] = one, levels, _shape(frame.find(one.source))
        for name, value in op._named(results):
            if type(value) is not TensorArray and _is_part(value, inputs) and _reads_scope(op, frame):
                value = self.xp.array(value)  # a later operator may overwrite the variable of the scope
            lod: Lod = ()
            if name in kept:
                one, levels, shape = kept[name]
                lod = one.lod(levels, _shape(value), shape)
            exact = to_numpy(types[name]) if name in types else None
            self._store(op, frame, name, value, lod, exact)

    def _kept(self, op: Operator, frame: Frame) -> list[sequences.Kept]:
        """The outputs that inherit LoD, and their sources; cached unless that depends on values."""
        if not callable(op.definition.sequences.source):
            return sequences.remembered(op)
        return sequences.kept(self._view(op, frame))

    def _view(self, op: Operator, frame: Frame) -> OpView:
        """An operator with the values of its variables."""
        return OpView(op.definition, op.inputs, op.outputs, op.attrs, RunMeta(op.block, frame))

    def _store(
        self, op: Operator, frame: Frame, name: str, value: Any, lod: Lod, exact: np.dtype | None
    ) -> None:
        """Store a result of `op` in the type `exact`, or else in the kernel's.

        A float result of more than the declared precision is rounded. Other declared types are ignored, as in Fluid.
        """
        if type(value) is LodArray:
            value, lod = value.array, value.lod
        if value is not None and type(value) not in (SelectedRows, TensorArray):
            var = op.block._find_var_recursive(name)
            if var is not None and var.type == VarType.LOD_TENSOR:
                value = self.xp.asarray(value, dtype=exact)
                if exact is None and var._dtype in FLOATS and value.dtype.kind == "f":
                    declared = to_numpy(var._dtype)
                    value = value.astype(declared) if value.dtype.itemsize > declared.itemsize else value
        frame.put(name, value, lod)

    def _types(
        self, op: Operator, inputs: dict[str, list[Any]], frame: Frame
    ) -> tuple[dict[str, VarType], dict[str, list[Any]]]:
        """If an input of `op` has another element type than declared: the types of the outputs.

        Then also the inputs of which a gradient operator needs only the shape, converted to the type of the gradients.
        """
        kinds = tuple([getattr(array, "dtype", None) for arrays in inputs.values() for array in arrays])
        as_declared = op.block.program._derived(_as_declared)[op]
        if kinds in as_declared:
            return {}, {}
        names = [name for slot in inputs for name in op.inputs[slot]]
        retyped = {}
        for name, kind in zip(names, kinds, strict=True):
            declared = declared_type(op, name)
            if kind is not None and declared is not None and declared != kind:
                retyped[name] = to_vartype(kind)
        if not retyped:
            if len({*kinds}) > 1 and op.definition.infer is not None and not op.type.endswith("_grad"):
                op.definition.infer(self._view(op, frame))  # raises for operands that must be of one type
            as_declared.add(kinds)
            return {}, {}
        meta = RetypedMeta(op.block, retyped)
        view = OpView(op.definition, op.inputs, op.outputs, op.attrs, meta)
        kind, several = kernel_types.check(view, meta.declared)
        if op.type.endswith("_grad") and kind is not None:
            slots = kernel_types.shape_only_slots(op.type).intersection(inputs) if several else ()
            converted = {slot: [array.astype(to_numpy(kind)) for array in inputs[slot]] for slot in slots}
            return dict.fromkeys(op.output_arg_names, kind), converted
        if op.definition.infer is not None:
            op.definition.infer(view)
        return meta.inferred, {}

    def fetch(self, name: str) -> LoDTensor | LoDTensorArray:
        """A dense copy of the value of a variable; an unset tensor if it has none.

        Raises EnforceNotMet for a variable that the global block does not declare.
        """
        value = self.frame.find(name)
        if value is None:
            value = self._part(name)
        with self._active():
            if isinstance(value, TensorArray):
                return LoDTensorArray(self._fetched(*element) for element in value)
            if value is not None:
                return self._fetched(value, self.frame.lod_of(name))
        var = self.program.global_block().vars.get(name)
        if var is not None and var.type == VarType.LOD_TENSOR_ARRAY:
            return LoDTensorArray()
        if name in self.values or (var is not None and var.type == VarType.LOD_TENSOR):
            return LoDTensor()  # which a read beyond the end of an array sets, too
        raise failures.UnknownFetch(name, self.program)

    def _fetched(self, value: Any, lod: Lod) -> LoDTensor:
        if value is None:
            return LoDTensor()  # an element that was never written
        return LoDTensor.wrap(self.xp.array(as_dense(value, self.xp)), lod)

    def _part(self, name: str) -> Any:
        """An array of SelectedRows by its name in plans; None for other names."""
        for suffix, part in ((ROWS, "rows"), (VALUES, "values")):
            value = self.values.get(name.removesuffix(suffix))
            if name.endswith(suffix) and isinstance(value, SelectedRows):
                return getattr(value, part)
        return None


def written_arrays(program: Program, scope: Scope) -> list[np.ndarray]:
    """The arrays of the scope's variables that a program writes."""
    held = [var.get() for var in map(scope.find_var, program._derived(_written)) if var is not None]
    tensors = [tensor for tensor in held if isinstance(tensor, LoDTensor)]
    return [tensor.array for tensor in tensors if isinstance(tensor.array, np.ndarray)]


def _written(program: Program) -> list[str]:
    """The persistable variables that a program writes."""
    each = [(block, name) for block in program.blocks for op in block.ops for name in op.writes()]
    return [*dict.fromkeys(name for block, name in each if block._is_persistable(name))]


def _as_declared(program: Program) -> defaultdict[Operator, set[tuple[np.dtype | None, ...]]]:
    """By operator the combinations of input types that were found to match the declared ones; none at first."""
    return defaultdict(set)


def _reads_scope(op: Operator, frame: Frame) -> bool:
    """True if an input is a variable of the scope."""
    return any(frame.holder(name) is None for names in op.inputs.values() for name in names)
