"""Helpers that choose the tokens of a `BasicDecoder` and make its next inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...base.dtypes import VarType
from ...framework import Variable
from ..nn.probability import softmax
from ..tensor.comparison import equal, less_equal
from ..tensor.constants import fill_constant, fill_constant_batch_size_like
from ..tensor.indexing import sampling_id
from ..tensor.manipulation import pad
from ..tensor.search import argmax
from ..tensor.shapes import squeeze
from ..tensor.slicing import slice as slice_
from ..tensor.variables import cast
from ..utils import map_structure

__all__ = ["DecodeHelper", "GreedyEmbeddingHelper", "SampleEmbeddingHelper", "TrainingHelper"]


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
