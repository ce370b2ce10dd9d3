"""Decoders, which generate sequences step by step, and `dynamic_decode`, which runs them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from .... import eager
from ....base.dtypes import VarType
from ....framework import Variable
from ...layer_helper import LayerHelper
from ..control_flow.arrays import array_read, array_write, increment, tensor_array_to_tensor
from ..control_flow.conditional_block import outer_block
from ..control_flow.loops import While
from ..nn.activations import softmax
from ..tensor.arithmetic import (
    argmax,
    elementwise_add,
    equal,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    reduce_all,
)
from ..tensor.constants import fill_constant, fill_constant_batch_size_like, zeros_like
from ..tensor.indexing import sampling_id
from ..tensor.indexing import slice as slice_
from ..tensor.joining import pad, stack
from ..tensor.shapes import squeeze
from ..tensor.variables import assign, cast
from ..utils import assert_same_structure, map_structure
from .cells import RNNCell, kept_where, swapped

__all__ = [
    "BasicDecoder",
    "DecodeHelper",
    "Decoder",
    "GreedyEmbeddingHelper",
    "SampleEmbeddingHelper",
    "TrainingHelper",
    "dynamic_decode",
]


class DecodeHelper:
    """The interface of helpers of a `BasicDecoder` (`fluid.layers.DecodeHelper`); subclasses define its methods."""

    def initialize(self) -> Any:
        """Inputs of the first step, and which rows are finished before it, bool [batch]."""

    def sample(self, time: Any, outputs: Any, states: Any) -> Any:
        """The tokens of a step, int64 [batch], from the outputs of the cell."""

    def next_inputs(self, time: Any, outputs: Any, states: Any, sample_ids: Any) -> Any:
        """The finished flags, the next inputs, and the next states."""


class TrainingHelper(DecodeHelper):
    """The inputs are given for all steps, as in training (`fluid.layers.TrainingHelper`).

    Args:
        inputs: a tensor [batch, time, ...], or a structure of such.
        sequence_length: how many steps each row has, int32 or int64 [batch].
        time_major: inputs are [time, batch, ...].
    """

    def __init__(self, inputs: Any, sequence_length: Any, time_major: bool = False) -> None:
        self.inputs, self.sequence_length, self.time_major = inputs, sequence_length, time_major
        self._axis = 0 if time_major else 1
        # The step after the last one is read as well, and then not used.
        self.inputs_ = map_structure(self._with_one_more, inputs)

    def _with_one_more(self, x: Any) -> Any:
        ends = [0, 0] * len(x.shape)
        ends[2 * self._axis + 1] = 1
        return pad(x, ends)

    def initialize(self) -> tuple[Any, Any]:
        """The first steps of the inputs, and the finished flags of rows without any."""
        finished = equal(self.sequence_length, fill_constant([1], self.sequence_length.dtype, 0))
        return map_structure(lambda x: x[0] if self.time_major else x[:, 0], self.inputs), finished

    def sample(self, time: Any, outputs: Any, states: Any) -> Any:
        """Where each row of the outputs is largest."""
        return argmax(outputs, axis=-1)

    def next_inputs(self, time: Any, outputs: Any, states: Any, sample_ids: Any) -> tuple[Any, Any, Any]:
        """The finished flags of rows without further steps, the next steps of the inputs, and the states, unchanged."""
        time = _as_int32(time)
        length = _as_int32(self.sequence_length)
        following = time + 1
        finished = less_equal(length, following)

        def step_of(x: Any) -> Any:
            taken = slice_(x, axes=[self._axis], starts=[following], ends=[following + 1])
            return squeeze(taken, axes=[self._axis])

        return finished, map_structure(step_of, self.inputs_), states


class GreedyEmbeddingHelper(DecodeHelper):
    """The likeliest token, embedded, is the next input (`fluid.layers.GreedyEmbeddingHelper`).

    Args:
        embedding_fn: gives the inputs for tokens, int64 [batch].
        start_tokens: the first tokens, int64 [batch].
        end_token: the token that finishes a row.
    """

    def __init__(self, embedding_fn: Callable[[Any], Any], start_tokens: Any, end_token: int) -> None:
        self.embedding_fn, self.start_tokens = embedding_fn, start_tokens
        self.end_token = fill_constant([1], "int64", end_token)

    def initialize(self) -> tuple[Any, Any]:
        """The start tokens, embedded, and that no row is finished."""
        finished = fill_constant_batch_size_like(self.start_tokens, [-1], "bool", False, force_cpu=True)
        return self.embedding_fn(self.start_tokens), finished

    def sample(self, time: Any, outputs: Any, states: Any) -> Any:
        """Where each row of the outputs is largest."""
        return argmax(outputs, axis=-1)

    def next_inputs(self, time: Any, outputs: Any, states: Any, sample_ids: Any) -> tuple[Any, Any, Any]:
        """The finished flags of rows with the end token, the embedded tokens, and the states, unchanged."""
        return equal(sample_ids, self.end_token), self.embedding_fn(sample_ids), states


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """A token drawn by the outputs' softmax, embedded, is the next input (`fluid.layers.SampleEmbeddingHelper`).

    Args:
        embedding_fn, start_tokens, end_token: as for `GreedyEmbeddingHelper`.
        softmax_temperature: what the outputs are divided by; smaller is closer to the likeliest token.
        seed: of the draws; None: others in each run.
    """

    def __init__(
        self,
        embedding_fn: Callable[[Any], Any],
        start_tokens: Any,
        end_token: int,
        softmax_temperature: float | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding_fn, start_tokens, end_token)
        self.softmax_temperature: Variable | None = None
        if softmax_temperature is not None:
            self.softmax_temperature = fill_constant([1], "float32", softmax_temperature)
        self.seed = seed

    def sample(self, time: Any, outputs: Any, states: Any) -> Any:
        """A token for each row, drawn with the probabilities softmax(outputs / temperature)."""
        logits = outputs if self.softmax_temperature is None else outputs / self.softmax_temperature
        return sampling_id(softmax(logits), seed=self.seed or 0, dtype=self.start_tokens.dtype)


def _as_int32(x: Any) -> Any:
    return x if x.dtype == VarType.INT32 else cast(x, "int32")


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
