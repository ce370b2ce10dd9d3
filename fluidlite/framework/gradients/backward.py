"""Reverse-mode differentiation of programs: `append_backward` and `gradients` (`fluid.backward`).

Each operator's declaration says which operators compute its gradients; `Tape` decides which of them are needed, adds up
gradients that arrive from several places, and appends the lot to the program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from ...base import long_work
from ...base.dtypes import VarType
from ...base.errors import ArgumentAssertion, ArgumentError, ArgumentNotMet, ArgumentTypeError
from ...ops.registry import OpSpec, grad_name
from ..block import Block
from ..common_attrs import OpRole
from ..variable import Parameter, Variable
from .names import _get_no_grad_set_name
from .recompute import Segment, seed_dropouts, segments
from .tape import Tape, gradient_block


def append_backward(
    loss: Variable,
    parameter_list: Collection[Parameter | str] | None = None,
    no_grad_set: Collection[Variable | str] | None = None,
    callbacks: Sequence[Callable[..., Any]] | None = None,
    checkpoints: Sequence[Variable | str] | None = None,
) -> list[tuple[Parameter, Variable]]:
    """Append the operators that compute the gradients of `loss`, a variable of shape [1].

    Returns pairs of parameter and gradient, for `parameter_list` or all trainable parameters that `loss` depends on.
    Variables in `no_grad_set` and those with `stop_gradient` get none. `checkpoints`: the only variables before
    the last of them that are kept for the backward pass, which recomputes the others. Raises TypeError or ValueError
    for a `loss` that is not such a variable. Follows `fluid.backward.append_backward`.
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
    if not isinstance(parameter_list, (list, tuple, set, type(None))):
        raise ArgumentTypeError(
            f"parameter_list must be a list, tuple or set of Parameters or names, got {parameter_list!r}"
        )
    left_out = _get_no_grad_set_name(no_grad_set)
    program = loss.block.program
    block = program.current_block()
    outer = _outer_blocks(block)
    if not outer or block.backward_block_idx >= 0:
        program._appending_grad_times += 1
    if checkpoints:
        seed_dropouts(block.ops)
    loss.op._set_attr("op_role", OpRole.Forward | OpRole.Loss)
    with program._backward_role_guard(), long_work.collector_paused():
        tape = Tape(block, left_out, home=_home(block))
        start = _first_gradient(tape, loss)
        fill = {
            "shape": [1],
            "value": 1.0,
            "dtype": int(loss.dtype),
            "op_role": OpRole.Backward | OpRole.Loss,
        }
        tape.emit(OpSpec("fill_constant", {}, {"Out": [start]}, fill))
        tape.have(loss.name, start)
        path = tape.path([loss.name], None, [op for each in (*outer, block) for op in each.ops])
        parts = [Segment([op for op in path if op.block is each]) for each in outer]
        own = path[sum(len(part.ops) for part in parts) :]
        tape.run(parts + (segments(block, own, checkpoints) if checkpoints else [Segment(own)]))
        tape.append(callbacks)
    if parameter_list is None:
        params = [p for p in program.all_parameters() if p.trainable]
    else:
        params = [p for p in (_parameter(p, block) for p in parameter_list) if p is not None]
    pairs = []
    for param in params:
        found = tape.gradient_of(param.name)
        if found is not None:
            pairs.append((param, found))
    tape.name_parameters(pairs)
    return pairs


def _first_gradient(tape: Tape, target: Variable) -> str:
    """The name of the gradient that a pass begins with: with a number if an earlier pass has taken the usual one."""
    name = grad_name(target.name)
    return name if tape.home._find_var_recursive(name) is None else tape.home._new_name(name)


def _outer_blocks(block: Block) -> list[Block]:
    """The blocks around a block, outermost first."""
    blocks: list[Block] = []
    while block.parent_idx >= 0:
        block = block.program.block(block.parent_idx)
        blocks.insert(0, block)
    return blocks


def _home(block: Block) -> Block:
    """The block for the gradients of a loss that is minimized while `block` is built.

    In a branch it is a block of its own, which runs, with the updates in it, after the branch.
    """
    if block.parent_idx < 0:
        return block
    if block.backward_block_idx >= 0:
        return block.program.block(block.backward_block_idx)
    return gradient_block(block, block.program.block(block.parent_idx))


def gradients(
    targets: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    target_gradients: Variable | Sequence[Variable | None] | None = None,
    no_grad_set: Collection[Variable | str] | None = None,
) -> list[Variable | None]:
    """Append the operators that compute the gradients of the sum of `targets` with respect to `inputs`.

    Without `inputs`, of all that has gradients. `target_gradients` weigh the targets (None: ones). Returns one
    gradient per input, None where there is no path; an empty list for a single input without one. Raises ValueError if
    the weights do not match the targets, EnforceNotMet for eager tensors. Follows `fluid.gradients`.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> x = fluid.data("x", [2], "float32")
        >>> x.stop_gradient = False
        >>> slope, = fluid.gradients(fluid.layers.reduce_sum(x * x), x)
        >>> fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.array([1, 2], "float32")}, fetch_list=[slope])
        [array([2., 4.], dtype=float32)]
    """
    target_list = _variables(targets, "targets")
    input_list = _variables(inputs, "inputs")
    if target_gradients is None:
        weights: list[Variable | None] = [None] * len(target_list)
    else:
        weights = list(_variables(target_gradients, "target_gradients", (Variable, type(None))))
    if len(weights) != len(target_list):
        raise ArgumentError(
            f"Should have the same number of target_gradients as targets: {len(weights)} and {len(target_list)}"
        )
    block = target_list[0].block
    program = block.program
    program._appending_grad_times += 1
    with program._backward_role_guard():
        tape = Tape(block, _get_no_grad_set_name(no_grad_set))
        path = tape.path([v.name for v in target_list], [v.name for v in input_list] or None)
        shapes: list[str] = []
        for target, weight in zip(target_list, weights, strict=True):
            if weight is not None:
                if weight.shape != target.shape and -1 not in (*weight.shape, *target.shape):
                    raise ArgumentError(
                        f"The shapes of target {target.name!r} and its gradient {weight.name!r} differ: "
                        f"{list(target.shape)} and {list(weight.shape)}"
                    )
                tape.give(target.name, weight.name)
            elif tape.wants(target.name):
                shapes.append(tape.temporary(target.name + "_shape", VarType.INT32))
                tape.emit(OpSpec("shape", {"Input": [target.name]}, {"Out": shapes[-1:]}))
                start = _first_gradient(tape, target)
                fill = {"value": 1.0, "dtype": int(target.dtype), "shape": list(target.shape)}
                tape.emit(OpSpec("fill_constant", {"ShapeTensor": shapes[-1:]}, {"Out": [start]}, fill))
                tape.give(target.name, start)
        tape.run([Segment(path)])
        tape.append()
        for name in shapes:
            block.var(name)._dtype = VarType.BOOL  # as Fluid declares them, which hold integers
    found = [tape.gradient_of(var.name) for var in input_list]
    return [] if len(found) == 1 and found[0] is None else found


def _variables(given: Any, what: str, kinds: tuple[type, ...] = (Variable,)) -> list[Any]:
    items: list[Any] = [given] if isinstance(given, (str, Variable)) else list(given)
    for item in items:
        if hasattr(type(item), "stands_for"):
            raise ArgumentNotMet(
                f"{what} of gradients must be Variables of a program, got an eager tensor (shape {item.shape}): its "
                "gradients are computed by fluid.dygraph.grad, or by backward()"
            )
        if not isinstance(item, kinds):
            raise ArgumentTypeError(f"{what} of gradients must be Variables, got {type(item).__name__}")
    if not items and what == "targets":
        raise ArgumentError(f"{what} of gradients must not be empty")
    return items


def _parameter(item: Parameter | str, block: Block) -> Parameter | None:
    """The parameter of `parameter_list`; None for a name that the program does not have, which has no gradient."""
    if isinstance(item, str):
        return block._find_var_recursive(item)  # type: ignore[return-value]
    if not isinstance(item, Variable):
        raise ArgumentTypeError(f"parameter_list holds Parameters or names, got {item!r}")
    return item


def calc_gradient(
    targets: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    target_gradients: Variable | Sequence[Variable | None] | None = None,
    no_grad_set: Collection[Variable | str] | None = None,
) -> Variable | None | list[Variable | None]:
    """`gradients`, with the gradient itself in place of a list of one (`fluid.backward.calc_gradient`).

    Args, shapes and errors are those of `gradients`.

    Returns:
        The gradient of the only input, a list of them for several, None for none.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> x = fluid.data("x", [2], "float32")
        >>> x.stop_gradient = False
        >>> slope = fluid.backward.calc_gradient(x * x, x)
        >>> fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.array([1, 2], "float32")}, fetch_list=[slope])
        [array([2., 4.], dtype=float32)]
    """
    found = gradients(targets, inputs, target_gradients, no_grad_set)
    return found if len(found) > 1 else next(iter(found), None)
