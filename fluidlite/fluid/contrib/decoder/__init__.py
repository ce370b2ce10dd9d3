"""`fluid.contrib.decoder`: one description of a decoder's step, a `StateCell`, for training and for beam search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ....base.dtypes import VarType
from ....base.errors import ArgumentError
from ....framework import Block, Variable
from ... import layers
from ...layer_helper import LayerHelper
from .state_cell import InitState, StateCell, _ArrayState, _MemoryState, append_write

__all__ = ["BeamSearchDecoder", "InitState", "StateCell", "TrainingDecoder", "beam_search_decoder"]


class _DecoderType:
    TRAINING = 1
    BEAM_SEARCH = 2


class TrainingDecoder:
    """Runs a StateCell over sequences that are given, in a DynamicRNN (`fluid.contrib.decoder.TrainingDecoder`).

    decoder = TrainingDecoder(cell)
    with decoder.block():
        word = decoder.step_input(embedded)
        decoder.state_cell.compute_state(inputs={'x': word})
        score = layers.fc(decoder.state_cell.get_state('h'), words, act='softmax')
        decoder.state_cell.update_states()
        decoder.output(score)
    scores = decoder()
    """

    BEFORE_DECODER = 0
    IN_DECODER = 1
    AFTER_DECODER = 2

    def __init__(self, state_cell: StateCell, name: str | None = None) -> None:
        self._helper = LayerHelper("training_decoder", name=name)
        self._status = TrainingDecoder.BEFORE_DECODER
        self._dynamic_rnn = layers.DynamicRNN()
        self._state_cell = state_cell
        state_cell._enter_decoder(self)

    @contextmanager
    def block(self) -> Iterator[None]:
        """The block that is run in each step. Raises ValueError if it is entered a second time."""
        if self._status != TrainingDecoder.BEFORE_DECODER:
            raise ArgumentError("decoder.block() can only be invoked once")
        self._status = TrainingDecoder.IN_DECODER
        with self._dynamic_rnn.block():
            yield
        self._status = TrainingDecoder.AFTER_DECODER
        self._state_cell._leave_decoder(self)

    def holder(self, init: InitState) -> _MemoryState:
        """The memory of a state, carried from step to step."""
        return _MemoryState(self._dynamic_rnn, init)

    @property
    def state_cell(self) -> StateCell:
        """The cell. Raises ValueError outside of the block."""
        self._assert_in_decoder_block("state_cell")
        return self._state_cell

    @property
    def dynamic_rnn(self) -> Any:
        """The DynamicRNN that the steps are built in."""
        return self._dynamic_rnn

    @property
    def type(self) -> int:
        """The kind of the decoder."""
        return _DecoderType.TRAINING

    def step_input(self, x: Variable) -> Variable:
        """The current element of the sequences of `x`. Raises ValueError outside of the block."""
        self._assert_in_decoder_block("step_input")
        step: Variable = self._dynamic_rnn.step_input(x)
        return step

    def static_input(self, x: Variable) -> Variable:
        """The rows of `x` of the sequences that have not ended. Raises ValueError outside of the block."""
        self._assert_in_decoder_block("static_input")
        rows: Variable = self._dynamic_rnn.static_input(x)
        return rows

    def output(self, *outputs: Variable) -> None:
        """Make `outputs` of each step results. Raises ValueError outside of the block."""
        self._assert_in_decoder_block("output")
        self._dynamic_rnn.output(*outputs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results, in sequences. Raises ValueError inside of the block, and before it."""
        if self._status != TrainingDecoder.AFTER_DECODER:
            raise ArgumentError("Output of training decoder can only be visited outside the block.")
        return self._dynamic_rnn(*args, **kwargs)

    def _assert_in_decoder_block(self, method: str) -> None:
        if self._status != TrainingDecoder.IN_DECODER:
            raise ArgumentError(f"{method} should be invoked inside block of TrainingDecoder object.")


class BeamSearchDecoder:
    """Finds the likeliest sequences with a StateCell (`fluid.contrib.decoder.BeamSearchDecoder`).

        decoder = BeamSearchDecoder(cell, init_ids, init_scores, target_dict_dim=words, word_dim=width, beam_size=4)
        decoder.decode()
        ids, scores = decoder()

    Args:
        state_cell: computes the states of a step.
        init_ids, init_scores: first tokens, int64 [batch, 1], and their scores, with two levels of sequences.
        target_dict_dim, word_dim: the number of words, and the size of their embeddings.
        input_var_dict: further inputs of the cell, which are the same in each step.
        topk_size: the number of candidates for each hypothesis.
        sparse_emb: True for sparse gradients of the embedding.
        max_len: the largest number of steps.
        beam_size: the number of hypotheses kept.
        end_id: the token that ends a sequence.
        name: the prefix of names of variables.
    """

    BEFORE_BEAM_SEARCH_DECODER = 0
    IN_BEAM_SEARCH_DECODER = 1
    AFTER_BEAM_SEARCH_DECODER = 2

    def __init__(
        self,
        state_cell: StateCell,
        init_ids: Variable,
        init_scores: Variable,
        target_dict_dim: int,
        word_dim: int,
        input_var_dict: Mapping[str, Variable] = {},  # noqa: B006 - as in Fluid; it is only read
        topk_size: int = 50,
        sparse_emb: bool = True,
        max_len: int = 100,
        beam_size: int = 1,
        end_id: int = 1,
        name: str | None = None,
    ) -> None:
        self._helper = LayerHelper("beam_search_decoder", name=name)
        self._counter = layers.zeros(shape=[1], dtype="int64")
        self._counter.stop_gradient = True
        self._max_len = layers.fill_constant(shape=[1], dtype="int64", value=max_len)
        self._cond = layers.less_than(self._counter, layers.fill_constant([1], "int64", max_len))
        self._while_op = layers.While(self._cond)
        self._status = BeamSearchDecoder.BEFORE_BEAM_SEARCH_DECODER
        self._state_cell = state_cell
        state_cell._enter_decoder(self)
        self._zero_idx = layers.fill_constant(shape=[1], dtype="int64", value=0, force_cpu=True)
        self._read: dict[str, Any] = {}
        self._written: list[tuple[Variable, Any]] = []
        self._ids_array: Any = None
        self._scores_array: Any = None
        self._init_ids, self._init_scores = init_ids, init_scores
        self._target_dict_dim, self._word_dim = target_dict_dim, word_dim
        self._input_var_dict = input_var_dict
        self._topk_size, self._sparse_emb = topk_size, sparse_emb
        self._beam_size, self._end_id = beam_size, end_id

    @contextmanager
    def block(self) -> Iterator[None]:
        """The block that is run in each step, for loops that differ from `decode`.

        Raises ValueError if it is entered a second time.
        """
        if self._status != BeamSearchDecoder.BEFORE_BEAM_SEARCH_DECODER:
            raise ArgumentError("block() can only be invoke once.")
        self._status = BeamSearchDecoder.IN_BEAM_SEARCH_DECODER
        with self._while_op.block():
            yield
            with layers.Switch() as switch, switch.case(self._cond):
                layers.increment(self._counter)
                for value, array in self._written:
                    layers.array_write(value, self._counter, array)
                layers.less_than(self._counter, self._max_len, cond=self._cond)
        self._status = BeamSearchDecoder.AFTER_BEAM_SEARCH_DECODER
        self._state_cell._leave_decoder(self)

    def holder(self, init: InitState) -> _ArrayState:
        """The array with a state of each step."""
        return _ArrayState(self._parent_block(), init)

    @property
    def type(self) -> int:
        """The kind of the decoder."""
        return _DecoderType.BEAM_SEARCH

    @property
    def state_cell(self) -> StateCell:
        """The cell. Raises ValueError outside of the block."""
        self._assert_in_decoder_block("state_cell")
        return self._state_cell

    def early_stop(self) -> None:
        """End the loop after this step."""
        layers.fill_constant(shape=[1], value=0, dtype="bool", force_cpu=True, out=self._cond)

    def decode(self) -> None:
        """Build the loop: embed the tokens, compute the states, choose the best continuations."""
        with self.block():
            ids = self.read_array(init=self._init_ids, is_ids=True)
            scores = self.read_array(init=self._init_scores, is_scores=True)
            words = layers.embedding(
                ids, size=[self._target_dict_dim, self._word_dim], dtype="float32", is_sparse=self._sparse_emb
            )
            cell = self._state_cell
            inputs, repeated = {}, []
            for name, value in self._input_var_dict.items():
                if name not in cell._inputs:
                    raise ArgumentError(f"Variable {name} not found in StateCell!")
                same = self.read_array(init=value)
                inputs[name] = layers.sequence_expand(same, scores)
                repeated.append((same, inputs[name]))
            cell._switch_decoder()
            for name in cell._states:
                cell.set_state(name, layers.sequence_expand(cell.get_state(name), scores))
            for name in cell._inputs:
                inputs.setdefault(name, words)
            cell.compute_state(inputs=inputs)
            states = layers.lod_reset(cell.out_state(), y=scores)
            likely = layers.fc(states, size=self._target_dict_dim, act="softmax")
            top_scores, top_ids = layers.topk(likely, k=self._topk_size)
            total = layers.elementwise_add(layers.log(top_scores), layers.reshape(scores, shape=[-1]), axis=0)
            chosen, best = layers.beam_search(
                ids, scores, top_ids, total, self._beam_size, self._end_id, level=0
            )
            with layers.Switch() as switch:
                with switch.case(layers.is_empty(chosen)):
                    self.early_stop()
                with switch.default():
                    cell.update_states()
                    self.update_array(ids, chosen)
                    self.update_array(scores, best)
                    for same, value in repeated:
                        self.update_array(same, value)

    def read_array(self, init: Variable, is_ids: bool = False, is_scores: bool = False) -> Variable:
        """A value carried between steps: `init` in the first, then the one passed to `update_array`.

        `is_ids`, `is_scores`: it holds the tokens, or scores, of the decoder's results. Raises ValueError outside of
        the block, and if both are True.
        """
        self._assert_in_decoder_block("read_array")
        if is_ids and is_scores:
            raise ArgumentError(
                "Shouldn't mark current array be ids array and scores array at the same time."
            )
        if not isinstance(init, Variable):
            raise TypeError(f"The input argument `init` must be a Variable, got {type(init).__name__}")
        parent = self._parent_block()
        array = parent.create_var(
            name=parent._new_name("beam_search_decoder_array"),
            type=VarType.LOD_TENSOR_ARRAY,
            dtype=init.dtype,
        )
        append_write(parent, init, self._zero_idx, array)
        if is_ids:
            self._ids_array = array
        elif is_scores:
            self._scores_array = array
        value: Variable = layers.array_read(array, self._counter)
        self._read[value.name] = array
        return value

    def update_array(self, array: Variable, value: Variable) -> None:
        """Set the value of `array`, a result of `read_array`, for the next step.

        Raises ValueError outside of the block, and for other variables.
        """
        self._assert_in_decoder_block("update_array")
        for arg, name in ((array, "array"), (value, "value")):
            if not isinstance(arg, Variable):
                raise TypeError(f"The input argument `{name}` must be a Variable, got {type(arg).__name__}")
        if array.name not in self._read:
            raise ArgumentError("Please invoke read_array before update_array.")
        self._written.append((value, self._read[array.name]))

    def __call__(self) -> tuple[Variable, Variable]:
        """Tokens and scores of the decoded sequences, as `layers.beam_search_decode` returns them.

        Raises ValueError inside of the block, and before it.
        """
        if self._status != BeamSearchDecoder.AFTER_BEAM_SEARCH_DECODER:
            raise ArgumentError("Output of BeamSearchDecoder object can only be visited outside the block.")
        return layers.beam_search_decode(self._ids_array, self._scores_array, self._beam_size, self._end_id)

    def _parent_block(self) -> Block:
        program = self._helper.main_program
        return program.block(program.current_block().parent_idx)

    def _assert_in_decoder_block(self, method: str) -> None:
        if self._status != BeamSearchDecoder.IN_BEAM_SEARCH_DECODER:
            raise ArgumentError(f"{method} should be invoked inside block of BeamSearchDecoder object.")
