"""Beam search: `BeamSearchDecoder` for `dynamic_decode`, and the operators that older loops use."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from ....framework import Variable
from ...op_functions import run_layer
from ..nn.activations import log, softmax, topk
from ..tensor.arithmetic import (
    elementwise_add,
    elementwise_floordiv,
    elementwise_mod,
    elementwise_mul,
    equal,
    logical_not,
    logical_or,
)
from ..tensor.constants import fill_constant, fill_constant_batch_size_like, zeros_like
from ..tensor.constants import range as range_
from ..tensor.indexing import gather_nd
from ..tensor.joining import expand, stack
from ..tensor.shapes import reshape, shape, transpose, unsqueeze
from ..tensor.variables import assign, cast
from ..utils import flatten, map_structure
from .cells import RNNCell
from .decoding import Decoder

__all__ = ["BeamSearchDecoder", "beam_search", "beam_search_decode", "gather_tree"]

_FAR_BELOW = 1e9
"""The negative log probability of an impossible hypothesis."""


class BeamSearchDecoder(Decoder):
    """Keeps the `beam_size` likeliest hypotheses of each row (`fluid.layers.BeamSearchDecoder`).

    The score of a hypothesis is the sum of its tokens' log probabilities. The cell sees all hypotheses as one batch,
    [batch * beam_size, ...]; what else it reads has to be brought to that shape by `tile_beam_merge_with_batch`.
    `dynamic_decode` then returns tokens, int64 [batch, time, beam_size], and a `StateWrapper` of the last states.

    Args:
        cell: computes outputs and next states.
        start_token, end_token: the tokens that hypotheses begin and end with.
        embedding_fn: gives the inputs for tokens, int64 [batch, beam_size]; None: the tokens themselves.
        output_fn: gives the logits, [batch, beam_size, vocabulary], from the outputs of the cell; None: they are that.
    """

    OutputWrapper = namedtuple("OutputWrapper", ("scores", "predicted_ids", "parent_ids"))
    StateWrapper = namedtuple("StateWrapper", ("cell_states", "log_probs", "finished", "lengths"))

    def __init__(
        self,
        cell: RNNCell,
        start_token: int,
        end_token: int,
        beam_size: int,
        embedding_fn: Callable[[Any], Any] | None = None,
        output_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self.cell, self.embedding_fn, self.output_fn = cell, embedding_fn, output_fn
        self.start_token, self.end_token, self.beam_size = start_token, end_token, beam_size

    @staticmethod
    def tile_beam_merge_with_batch(x: Any, beam_size: int) -> Any:
        """Each row of `x`, [batch, ...], `beam_size` times one after the other: [batch * beam_size, ...]."""
        tiled = expand(unsqueeze(x, [1]), [1, beam_size] + [1] * (len(x.shape) - 1))
        rank = len(tiled.shape)
        back = transpose(tiled, [*range(2, rank), 0, 1])
        back = reshape(back, shape=[0] * (rank - 2) + [-1])
        return transpose(back, [rank - 2, *range(rank - 2)])

    def _expand_to_beam_size(self, x: Any) -> Any:
        """[batch, ...] to [batch, beam_size, ...]."""
        x = unsqueeze(x, [1])
        return expand(x, [1, self.beam_size] + [1] * (len(x.shape) - 2))

    def _merge_batch_beams(self, x: Any) -> Any:
        """[batch, beam_size, ...] to [batch * beam_size, ...]."""
        return reshape(x, shape=[-1, *x.shape[2:]])

    def _split_batch_beams(self, x: Any) -> Any:
        """[batch * beam_size, ...] to [batch, beam_size, ...]."""
        return reshape(x, shape=[-1, self.beam_size, *x.shape[1:]])

    def _mask_probs(self, probs: Any, finished: Any) -> Any:
        """Log probabilities where finished hypotheses can only be continued by the end token, with probability 1."""
        finished = cast(finished, probs.dtype)
        width = probs.shape[-1]
        only_end = elementwise_mul(
            expand(unsqueeze(finished, [2]), [1, 1, width]), self.noend_mask_tensor, axis=-1
        )
        return only_end - elementwise_mul(probs, finished - 1, axis=0)

    def _gather(self, x: Any, indices: Any, batch_size: Any) -> Any:
        """Of each row of `x` the elements that the row of `indices` names."""
        rows = range_(0, cast(batch_size, indices.dtype), 1, indices.dtype)
        rows = expand(unsqueeze(rows, [1]), [1, self.beam_size])
        return gather_nd(x, stack([rows, indices], axis=2))

    def initialize(self, initial_cell_states: Any) -> tuple[Any, Any, Any]:
        """First inputs, first states and the finished flags, all false, from the cell's states [batch, ...]."""
        first = flatten(initial_cell_states)[0]
        self.batch_size = shape(first)[0]
        self.start_token_tensor = fill_constant([1], "int64", self.start_token)
        self.end_token_tensor = fill_constant([1], "int64", self.end_token)
        cell_states = map_structure(self._expand_to_beam_size, initial_cell_states)
        inputs = self._expand_to_beam_size(expand(self.start_token_tensor, [self.batch_size]))
        # All hypotheses start equal: only the first may be continued, or the beam would hold duplicates.
        only_first = np.array([[0.0] + [-_FAR_BELOW] * (self.beam_size - 1)], "float32")
        log_probs = expand(assign(only_first), [self.batch_size, 1])
        finished = fill_constant_batch_size_like(first, [-1, self.beam_size], "bool", False, force_cpu=True)
        lengths = zeros_like(inputs)
        if self.embedding_fn is not None:
            inputs = self.embedding_fn(inputs)
        return inputs, self.StateWrapper(cell_states, log_probs, finished, lengths), finished

    def _beam_search_step(
        self, time: Any, logits: Any, next_cell_states: Any, beam_state: Any
    ) -> tuple[Any, Any]:
        """`OutputWrapper` and next `StateWrapper` for logits [batch, beam_size, vocabulary]."""
        width = self.vocab_size = logits.shape[-1]
        self.vocab_size_tensor = fill_constant([1], "int64", width)
        only_end = np.full(width, -_FAR_BELOW, "float32")
        only_end[self.end_token] = 0
        self.noend_mask_tensor = assign(only_end)
        step_log_probs = self._mask_probs(log(softmax(logits)), beam_state.finished)
        log_probs = elementwise_add(step_log_probs, beam_state.log_probs, axis=0)
        scores, indices = topk(reshape(log_probs, [-1, self.beam_size * width]), k=self.beam_size)
        parents = elementwise_floordiv(indices, self.vocab_size_tensor)
        tokens = elementwise_mod(indices, self.vocab_size_tensor)
        log_probs = self._gather(reshape(log_probs, [-1, self.beam_size * width]), indices, self.batch_size)
        cell_states = map_structure(lambda x: self._gather(x, parents, self.batch_size), next_cell_states)
        finished = self._gather(beam_state.finished, parents, self.batch_size)
        lengths = self._gather(beam_state.lengths, parents, self.batch_size)
        lengths = lengths + cast(logical_not(finished), lengths.dtype)
        finished = logical_or(finished, equal(tokens, self.end_token_tensor))
        outputs = self.OutputWrapper(scores, tokens, parents)
        return outputs, self.StateWrapper(cell_states, log_probs, finished, lengths)

    def step(self, time: Any, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Any]:
        """`OutputWrapper`, next `StateWrapper`, next inputs, and which hypotheses are finished."""
        inputs = map_structure(self._merge_batch_beams, inputs)
        cell_states = map_structure(self._merge_batch_beams, states.cell_states)
        outputs, cell_states = self.cell(inputs, cell_states, **kwargs)
        outputs = map_structure(self._split_batch_beams, outputs)
        cell_states = map_structure(self._split_batch_beams, cell_states)
        if self.output_fn is not None:
            outputs = self.output_fn(outputs)
        made, states = self._beam_search_step(time, outputs, cell_states, states)
        made.predicted_ids.stop_gradient = True
        following = made.predicted_ids
        if self.embedding_fn is not None:
            following = self.embedding_fn(following)
        return made, states, following, states.finished

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """The tokens of whole hypotheses, int64 [time, batch, beam_size], and the final states, unchanged."""
        return gather_tree(outputs.predicted_ids, outputs.parent_ids), final_states


def gather_tree(ids: Variable, parents: Variable) -> Variable:
    """Whole hypotheses from the tokens of each step and where they come from (`fluid.layers.gather_tree`).

    Args:
        ids: the tokens that each step has added, int32 or int64 [time, batch, beam_size].
        parents: which hypothesis of the step before each of them continues, of the same type and shape.

    Returns:
        [time, batch, beam_size]: element [t, b, k] is token t of the hypothesis that is k-th in the last step.
    """
    return run_layer("gather_tree", locals())


def beam_search(
    pre_ids: Variable,
    pre_scores: Variable,
    ids: Variable | None,
    scores: Variable,
    beam_size: int,
    end_id: int,
    level: int = 0,
    is_accumulated: bool = True,
    name: str | None = None,
    return_parent_idx: bool = False,
) -> Any:
    """The best continuations of each source's hypotheses (`fluid.layers.beam_search`).

    Args:
        pre_ids, pre_scores: the last tokens, int64 [hypotheses, 1], and scores, float of this shape, of what
            there is.
        ids: the candidates of each hypothesis, int64 [hypotheses, K]; None: 0 .. K - 1.
        scores: those of the candidates, float [hypotheses, K], with two levels of sequences: which hypotheses belong to
            a source, and which rows to a hypothesis.
        beam_size: how many are kept for each source.
        end_id: what ends a hypothesis; a finished one is kept as it is, as long as others of its source go on.
        level: the level of sequences that says which hypotheses belong to a source.
        is_accumulated: `scores` are of whole hypotheses; else they are probabilities, whose logarithms are added to
            `pre_scores`.
        name: the prefix of variables' names.
        return_parent_idx: also return which row each selected one comes from, int32 [selected].

    Returns:
        The selected tokens, int64 [selected, 1], and their scores, [selected, 1], with two levels of sequences: what
        each hypothesis of a source has been continued by. Nothing is left of a source all whose hypotheses have ended.

    Raises:
        TypeError: for arguments of other types.
    """
    best, found, parents = run_layer(
        "beam_search",
        locals(),
        ("selected_scores", "selected_ids", "parent_idx"),
        without=("return_parent_idx",),
    )
    return (found, best, parents) if return_parent_idx else (found, best)


def beam_search_decode(
    ids: Variable, scores: Variable, beam_size: int, end_id: int, name: str | None = None
) -> tuple[Variable, Variable]:
    """Whole hypotheses from what `beam_search` has selected in each step (`fluid.layers.beam_search_decode`).

    Args:
        ids, scores: tensor arrays of the selected tokens and their scores, step by step.
        beam_size, end_id: those of `beam_search`.

    Returns:
        Tokens, int64 [tokens], and for each its score, with two levels of sequences: the hypotheses of a source,
        best first, and the tokens of a hypothesis.
    """
    return run_layer("beam_search_decode", locals())
