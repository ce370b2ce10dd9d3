"""`Tape`: one pass over the operators of a block in reverse, which collects and appends their gradient operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...base.dtypes import FLOATS, VarType
from ...ops.kernel_types import gradient_kinds
from ...ops.registry import EMPTY, GRAD, OpSpec, find, grad_name
from ..block import Block
from ..operator import Operator
from ..variable import Parameter, Variable
from . import blocks as backward_blocks
from .recompute import Segment
from .versions import Versions, changes_nothing, counts


class Tape:
    """One pass over the operators of `block` in reverse, collecting the gradient operators to append to `home`.

    `home` is the block itself, or, for the block of an operator `at` that the pass `outer` has come to, a new one; of a
    pass that begins inside of a branch, which goes on through the blocks around it, the one for the branch's gradients.
    """

    def __init__(
        self,
        block: Block,
        no_grad: set[str],
        outer: Tape | None = None,
        at: Operator | None = None,
        home: Block | None = None,
    ) -> None:
        self.block = block
        self.no_grad = no_grad
        self.outer = outer
        self.home: Block = block if home is None else home
        if outer is not None:
            self.home = gradient_block(block, outer.home)
        self.versions: Versions = Versions(block, outer.versions if outer is not None else None, at)
        self.specs: list[OpSpec] = []
        self.contributions: dict[
            str, list[tuple[OpSpec | None, str, int]]
        ] = {}  # gradient -> where it is written
        self.grads: dict[str, str] = {}  # variable -> its gradient
        self.last: dict[str, str] = {}  # the same for overwritten values, whose gradients have been used
        self.arrived: dict[str, str] = {}  # the same for variables that the current operator overwrites
        self.given: dict[str, str] = {}  # variable -> its initial gradient, before contributions
        self.passed: set[str] = (
            set()
        )  # variables with a gradient of the outer tape when the block ends, and when it begins
        self.repeated: dict[str, str] = {}  # variable -> the recomputed one to read
        self.second: set[str] = set()  # variables that a gradient operator reads of its forward one
        self.before: set[Operator] = set()  # operators that only compute sources of the pass
        self.renamed: dict[str, str] = {}  # usual name of a gradient -> the one it has in this pass

    def wants(self, name: str) -> bool:
        """Whether variable `name` may have a gradient."""
        return self._may(name) in FLOATS

    def _may(self, name: str) -> VarType | None:
        """The type of variable `name`, unless it is declared to have no gradient or not to be trained."""
        var = self.home._find_var_recursive(name)
        if var is None or var.stop_gradient or name in self.no_grad:
            return None
        return var.dtype if getattr(var, "trainable", True) else None

    def _is_second(self, name: str, op: Operator) -> bool:
        """Whether `name` is an output without gradients that `op` reads as gradient operator of its producer."""
        var = self.block._find_var_recursive(name)
        source = var.op if var is not None else None
        return source is not None and op.type == source.type + "_grad" and name in _without_gradient(source)

    def _wants(self, name: str, op: Operator) -> bool:
        """Whether variable `name` may have a gradient through `op`."""
        kind = self._may(name)
        if kind is not None and kind in gradient_kinds(op.type):
            return kind in FLOATS or not self.is_array(name)
        return self._is_second(name, op) and name not in self.no_grad

    def path(
        self, targets: list[str], sources: list[str] | None, ops: list[Operator] | None = None
    ) -> list[Operator]:
        """The operators, of the block or `ops`, on paths from `sources` (None: all) to `targets`, in order."""
        ops = self.block.ops if ops is None else ops
        if sources is not None:
            reached = set(sources)
            forward = []
            for op in ops:
                if reached.intersection(op.input_arg_names):
                    stop_gradient = _without_gradient(op)
                    reached.update(n for n in op.output_arg_names if self._wants(n, op) or n in stop_gradient)
                    forward.append(op)
                elif not reached.isdisjoint(op.output_arg_names):
                    forward.append(op)  # the overwritten value has no effect on later operators
                    self.before.add(op)
            ops = forward
        needed = set(targets)
        found = []
        for op in reversed(ops):
            if needed.intersection(op.output_arg_names):
                found.append(op)
                needed.update(name for name in op.input_arg_names if name not in self.no_grad)
        return found[::-1]

    def is_array(self, name: str) -> bool:
        var = self.home._find_var_recursive(name)
        return var is not None and var.type == VarType.LOD_TENSOR_ARRAY

    def fresh(self, name: str) -> str:
        """The name a gradient gets: its usual one, or a prefixed one if an earlier pass has taken it.

        Gradients that belong to the block of another operator are declared here.
        """
        if self.outer is not None:
            return self._fresh_inside(name)
        if name not in self.renamed:
            taken = self.home._find_var_recursive(name) is not None
            self.renamed[name] = "grad/" * self.block.program._appending_grad_times + name if taken else name
        return self.renamed[name]

    def _fresh_inside(self, name: str) -> str:
        var = name.removesuffix(GRAD)
        if self.outer is not None and self.is_array(var) and var not in self.block.vars:
            gradient = self.outer.fresh(name)  # an array's gradient is one for all blocks, and added to
            self.outer.declare(gradient, var)
            return gradient
        if var not in self.passed and name not in self.home.vars:
            self._create(self.home, name, var)
        return name

    def declare(self, gradient: str, var: str) -> None:
        """Make sure that a gradient of `var` is declared, where gradients of this pass are or around."""
        if self.home._find_var_recursive(gradient) is None:
            self._create(self.home, gradient, var)

    def _create(self, block: Block, gradient: str, var: str) -> None:
        like = self.home._find_var_recursive(var)
        if like is None:
            block.create_var(name=gradient)
        else:
            block.create_var(
                name=gradient, type=like.type, shape=like.shape, dtype=like.dtype, lod_level=like.lod_level
            )

    def have(self, var: str, gradient: str) -> None:
        self.grads[var] = gradient

    def give(self, var: str, gradient: str) -> None:
        """Set an initial gradient of a variable's last value."""
        self.have(var, gradient)
        if not self.is_array(var):
            self.given[var] = gradient

    def temporary(self, name: str, dtype: VarType) -> str:
        if self.block._find_var_recursive(name) is None:
            self.block.create_var(name=name, dtype=dtype)
        return name

    def emit(self, spec: OpSpec) -> None:
        self.specs.append(spec)

    def run(self, parts: list[Segment]) -> None:
        """Collect the gradient operators of the segments `parts` of a path, whose final gradients are set."""
        for part in reversed(parts):
            self.specs += part.recomputed
            self.repeated = part.names
            if part.ops and part.ops[0].block is not self.versions.block:
                self.versions = Versions(part.ops[0].block)
            self._run_segment(part.ops)
        for gradient in list(self.contributions):
            self._settle(gradient)

    def _run_segment(self, ops: list[Operator]) -> None:
        for op in reversed(ops):
            if changes_nothing(op):
                continue
            if counts(op):
                self._count_back(op)
                continue
            self.arrived = self._used(op)
            available = any(self.available(name) for name in op.output_arg_names)
            reads = op not in self.before and any(self._wants(name, op) for name in op.input_arg_names)
            if available and (reads or self._takes_out(op)):
                if op.definition.grad is not None:
                    self._differentiate(op)
                elif op.definition.effects.control:
                    self._differentiate_block(op)
            elif available and op.definition.grad is not None and op not in self.before:
                self._end(op)

    def _end(self, op: Operator) -> None:
        """Sum the gradients of the outputs of `op`, where they end, as Fluid does."""
        for name in op.output_arg_names:
            gradient = self.grads.get(name)
            if gradient is not None:
                self._settle(gradient)

    def _takes_out(self, op: Operator) -> bool:
        """Whether `op` changes existing gradients of its outputs, even if none of its inputs has one.

        It does if it overwrites an element of an array, or a variable in a block that may not run.
        """
        if op.sub_blocks():
            known = (name for name in op.output_arg_names if self.available(name))
            return op.definition.effects.may_skip and any(
                name in self.arrived or self.is_array(name) for name in known
            )
        return op.definition.planning.pattern == "write" and not self.versions.first(op, op.outputs["Out"][0])

    def _count_back(self, op: Operator) -> None:
        """Undo an increment in place; its gradient passes unchanged."""
        (name,) = op.inputs["X"]
        var = self.home._var_recursive(name)
        if self.outer is not None:
            if not self.versions.counted_back(name):
                return
        elif var.persistable or (var.dtype in FLOATS and not var.stop_gradient):
            return
        back = {"step": -op.attr("step")}
        self.emit(OpSpec("increment", {"X": [name]}, {"Out": [name]}, back))
        self.versions.undo(op, name)

    def _used(self, op: Operator) -> dict[str, str]:
        """The gradients of values that `op` has put in place of others, which do not have them."""
        used = {}
        for name in op.writes():
            if name in self.versions.replaced and name in self.grads:
                self._settle(self.grads[name])
                self.given.pop(name, None)
                used[name] = self.last[name] = self.grads.pop(name)
        return used

    def available(self, name: str) -> bool:
        """Whether variable `name` as the current operator wrote it has a gradient."""
        return name in self.grads or name in self.arrived

    def _differentiate_block(self, op: Operator) -> None:
        gradient = backward_blocks.GRADIENTS.get(op.type)
        if gradient is None:
            raise op.view().fail("has no gradient yet")
        gradient(self, op)

    def _differentiate(self, op: Operator) -> None:
        assert op.definition.grad is not None
        outputs = {grad_name(name): name for name in op.output_arg_names}
        inputs = {grad_name(name): name for name in op.input_arg_names}
        for spec in op.definition.grad(op.view()):
            gives: dict[str, list[str]] = {}
            kept: list[tuple[str, int, str]] = []
            for slot, names in sorted(spec.outputs.items()):
                wanted = [
                    (i, n) for i, n in enumerate(names) if n not in inputs or self._wants(inputs[n], op)
                ]
                if wanted and len(wanted) < len(names) and len(names) > 1:
                    # A list keeps its length, so that each place still belongs to its input.
                    gives[slot] = [
                        self._ignored(n) if n in inputs and not self._wants(inputs[n], op) else n
                        for n in names
                    ]
                elif wanted:
                    gives[slot] = [n for _, n in wanted]
                if wanted:
                    kept += [(slot, i if len(names) > 1 else 0, n) for i, n in wanted]
            changed = find(spec.type).effects.updates
            asked = any(n in inputs or slot not in changed for slot, _, n in kept)
            if not asked and self._takes_out(op):
                gives = {slot: [self._ignored(n) for n in names] for slot, names in spec.outputs.items()}
            elif not asked or not self._arrives(op, spec, outputs):
                continue
            for name in (n for names in spec.inputs.values() for n in names if n in outputs):
                gradient = self._gradient(outputs[name])
                if gradient is not None:  # Fluid has the sums of all of them in front of zeros
                    self._settle(gradient)
            takes = {
                slot: [self._incoming(n, outputs, op, slot) for n in names]
                for slot, names in spec.inputs.items()
            }
            made = OpSpec(
                spec.type, takes, gives, {k: v for k, v in spec.attrs.items() if not k.startswith("op_")}
            )
            self.specs.append(made)
            for slot, index, name in kept:
                if name in inputs:
                    self._contribute(inputs[name], name, made, slot, index)
                    if self._is_second(inputs[name], op):
                        self.second.add(inputs[name])

    def _arrives(self, op: Operator, spec: OpSpec, outputs: dict[str, str]) -> bool:
        """Whether a gradient operator has anything to do: it reads no gradient of an output, or one there is.

        Outputs that are declared without gradients (a loss's softmax) have none, whatever was computed from them,
        except from their own gradient operator: second derivatives go through them.
        """
        stop_gradient = _without_gradient(op)
        read = [outputs[n] for names in spec.inputs.values() for n in names if n in outputs]
        return not read or any(
            self.available(name) and (name not in stop_gradient or name in self.second) for name in read
        )

    def _ignored(self, name: str) -> str:
        ignored = name + "@IGNORED"
        base = self.block._var_recursive(name.split(GRAD)[0])
        if self.home._find_var_recursive(ignored) is None:
            self.home.create_var(name=ignored, shape=base.shape, dtype=base.dtype, stop_gradient=True)
        return ignored

    def _incoming(self, name: str, outputs: dict[str, str], op: Operator, slot: str) -> str:
        """The variable to read for input `name` of a gradient operator of `op`."""
        if name in outputs:
            return self.arriving(op, outputs[name])
        if name in self.repeated:
            return self.repeated[name]
        after = name not in op.input_arg_names or (
            name in op.outputs.get(slot, ()) and name not in op.inputs.get(slot, ())
        )
        return self.versions.value(op, name, after)

    def _gradient(self, var: str) -> str | None:
        """The gradient of a variable as the current operator wrote it, if there is one."""
        return self.arrived.get(var) or self.grads.get(var)

    def arriving(self, op: Operator, var: str) -> str:
        """The gradient of an output of `op`; zeros if it has none."""
        gradient = self._gradient(var)
        if gradient is not None:
            self._settle(gradient)
            return gradient
        zeros = self.fresh(grad_name(var))
        if self.is_array(var):  # empty until something is written
            self.declare(zeros, var)
            self.have(var, zeros)
            return zeros
        value = self.repeated.get(var) or self.versions.value(op, var, after=True)
        self.emit(OpSpec("fill_zeros_like", {"X": [value]}, {"Out": [zeros]}))
        self.have(var, zeros)
        return zeros

    def _contribute(self, var: str, usual: str, spec: OpSpec, slot: str, index: int) -> None:
        gradient = self.fresh(usual)
        spec.outputs[slot][index] = gradient
        self.have(var, gradient)
        if not self.is_array(var):  # writes into an array's gradient accumulate
            places = self.contributions.setdefault(gradient, [])
            if var in self.given:
                places.append((None, self.given.pop(var), 0))
            places.append((spec, slot, index))

    def _settle(self, gradient: str) -> None:
        """Sum the contributions to `gradient`, if there are several."""
        places = self.contributions.pop(gradient, [])
        if len(places) < 2:
            return
        parts = []
        for number, (spec, slot, index) in enumerate(places):
            if spec is None:
                part = slot
            else:
                part = f"{gradient}@RENAME@block{self.block.idx}@{number}"
                spec.outputs[slot][index] = part
            parts.append(part)
        self.emit(OpSpec("sum", {"X": parts}, {"Out": [gradient]}))

    def append(self, callbacks: Sequence[Callable[..., Any]] | None = None) -> None:
        """Append the collected operators to the block, with their variables."""
        owner = {gradient: var for var, gradient in (*self.last.items(), *self.grads.items())}
        for spec in self.specs:
            for slot, names in spec.outputs.items():
                for name in names:
                    if name == EMPTY or self.home._find_var_recursive(name) is not None:
                        continue
                    var = self.home._find_var_recursive(owner.get(name, ""))
                    kind = VarType.LOD_TENSOR
                    if var is not None and var.type == VarType.LOD_TENSOR_ARRAY:
                        kind = var.type
                    self.home.create_var(name=name, type=kind, lod_level=self._lod_level(spec, slot))
            op = self.home.append_op(
                type=spec.type, inputs=spec.inputs, outputs=spec.outputs, attrs=spec.attrs
            )
            for callback in callbacks or ():
                callback(block=self.home, context={"op": op})

    def name_parameters(self, pairs: Iterable[tuple[Parameter, Variable]]) -> None:
        """Name the gradients of parameters, last ones first, in `op_role_var` of their operators."""
        makers = {name: op for op in self.home.ops for name in op.output_arg_names}
        for param, gradient in pairs:
            op = makers.get(gradient.name)
            if op is not None:
                op._set_attr("op_role_var", [param.name, gradient.name, *(op.attr("op_role_var") or ())])

    def _lod_level(self, spec: OpSpec, slot: str) -> int:
        names = spec.inputs.get(slot.removesuffix(GRAD))
        var = self.home._find_var_recursive(names[0]) if names else None
        return var.lod_level if var is not None else 0

    def gradient_of(self, name: str) -> Variable | None:
        """The gradient of variable `name` that this pass made, or None."""
        gradient = self.grads.get(name) or self.last.get(name)
        return self.home._find_var_recursive(gradient) if gradient is not None else None

    # Interface for `backward_blocks`: gradients of operators that run blocks.

    def into(self, block: Block, op: Operator) -> Tape:
        """A tape for the block of `op`, with a new block for its gradients."""
        return Tape(block, self.no_grad, self, op)

    def carried(self, known: Iterable[str], candidates: Iterable[str]) -> set[str]:
        """The outer variables that need a gradient at the end of a block that iterates.

        Those in `known`, and those of the `candidates` (which the block writes) that the next iteration computes one
        of these from.
        """
        needed = set(known)
        possible = {name for name in candidates if self.wants(name)}
        while True:
            read = {name for op in self.path(list(needed), None) for name in op.reads()}
            more = (read & possible) - needed
            if not more:
                return needed
            needed |= more

    def begin(self, names: Iterable[str]) -> None:
        """Set the outer variables that have gradients when the block ends, under their usual names."""
        assert self.outer is not None
        for name in names:
            gradient = grad_name(name)
            if self.is_array(name):
                gradient = self.fresh(gradient)
            else:
                self.outer.fresh(gradient)
                self.outer.declare(gradient, name)
                self.passed.add(name)
            self.give(name, gradient)

    def run_block(self) -> None:
        """Collect the gradients of all operators of the block and append them."""
        ops = list(self.block.ops)
        path = {id(op) for op in self.path(list(self.grads), None)}
        self._run_segment([op for op in ops if id(op) in path or counts(op)])
        for name in sorted(self.passed - self.grads.keys()):
            # The block overwrites the variable without reading it.
            gradient = grad_name(name)
            value = self.versions.value(ops[0], name) if self.versions.has_value(name) else gradient
            self.emit(OpSpec("fill_zeros_like", {"X": [value]}, {"Out": [gradient]}))
            self.have(name, grad_name(name))
        for gradient in list(self.contributions):
            self._settle(gradient)
        self.append()

    def counted(self, op: Operator, inner: Tape) -> None:
        """Note the counters that the gradient of `op` restores to their values before `op`."""
        for name in op.writes():
            if inner.versions.writes(name) and inner.versions.counted_back(name):
                self.versions.undo(op, name)

    def declare_arrays(self) -> None:
        """Declare the gradients of outer arrays in the block, too, where Fluid looks for them in each iteration."""
        for name, gradient in self.grads.items():
            if self.is_array(name) and name not in self.block.vars and gradient not in self.home.vars:
                self._create(self.home, gradient, name)

    def receive(self, names: Iterable[str]) -> None:
        """Set the variables of the block that have gradients when it ends, which its caller writes."""
        for name in names:
            if self.wants(name):
                self.give(name, grad_name(name))

    def take(self, spec: OpSpec, slots: Iterable[str] = ("X",)) -> None:
        """Add a gradient operator whose `X@GRAD` are in the order of its `X`, and so for all `slots`."""
        self.specs.append(spec)
        for slot in sorted(slots):
            given = grad_name(slot)
            for index, (name, gradient) in enumerate(
                zip(spec.inputs.get(slot, ()), spec.outputs[given], strict=True)
            ):
                if gradient != EMPTY:
                    self._contribute(name, grad_name(name), spec, given, index)


def gradient_block(block: Block, parent: Block) -> Block:
    """A new block for the gradients of `block`, nested in the one for the gradients of its parent."""
    program = block.program
    current = program.current_block_idx
    result = program._create_block(parent.idx)
    program.current_block_idx = current
    result._set_forward_block_idx(block.idx)
    return result


def _without_gradient(op: Operator) -> set[str]:
    """The outputs of `op` that are declared to have no gradient."""
    return {name for slot in op.definition.no_grad for name in op.outputs.get(slot, [])}
