"""`fluid.evaluator`: metrics over all batches, accumulated in variables by the program itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import callsite, unique_name
from ..framework import Program, Variable, program_guard
from . import layers, metrics
from .layer_helper import LayerHelper

__all__ = ["ChunkEvaluator", "DetectionMAP", "EditDistance"]


class Evaluator:
    """The base class of evaluators (`fluid.evaluator.Evaluator`): state variables, and their reset.

    Warns that `fluid.metrics` has newer ways, as Fluid does.

    Attributes:
        states: persistable variables, which each run of the program adds to.
        metrics: variables with the figures of a batch, to be fetched.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        kind = type(self).__name__
        callsite.warn(
            f"The {kind} is deprecated, because maintain a modified program inside evaluator cause bug easily, "
            f"please use fluid.metrics.{kind} instead.",
            Warning,
        )
        self.states: list[Variable] = []
        self.metrics: list[Variable] = []
        self.helper = LayerHelper(name, **kwargs)

    def reset(self, executor: Any, reset_program: Program | None = None) -> None:
        """Set all states to 0, by a program of its own or at the end of `reset_program`, which is run."""
        program = Program() if reset_program is None else reset_program
        with program_guard(main_program=program):
            for var in self.states:
                zero = program.current_block()._clone_variable(var)
                layers.fill_constant(shape=zero.shape, value=0.0, dtype=zero.dtype, out=zero)
        executor.run(program)

    def eval(self, executor: Any, eval_program: Program | None = None) -> Any:
        """The metrics of all batches since `reset`."""
        raise NotImplementedError

    def _create_state(self, suffix: str, dtype: Any, shape: Sequence[int] | None) -> Variable:
        """A persistable variable, for the numbers of all batches."""
        state: Variable = self.helper.create_variable(
            name="_".join([unique_name.generate(self.helper.name), suffix]),
            persistable=True,
            dtype=dtype,
            shape=shape,
        )
        self.states.append(state)
        return state

    def _add(self, state: Variable, value: Variable) -> None:
        layers.sums(input=[state, value], out=state)


class ChunkEvaluator(Evaluator):
    """Precision, recall and F1 of chunks over all batches (`fluid.evaluator.ChunkEvaluator`).

    Args:
        input, label, chunk_scheme, num_chunk_types, excluded_chunk_types: as for `layers.chunk_eval`.
    """

    def __init__(
        self,
        input: Variable,
        label: Variable,
        chunk_scheme: str,
        num_chunk_types: int,
        excluded_chunk_types: Sequence[int] | None = None,
    ) -> None:
        super().__init__("chunk_eval")
        if self.helper.main_program.current_block().idx != 0:
            raise ValueError("You can only invoke Evaluator in root block")
        self.num_infer_chunks, self.num_label_chunks, self.num_correct_chunks = (
            self._create_state(name, "int64", [1])
            for name in ("num_infer_chunks", "num_label_chunks", "num_correct_chunks")
        )
        *shares, inferred, labelled, correct = layers.chunk_eval(
            input, label, chunk_scheme, num_chunk_types, excluded_chunk_types
        )
        self._add(self.num_infer_chunks, inferred)
        self._add(self.num_label_chunks, labelled)
        self._add(self.num_correct_chunks, correct)
        self.metrics.extend(shares)

    def eval(self, executor: Any, eval_program: Program | None = None) -> tuple[Any, Any, Any]:
        """Precision, recall and F1, float32 [1] each; zeros where there is nothing to divide by."""
        program = Program() if eval_program is None else eval_program
        block = program.current_block()
        counts = executor.run(program, fetch_list=[block._clone_variable(state) for state in self.states])
        inferred, labelled, correct = (count[0] for count in counts)
        precision = float(correct) / inferred if inferred else 0
        recall = float(correct) / labelled if labelled else 0
        both = 2 * precision * recall / (precision + recall) if correct else 0
        return tuple(np.array([share], dtype="float32") for share in (precision, recall, both))  # type: ignore[return-value]


class EditDistance(Evaluator):
    """The mean edit distance and the share of wrong sequences over all batches (`fluid.evaluator.EditDistance`).

    Args:
        input, label, ignored_tokens: as for `layers.edit_distance`.
    """

    def __init__(
        self, input: Variable, label: Variable, ignored_tokens: Sequence[int] | None = None, **kwargs: Any
    ) -> None:
        super().__init__("edit_distance", **kwargs)
        if self.helper.main_program.current_block().idx != 0:
            raise ValueError("You can only invoke Evaluator in root block")
        self.total_distance = self._create_state("total_distance", "float32", [1])
        self.seq_num = self._create_state("seq_num", "int64", [1])
        self.instance_error = self._create_state("instance_error", "int64", [1])
        distances, count = layers.edit_distance(input=input, label=label, ignored_tokens=ignored_tokens)
        zero = layers.fill_constant(shape=[1], value=0.0, dtype="float32")
        right = layers.reduce_sum(layers.cast(x=layers.equal(distances, zero), dtype="int64"))
        wrong = layers.elementwise_sub(x=count, y=right)
        total = layers.reduce_sum(distances)
        self._add(self.total_distance, total)
        self._add(self.seq_num, count)
        self._add(self.instance_error, wrong)
        self.metrics += [total, wrong]

    def eval(self, executor: Any, eval_program: Program | None = None) -> tuple[Any, Any]:
        """The mean distance and the share of sequences with an error, float32 [1] each."""
        program = Program() if eval_program is None else eval_program
        with program_guard(main_program=program):
            block = program.current_block()
            total, count, wrong = (block._clone_variable(state) for state in self.states)
            number = layers.cast(x=count, dtype="float32")
            wrong = layers.cast(x=wrong, dtype="float32")
            figures = [layers.elementwise_div(x=part, y=number) for part in (total, wrong)]
            mean, share = executor.run(program, fetch_list=figures)
        return mean, share


class DetectionMAP(Evaluator, metrics.DetectionMAP):
    """As `fluid.metrics.DetectionMAP`, whose arguments these are (`fluid.evaluator.DetectionMAP`)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        Evaluator.__init__(self, "map_eval")
        self._build(*args, **kwargs)

    reset = metrics.DetectionMAP.reset

    def _create_has_state(self) -> Variable:
        state: Variable = self.helper.create_variable(persistable=True, dtype="int32", shape=[1])
        return state
