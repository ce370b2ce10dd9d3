"""Reverse-mode differentiation of programs: `append_backward` and `gradients` (`fluid.backward`).

Each operator's declaration says which operators compute its gradients; this module decides which of them are needed,
adds up gradients that arrive from several places, and appends the lot to the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..base.dtypes import FLOATS, VarType
from ..base.errors import ArgumentAssertion, ArgumentError, ArgumentTypeError
from ..ops.registry import GRAD, OpSpec, grad_name
from .block import Block
from .operator import Operator, OpRole
from .recompute import Segment, seed_dropouts, segments
from .variable import Parameter, Variable


def append_backward(
    loss: Variable,
    parameter_list: Sequence[Parameter | str] | None = None,
    no_grad_set: Iterable[Variable | str] | None = None,
    callbacks: Sequence[Callable[..., Any]] | None = None,
    checkpoints: Sequence[Variable | str] | None = None,
) -> list[tuple[Parameter, Variable]]:
    """Append the operators that compute the gradients of `loss`, a variable of shape [1].

    Returns pairs of parameter and gradient, for `parameter_list` or all trainable parameters that `loss` depends on.
    Variables in `no_grad_set` and those with `stop_gradient` get none. `checkpoints`: of what comes before the last of
    these variables nothing else is kept for the backward pass; it is computed again there. Raises TypeError or
    ValueError for a `loss` that is not such a variable. Follows `fluid.backward.append_backward`.
    """
    if not isinstance(loss, Variable):
        raise ArgumentTypeError(
            f"The type of 'loss' in append_backward must be a Variable, got {type(loss).__name__}"
        )
    if loss.op is None:
        raise ArgumentAssertion(f"loss {loss.name!r} is not computed by an operator of its program")
    if loss.shape not in ((1,), ()):
        raise ArgumentAssertion(
            f"The loss.shape should be (1L,), but the current loss.shape is {loss.shape} for {loss.name!r}; "
            "reduce it with fluid.layers.mean or reduce_sum first"
        )
    program = loss.block.program
    program._appending_grad_times += 1
    block = program.global_block()
    if checkpoints:
        seed_dropouts(block.ops)
    loss.op._set_attr("op_role", OpRole.Forward | OpRole.Loss)
    with program._backward_role_guard():
        tape = _Backward(block, _names(no_grad_set))
        start = tape.fresh(grad_name(loss.name))
        fill = {
            "shape": [1],
            "value": 1.0,
            "dtype": int(loss.dtype),
            "op_role": OpRole.Backward | OpRole.Loss,
        }
        tape.emit(OpSpec("fill_constant", {}, {"Out": [start]}, fill))
        tape.have(loss.name, start)
        path = tape.path([loss.name], None)
        tape.run(segments(block, path, checkpoints) if checkpoints else [Segment(path)])
        tape.append(callbacks)
    if parameter_list is None:
        params = [p for p in program.all_parameters() if p.trainable]
    else:
        params = [_parameter(p, block) for p in parameter_list]
    pairs = []
    for param in params:
        found = tape.gradient_of(param.name)
        if found is not None:
            pairs.append((param, found))
    return pairs


def gradients(
    targets: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    target_gradients: Variable | Sequence[Variable | None] | None = None,
    no_grad_set: Iterable[Variable | str] | None = None,
) -> list[Variable | None]:
    """Append the operators that compute the gradients of the sum of `targets` with respect to `inputs`.

    `target_gradients` weigh the targets (None: ones). Returns one gradient per input, None where there is no path; an
    empty list for a single input without one. Raises ValueError if the weights do not match the targets. Follows
    `fluid.gradients`.
    """
    target_list = _variables(targets, "targets")
    input_list = _variables(inputs, "inputs")
    if target_gradients is None:
        weights: list[Variable | None] = [None] * len(target_list)
    else:
        weights = [target_gradients] if isinstance(target_gradients, Variable) else list(target_gradients)
    if len(weights) != len(target_list):
        raise ArgumentError(
            f"Should have the same number of target_gradients as targets: {len(weights)} and {len(target_list)}"
        )
    block = target_list[0].block
    program = block.program
    program._appending_grad_times += 1
    with program._backward_role_guard():
        tape = _Backward(program.global_block(), _names(no_grad_set))
        path = tape.path([v.name for v in target_list], [v.name for v in input_list])
        for target, weight in zip(target_list, weights, strict=True):
            if weight is not None:
                if weight.shape != target.shape and -1 not in (*weight.shape, *target.shape):
                    raise ArgumentError(
                        f"The shapes of target {target.name!r} and its gradient {weight.name!r} differ: "
                        f"{list(target.shape)} and {list(weight.shape)}"
                    )
                tape.have(target.name, weight.name)
            elif tape.wants(target.name):
                shape = tape.temporary(target.name + "_shape", VarType.INT32)
                tape.emit(OpSpec("shape", {"Input": [target.name]}, {"Out": [shape]}))
                start = tape.fresh(grad_name(target.name))
                fill = {"value": 1.0, "dtype": int(target.dtype), "shape": list(target.shape)}
                tape.emit(OpSpec("fill_constant", {"ShapeTensor": [shape]}, {"Out": [start]}, fill))
                tape.have(target.name, start)
        tape.run([Segment(path)])
        tape.append(None)
    found = [tape.gradient_of(var.name) for var in input_list]
    return [] if len(found) == 1 and found[0] is None else found


class _Backward:
    """One pass over the operators in reverse, collecting the gradient operators to append."""

    def __init__(self, block: Block, no_grad: set[str]) -> None:
        self.block = block
        self.no_grad = no_grad
        self.specs: list[OpSpec] = []
        self.contributions: dict[str, list[tuple[OpSpec, str, int]]] = {}  # gradient -> where it is written
        self.grads: dict[str, str] = {}  # variable -> its gradient
        self.repeated: dict[str, str] = {}  # variable -> the one to read, where it is computed again
        self.second: set[str] = set()  # what a gradient operator reads of its forward one
        self.renamed: dict[str, str] = {}  # usual name of a gradient -> the one it has in this pass

    def wants(self, name: str) -> bool:
        """Whether variable `name` may have a gradient."""
        var = self.block._find_var_recursive(name)
        return var is not None and not var.stop_gradient and name not in self.no_grad and var.dtype in FLOATS

    def _is_second(self, name: str, op: Operator) -> bool:
        """Whether `name` is an output without gradients that `op` reads as gradient operator of its producer."""
        var = self.block._find_var_recursive(name)
        source = var.op if var is not None else None
        return source is not None and op.type == source.type + "_grad" and name in _frozen(source)

    def _wants(self, name: str, op: Operator) -> bool:
        """Whether variable `name` may have a gradient that comes through `op`."""
        return self.wants(name) or (self._is_second(name, op) and name not in self.no_grad)

    def path(self, targets: list[str], sources: list[str] | None) -> list[Operator]:
        """The operators that lie between `sources` (or anything) and `targets`, in program order."""
        ops = self.block.ops
        if sources is not None:
            reached = set(sources)
            forward = []
            for op in ops:
                if reached.intersection(op.input_arg_names):
                    frozen = _frozen(op)
                    reached.update(n for n in op.output_arg_names if self.wants(n) or n in frozen)
                    forward.append(op)
            ops = forward
        needed = set(targets)
        found = []
        for op in reversed(ops):
            if needed.intersection(op.output_arg_names):
                found.append(op)
                needed.update(name for name in op.input_arg_names if name not in self.no_grad)
        return found[::-1]

    def fresh(self, name: str) -> str:
        """The name a gradient gets: its usual one, or a prefixed one if an earlier pass has taken it."""
        if name not in self.renamed:
            taken = self.block._find_var_recursive(name) is not None
            self.renamed[name] = "grad/" * self.block.program._appending_grad_times + name if taken else name
        return self.renamed[name]

    def have(self, var: str, gradient: str) -> None:
        self.grads[var] = gradient

    def temporary(self, name: str, dtype: VarType) -> str:
        if self.block._find_var_recursive(name) is None:
            self.block.create_var(name=name, dtype=dtype, stop_gradient=True)
        return name

    def emit(self, spec: OpSpec) -> None:
        self.specs.append(spec)

    def run(self, parts: list[Segment]) -> None:
        """Collect the gradient operators of the path that `parts` make up; its last gradients are known."""
        for part in reversed(parts):
            self.specs += part.again
            self.repeated = part.names
            self._run_segment(part.ops)
        for gradient in list(self.contributions):
            self._settle(gradient)

    def _run_segment(self, ops: list[Operator]) -> None:
        for op in reversed(ops):
            if op.definition.grad is None or not any(self._available(name) for name in op.output_arg_names):
                continue
            if not any(self._wants(name, op) for name in op.input_arg_names):
                continue
            self._differentiate(op)

    def _available(self, name: str) -> bool:
        return name in self.grads

    def _differentiate(self, op: Operator) -> None:
        assert op.definition.grad is not None
        outputs = {grad_name(name): name for name in op.output_arg_names}
        inputs = {grad_name(name): name for name in op.input_arg_names}
        for spec in op.definition.grad(op.view()):
            gives: dict[str, list[str]] = {}
            kept: list[tuple[str, int, str]] = []
            for slot, names in spec.outputs.items():
                wanted = [
                    (i, n) for i, n in enumerate(names) if n not in inputs or self._wants(inputs[n], op)
                ]
                if len(wanted) < len(names) and len(names) > 1:
                    # A list keeps its length, so that each place still belongs to its input.
                    gives[slot] = [
                        self._ignored(n) if n in inputs and not self._wants(inputs[n], op) else n
                        for n in names
                    ]
                elif wanted:
                    gives[slot] = [n for _, n in wanted]
                if wanted:
                    kept += [(slot, i if len(names) > 1 else 0, n) for i, n in wanted]
            if not kept or not self._arrives(op, spec, outputs):
                continue
            takes = {slot: [self._incoming(n, outputs) for n in names] for slot, names in spec.inputs.items()}
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
        frozen = _frozen(op)
        read = [outputs[n] for names in spec.inputs.values() for n in names if n in outputs]
        return not read or any(
            name in self.grads and (name not in frozen or name in self.second) for name in read
        )

    def _ignored(self, name: str) -> str:
        ignored = name + "@IGNORED"
        base = self.block._var_recursive(name.split(GRAD)[0])
        if self.block._find_var_recursive(ignored) is None:
            self.block.create_var(name=ignored, shape=base.shape, dtype=base.dtype, stop_gradient=True)
        return ignored

    def _incoming(self, name: str, outputs: dict[str, str]) -> str:
        """The variable to read for input `name` of a gradient operator; zeros for a gradient nobody computes."""
        if name not in outputs:
            return self.repeated.get(name, name)
        var = outputs[name]
        gradient = self.grads.get(var)
        if gradient is not None:
            self._settle(gradient)
            return gradient
        zeros = self.fresh(name)
        self.emit(OpSpec("fill_zeros_like", {"X": [self.repeated.get(var, var)]}, {"Out": [zeros]}))
        self.have(var, zeros)
        return zeros

    def _contribute(self, var: str, usual: str, spec: OpSpec, slot: str, index: int) -> None:
        gradient = self.fresh(usual)
        spec.outputs[slot][index] = gradient
        self.have(var, gradient)
        self.contributions.setdefault(gradient, []).append((spec, slot, index))

    def _settle(self, gradient: str) -> None:
        """Add up what has arrived for `gradient`, if it came from several places."""
        places = self.contributions.pop(gradient, [])
        if len(places) < 2:
            return
        parts = []
        for number, (spec, slot, index) in enumerate(places):
            part = f"{gradient}@RENAME@block{self.block.idx}@{number}"
            spec.outputs[slot][index] = part
            parts.append(part)
        self.emit(OpSpec("sum", {"X": parts}, {"Out": [gradient]}))

    def append(self, callbacks: Sequence[Callable[..., Any]] | None) -> None:
        """Append the collected operators to the block, with their variables."""
        owner = {gradient: var for var, gradient in self.grads.items()}
        for spec in self.specs:
            roles: list[str] = []
            for slot, names in spec.outputs.items():
                for name in names:
                    var = self.block._find_var_recursive(owner.get(name, ""))
                    if isinstance(var, Parameter):
                        roles += [var.name, name]
                    if self.block._find_var_recursive(name) is None:
                        self.block.create_var(name=name, lod_level=self._lod_level(spec, slot))
            if roles:
                spec.attrs["op_role_var"] = roles
            op = self.block.append_op(
                type=spec.type, inputs=spec.inputs, outputs=spec.outputs, attrs=spec.attrs
            )
            for callback in callbacks or ():
                callback(block=self.block, context={"op": op})

    def _lod_level(self, spec: OpSpec, slot: str) -> int:
        names = spec.inputs.get(slot.removesuffix(GRAD))
        var = self.block._find_var_recursive(names[0]) if names else None
        return var.lod_level if var is not None else 0

    def gradient_of(self, name: str) -> Variable | None:
        """The gradient of variable `name` that this pass made, or None."""
        gradient = self.grads.get(name)
        return self.block._find_var_recursive(gradient) if gradient is not None else None


def _frozen(op: Operator) -> set[str]:
    """The outputs of `op` that are declared to have no gradient."""
    return {name for slot in op.definition.frozen for name in op.outputs.get(slot, [])}


def _names(given: Iterable[Variable | str] | None) -> set[str]:
    names = set()
    for item in given or ():
        if not isinstance(item, (Variable, str)):
            raise ArgumentTypeError(f"no_grad_set holds Variables or names, got {item!r}")
        names.add(item.name if isinstance(item, Variable) else item)
    return names


def _variables(given: Variable | Sequence[Variable], what: str) -> list[Variable]:
    items = [given] if isinstance(given, Variable) else list(given)
    for item in items:
        if not isinstance(item, Variable):
            raise ArgumentTypeError(f"{what} of gradients must be Variables, got {type(item).__name__}")
    if not items and what == "targets":
        raise ArgumentError(f"{what} of gradients must not be empty")
    return items


def _parameter(item: Parameter | str, block: Block) -> Parameter:
    var = block.var(item) if isinstance(item, str) else item
    if not isinstance(var, Variable):
        raise ArgumentTypeError(f"parameter_list holds Parameters or names, got {item!r}")
    return var  # type: ignore[return-value]
