"""Decoders, which generate sequences step by step, and `dynamic_decode`, which runs them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from ... import eager
from ...base.dtypes import VarType
from ...framework import Variable
from ...layer_helper import LayerHelper
from ..control_flow.arrays import array_read, array_write, tensor_array_to_tensor
from ..control_flow.blocks import outer_block
from ..control_flow.counter import increment
from ..control_flow.loops import While
from ..tensor.arithmetic import elementwise_add
from ..tensor.comparison import less_equal, logical_and, logical_not, logical_or
from ..tensor.constants import fill_constant, zeros_like
from ..tensor.joining import stack
from ..tensor.reductions import reduce_all
from ..tensor.variables import assign, cast
from ..utils import assert_same_structure, map_structure
from .cells import RNNCell, kept_where, swapped
from .decode_helpers import DecodeHelper

__all__ = ["BasicDecoder", "Decoder", "dynamic_decode"]


class Decoder:
    """The base class of decoders (`fluid.layers.Decoder`); subclasses define `initialize` and `step`.

    Inputs, states and outputs are tensors or lists, tuples and dicts of them.
    """

    def initialize(self, inits: Any) -> tuple[Any, Any, Any]:
        """Inputs and states of the first step, and the finished flags (bool), from the initial states."""
        raise NotImplementedError(f"{type(self).__name__} must define initialize(inits)")

    def step(self, time: Any, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Any]:
        """Outputs, next states, next inputs, and which rows are finished now. `time` is int64 of shape [1]."""
        raise NotImplementedError(f"{type(self).__name__} must define step(time, inputs, states, **kwargs)")

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Postprocess the outputs of all steps, [time, batch, ...], and the last states (default: unchanged)."""
        raise NotImplementedError(f"{type(self).__name__} does not define finalize")


class BasicDecoder(Decoder):
    """One token for each row in each step, which a helper chooses (`fluid.layers.BasicDecoder`).

    Args:
        cell: computes outputs and next states.
        helper: makes the inputs of the next step.
        output_fn: applied to the outputs of the cell, such as a projection to the vocabulary.
    """

    OutputWrapper = namedtuple("OutputWrapper", ("cell_outputs", "sample_ids"))

    def __init__(
        self, cell: RNNCell, helper: DecodeHelper, output_fn: Callable[[Any], Any] | None = None
    ) -> None:
        self.cell, self.helper, self.output_fn = cell, helper, output_fn

    def initialize(self, initial_cell_states: Any) -> tuple[Any, Any, Any]:
        """The first inputs of the helper, the given states, and which rows the helper has finished."""
        inputs, finished = self.helper.initialize()
        return inputs, initial_cell_states, finished

    def step(self, time: Any, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Any]:
        """`OutputWrapper` of the step, next states, next inputs and which rows are finished."""
        outputs, states = self.cell(inputs, states, **kwargs)
        if self.output_fn is not None:
            outputs = self.output_fn(outputs)
        ids = self.helper.sample(time=time, outputs=outputs, states=states)
        ids.stop_gradient = True
        finished, inputs, states = self.helper.next_inputs(
            time=time, outputs=outputs, states=states, sample_ids=ids
        )
        return self.OutputWrapper(outputs, ids), states, inputs, finished


def dynamic_decode(
    decoder: Decoder,
    inits: Any = None,
    max_step_num: int | None = None,
    output_time_major: bool = False,
    impute_finished: bool = False,
    is_test: bool = False,
    return_length: bool = False,
    **kwargs: Any,
) -> tuple[Any, ...]:
    """Run `decoder` until all rows are finished (`fluid.layers.dynamic_decode`). On eager tensors it computes at once.

    Args:
        inits: given to `decoder.initialize`.
        max_step_num: stop after this number of steps and one more, as Fluid 1.8 does; None: no limit.
        output_time_major: outputs are [time, batch, ...] instead of [batch, time, ...].
        impute_finished: states of rows that are finished stay as they are.
        is_test: no gradients are wanted: states need not be kept for each step.
        return_length: also return how many steps each row has taken, int64, where `decoder` says what is finished.
        kwargs: given to `decoder.step`.

    Returns:
        Outputs and last states, as `decoder.finalize` returns them, and the lengths if asked for.
    """
    inputs, states, finished = decoder.initialize(inits)
    run = _run_eager if eager.mixture([finished]) else _run_static
    outputs, states, lengths = run(
        decoder, inputs, states, finished, max_step_num, impute_finished, is_test, kwargs
    )
    try:
        outputs, states = decoder.finalize(outputs, states, lengths)
    except NotImplementedError:
        pass
    if not output_time_major:
        outputs = map_structure(swapped, outputs)
    return (outputs, states, lengths) if return_length else (outputs, states)


def _run_static(
    decoder: Decoder,
    inputs: Any,
    states: Any,
    finished: Any,
    limit: int | None,
    impute: bool,
    is_test: bool,
    kwargs: dict[str, Any],
) -> tuple[Any, Any, Any]:
    """The steps in a `While`. Inputs and states of each are kept in arrays, which gradients need, or overwritten."""
    finished.stop_gradient = True
    step = fill_constant([1], "int64", 0)
    going = logical_not(reduce_all(finished))
    last = None if limit is None else fill_constant([1], "int64", limit)
    loop = While(cond=going, is_test=is_test)
    lengths = cast(zeros_like(finished), "int64")
    lengths.stop_gradient = True
    if not is_test:
        inputs = map_structure(lambda x: array_write(x, step), inputs)
        states = map_structure(lambda x: array_write(x, step), states)
    with loop.block():
        now, before = inputs, states
        if not is_test:
            now = map_structure(lambda array: array_read(array, step), inputs)
            before = map_structure(lambda array: array_read(array, step), states)
        outputs, after, following, done = decoder.step(step, now, before, **kwargs)
        assert_same_structure(before, after, check_types=False)
        after, done, taken = _ends(before, after, finished, done, lengths, impute)
        arrays = map_structure(_array_outside, outputs)
        map_structure(lambda x, array: array_write(x, step, array), outputs, arrays)
        increment(step, 1.0, in_place=True)
        if is_test:
            map_structure(assign, following, inputs)
            map_structure(assign, after, states)
        else:
            map_structure(lambda x, array: array_write(x, step, array), following, inputs)
            map_structure(lambda x, array: array_write(x, step, array), after, states)
        assign(done, finished)
        assign(taken, lengths)
        if last is None:
            logical_not(reduce_all(finished), out=going)
        else:
            logical_and(logical_not(reduce_all(finished)), less_equal(step, last), out=going)
    outputs = map_structure(lambda array: tensor_array_to_tensor(array, axis=0, use_stack=True)[0], arrays)
    if not is_test:
        states = map_structure(lambda array: array_read(array, step), states)
    return outputs, states, lengths


def _run_eager(
    decoder: Decoder,
    inputs: Any,
    states: Any,
    finished: Any,
    limit: int | None,
    impute: bool,
    is_test: bool,
    kwargs: dict[str, Any],
) -> tuple[Any, Any, Any]:
    lengths = cast(zeros_like(finished), "int64")
    outputs: list[Any] = []
    while not finished.numpy().all() and (limit is None or len(outputs) <= limit):
        step = fill_constant([1], "int64", len(outputs))
        made, after, inputs, done = decoder.step(step, inputs, states, **kwargs)
        states, finished, lengths = _ends(states, after, finished, done, lengths, impute)
        outputs.append(made)
    return map_structure(lambda *steps: stack(list(steps), axis=0), *outputs), states, lengths


def _ends(
    before: Any, after: Any, finished: Any, done: Any, lengths: Any, impute: bool
) -> tuple[Any, Any, Any]:
    """States after a step, which rows are finished then, and how many steps each row has taken."""
    done = logical_or(done, finished)
    lengths = elementwise_add(lengths, cast(logical_not(finished), lengths.dtype))
    if impute:
        after = map_structure(lambda old, new: _unless_finished(old, new, finished), before, after)
    return after, done, lengths


def _unless_finished(old: Any, new: Any, finished: Any) -> Any:
    """`old` in the rows that are finished, `new` in the others."""
    if old.dtype == VarType.BOOL:
        old, new = cast(old, "float32"), cast(new, "float32")
        return cast(kept_where(old, new, cast(finished, "float32")), "bool")
    return kept_where(old, new, cast(finished, old.dtype))


def _array_outside(value: Variable) -> Any:
    """A tensor array for values like `value`, which outlives the block of the loop."""
    helper = LayerHelper("array")
    outer = outer_block(helper.main_program)
    return outer.create_var(name=f"{helper.name}.out", type=VarType.LOD_TENSOR_ARRAY, dtype=value.dtype)
