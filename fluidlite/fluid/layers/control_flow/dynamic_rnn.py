"""`DynamicRNN`, a network that goes through the steps of sequences of various lengths, and the sorted sequences that
it is made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ....base.dtypes import VarType
from ....base.errors import ArgumentError, ArgumentTypeError
from ....framework import Block, Variable
from ...layer_helper import LayerHelper, check_variable
from ...op_functions import run_layer
from ..tensor.arithmetic import less_than
from ..tensor.constants import fill_constant
from .arrays import array_read, array_write, increment
from .conditional_block import from_outside, outer_block, programs_only
from .loops import While

__all__ = ["DynamicRNN", "reorder_lod_tensor_by_rank"]


def lod_rank_table(x: Variable, level: int = 0) -> Variable:
    """The sequences of one level of `x` sorted by length (`fluid.layers.control_flow.lod_rank_table`).

    Args:
        x: anything with sequences.
        level: which level is ranked, 0 being the outermost one.

    Returns:
        A variable that holds a rank table: the longest sequence first, and of equal ones the first.

    Raises:
        TypeError: x is no Variable.
        EnforceNotMet: when it runs, if x does not have that level.
    """
    check_variable(x, "x", "lod_rank_table")
    helper = LayerHelper("lod_rank_table")
    name = helper._new_name("lod_rank_table")
    table: Variable = helper.create_variable(name=name, type=VarType.LOD_RANK_TABLE)
    helper.append_op(type="lod_rank_table", inputs={"X": x}, outputs={"Out": table}, attrs={"level": level})
    return table


def max_sequence_len(rank_table: Variable) -> Variable:
    """How long the longest sequence is: int64 [1] (`fluid.layers.control_flow.max_sequence_len`).

    `rank_table`: what `lod_rank_table` gives. Raises TypeError for anything else.
    """
    check_table(rank_table, "max_sequence_len")
    helper = LayerHelper("max_seqence_len")  # Fluid's spelling, which names are made from
    return helper.run("max_sequence_len", {"RankTable": rank_table})


def check_table(table: object, layer: str) -> None:
    """Raise TypeError unless `table` is a Variable that holds a rank table."""
    check_variable(table, "rank_table", layer)
    if table.type != VarType.LOD_RANK_TABLE:  # type: ignore[attr-defined]
        raise TypeError(
            f"The type of rank_table should be LOD_RANK_TABLE in {layer}, got {table.name!r}, "  # type: ignore[attr-defined]
            "make one with fluid.layers.control_flow.lod_rank_table"
        )


def reorder_lod_tensor_by_rank(x: Variable, rank_table: Variable) -> Variable:
    """The rows, or sequences, of `x` in the order of a rank table (`fluid.layers.reorder_lod_tensor_by_rank`).

    Args:
        x: as many rows, or sequences of the outermost level, as were ranked.
        rank_table: what `lod_rank_table` gives.

    Returns:
        A variable of the shape of x, with the levels of sequences of x.

    Raises:
        TypeError: an argument is no Variable, or holds no rank table.
        EnforceNotMet: when it runs, for another number of rows or sequences.
    """
    check_table(rank_table, "reorder_lod_tensor_by_rank")
    return run_layer("reorder_lod_tensor_by_rank", locals())


def lod_tensor_to_array(x: Variable, table: Variable) -> Variable:
    """The steps of the ranked sequences of `x` (`fluid.layers.control_flow.lod_tensor_to_array`).

    Args:
        x: sequences as long as those that were ranked, or longer.
        table: what `lod_rank_table` gives.

    Returns:
        An array: element t has step t of all sequences that are that long, the longest sequence first.
    """
    check_variable(x, "x", "lod_tensor_to_array")
    check_table(table, "lod_tensor_to_array")
    helper = LayerHelper("lod_tensor_to_array")
    array: Variable = helper.create_variable(
        name=helper._new_name("lod_tensor_to_array"), type=VarType.LOD_TENSOR_ARRAY, dtype=x.dtype
    )
    append_split(helper.main_program.current_block(), x, table, array)
    return array


def append_split(block: object, x: Variable, table: Variable, array: Variable) -> None:
    """Append to `block` the operator that writes the steps of `x` into `array`."""
    inputs = {"X": x, "RankTable": table}
    block.append_op(type="lod_tensor_to_array", inputs=inputs, outputs={"Out": array})  # type: ignore[attr-defined]


def array_to_lod_tensor(x: Variable, table: Variable) -> Variable:
    """The inverse of `lod_tensor_to_array` (`fluid.layers.control_flow.array_to_lod_tensor`).

    Args:
        x: an array with an element for each step.
        table: what `lod_rank_table` gives.

    Returns:
        The rows in the order in which the sequences were before they were ranked, with these sequences.
    """
    check_table(table, "array_to_lod_tensor")
    return run_layer("array_to_lod_tensor", locals(), RankTable="table")


def shrink_memory(x: Variable, i: Variable, table: Variable) -> Variable:
    """The rows, or sequences, of `x` that belong to sequences with more than `i` steps.

    Args:
        x: a row, or a sequence, for each ranked sequence (or for the first of them), in that order.
        i: the number of the step, int64 [1].
        table: what `lod_rank_table` gives.

    Follows `fluid.layers.control_flow.shrink_memory`.
    """
    check_table(table, "shrink_memory")
    helper = LayerHelper("shrink_memory")
    return run_layer("shrink_rnn_memory", locals(), without=("helper",), helper=helper, RankTable="table")


class DynamicRNN:
    """Runs a block for each step of sequences of different lengths (`fluid.layers.DynamicRNN`).

        rnn = fluid.layers.DynamicRNN()
        with rnn.block():
            word = rnn.step_input(sentences)                 # sentences: rows with one level of sequences
            state = rnn.memory(shape=[128], value=0.0)
            new = fluid.layers.fc([word, state], 128, act='tanh')
            rnn.update_memory(state, new)
            rnn.output(new)
        out = rnn()                                          # as many rows, in the same sequences

    Inside of the block the rows are those of the sequences that have such a step, the longest sequence first. `name`:
    what names of variables begin with.
    """

    BEFORE_RNN = 0
    IN_RNN = 1
    AFTER_RNN = 2

    def __init__(self, name: str | None = None) -> None:
        programs_only("DynamicRNN")
        self.helper = LayerHelper("dynamic_rnn", name=name)
        self.status = DynamicRNN.BEFORE_RNN
        self.lod_rank_table: Variable | None = None
        self.max_seq_len: Variable | None = None
        self.step_idx: Variable | None = None
        self.zero_idx: Variable | None = None
        self.mem_dict: dict[str, Variable] = {}
        self.mem_link: list[tuple[Variable, Variable]] = []
        self.output_array: list[Variable] = []
        self.outputs: list[Variable] = []
        self.input_array: list[Variable] = []
        self.cond = self.helper.create_variable_for_type_inference(dtype="bool")
        self.cond.stop_gradient = True
        self.while_op = While(self.cond)

    @contextmanager
    def block(self) -> Iterator[None]:
        """The block that is run in each step. Raises ValueError if it is entered a second time."""
        if self.status != DynamicRNN.BEFORE_RNN:
            raise ArgumentError("rnn.block() can only be invoke once")
        self.step_idx = fill_constant(shape=[1], dtype="int64", value=0, force_cpu=True)
        self.step_idx.stop_gradient = False
        self.status = DynamicRNN.IN_RNN
        with self.while_op.block():
            yield
            increment(self.step_idx, value=1.0, in_place=True)
            for new, array in self.mem_link:
                array_write(new, self.step_idx, array)
            if self.max_seq_len is None:
                raise ArgumentError("a DynamicRNN needs a step_input, which says how many steps there are")
            less_than(self.step_idx, self.max_seq_len, force_cpu=True, cond=self.cond)
        self.status = DynamicRNN.AFTER_RNN
        for array in self.output_array:
            self.outputs.append(array_to_lod_tensor(array, self._table()))

    def step_input(self, x: Variable, level: int = 0) -> Variable:
        """In each step, the step of the sequences of `x` that are that long.

        Args:
            x: rows in sequences. Those of the first step input say how many steps there are; others have to be as long.
            level: which level of sequences is gone through, 0 being the outermost. What is below stays in sequences.

        Raises:
            TypeError: x is no Variable. ValueError: outside of the block.
            EnforceNotMet: when it runs, if x has no such level, or too few steps.
        """
        self._inside("step_input")
        if not isinstance(x, Variable):
            raise TypeError("step_input() can only take a Variable as its input.")
        outside = outer_block(self.helper.main_program)
        from_outside(outside, x)
        if self.lod_rank_table is None:
            self._count_steps(outside, x, level)
        array = self._array(outside, "dynamic_rnn_input_array", x)
        self.input_array.append(array)
        append_split(outside, x, self._table(), array)
        return array_read(array, self._index())

    def _count_steps(self, outside: Block, x: Variable, level: int) -> None:
        """Append the operators that rank the sequences of `x` and compute the condition of the first step."""
        table = outside.create_var(
            name=outside._new_name("lod_rank_table"), type=VarType.LOD_RANK_TABLE, stop_gradient=True
        )
        outside.append_op(
            type="lod_rank_table", inputs={"X": x}, outputs={"Out": table}, attrs={"level": level}
        )
        longest = outside.create_var(name=outside._new_name("dynamic_rnn_max_seq_len"), dtype="int64")
        longest.stop_gradient = False
        outside.append_op(type="max_sequence_len", inputs={"RankTable": table}, outputs={"Out": longest})
        outside.append_op(
            type="less_than",
            inputs={"X": self.step_idx, "Y": longest},
            outputs={"Out": self.cond},
            attrs={"force_cpu": True},
        )
        self.lod_rank_table, self.max_seq_len = table, longest

    def static_input(self, x: Variable) -> Variable:
        """In each step, the rows (or sequences) of `x` that belong to the sequences which have such a step.

        `x`: a row, or a sequence, for each sequence of the step input. Raises TypeError if it is no Variable,
        ValueError outside of the block, RuntimeError before `step_input`.
        """
        self._inside("static_input")
        if not isinstance(x, Variable):
            raise TypeError("static_input() can only take a Variable as its input")
        if self.lod_rank_table is None:
            raise RuntimeError("static_input() must be called after step_input().")
        ordered = self._ordered("dynamic_rnn_static_input_reordered", x)
        return shrink_memory(ordered, self._index(), self.lod_rank_table)

    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        value: float = 0.0,
        need_reorder: bool = False,
        dtype: Any = "float32",
    ) -> Variable:
        """A state, as the step before left it (see `update_memory`).

        Args:
            init: its value in the first step, a row for each sequence; or else it is
            shape, value, dtype: `value` everywhere, `shape` being that of a row.
            need_reorder: the rows of init are in the order in which the sequences are fed. Without it row k belongs to
                the k-th longest sequence.

        Raises:
            TypeError: init is no Variable, or there is neither init nor shape. ValueError: outside of the block, or
                before `step_input`.
        """
        self._inside("memory")
        if init is None:
            return self._constant(shape, value, dtype)
        if not isinstance(init, Variable):
            raise TypeError("The input arg `init` of memory() must be a Variable")
        if self.lod_rank_table is None:
            what = ", need_reorder=True" if need_reorder else ""
            raise ArgumentTypeError(f"make sure step_input be invoked before memory(init=init{what})")
        outside = outer_block(self.helper.main_program)
        from_outside(outside, init)
        zero = self._zero(outside)
        start = self._ordered("dynamic_rnn_mem_init_reordered", init) if need_reorder else init
        array = self._array(outside, "dynamic_rnn_mem_array", init)
        outside.append_op(type="write_to_array", inputs={"X": start, "I": zero}, outputs={"Out": array})
        found = shrink_memory(array_read(array, self._index()), self._index(), self.lod_rank_table)
        self.mem_dict[found.name] = array
        return found

    def _constant(self, shape: Sequence[int] | None, value: float, dtype: Any) -> Variable:
        """A memory that is `value` everywhere."""
        if not self.input_array:
            raise ArgumentError("step_input should be invoked before memory(shape=..., value=...)")
        if shape is None:
            raise TypeError("memory() needs init or shape")
        outside = outer_block(self.helper.main_program)
        first = outside.create_var(name=outside._new_name("in0"), dtype=self.input_array[0].dtype)
        outside.append_op(
            type="read_from_array",
            inputs={"X": [self.input_array[0]], "I": [self._zero(outside)]},
            outputs={"Out": [first]},
        )
        start = outside.create_var(name=outside._new_name("mem_init"), dtype=dtype)
        outside.append_op(
            type="fill_constant_batch_size_like",
            inputs={"Input": [first]},
            outputs={"Out": [start]},
            attrs={"shape": [-1, *shape], "value": float(value), "dtype": int(start.dtype)},
        )
        return self.memory(init=start)

    def update_memory(self, ex_mem: Variable, new_mem: Variable) -> None:
        """In the next step, `ex_mem`, what `memory` gave, will be `new_mem`.

        Raises TypeError for anything but Variables, ValueError if `ex_mem` is no memory of this network.
        """
        self._inside("update_memory")
        for var, name in ((ex_mem, "ex_mem"), (new_mem, "new_mem")):
            if not isinstance(var, Variable):
                raise TypeError(f"The input arg `{name}` of update_memory() must be a Variable")
        array = self.mem_dict.get(ex_mem.name)
        if array is None:
            raise ArgumentError(
                f"Please invoke memory before update_memory: {ex_mem.name!r} is no memory of this DynamicRNN"
            )
        self.mem_link.append((new_mem, array))

    def output(self, *outputs: Variable) -> None:
        """Let the steps of `outputs`, put back into sequences, be results."""
        self._inside("output")
        outside = outer_block(self.helper.main_program)
        for each in outputs:
            if not isinstance(each, Variable):
                raise TypeError(f"output() can only take Variables, got {type(each).__name__}")
            array = self._array(outside, f"{self.helper.name}_output_array_{each.name}", each)
            array_write(each, self._index(), array)
            self.output_array.append(array)

    def __call__(self, *args: Any, **kwargs: Any) -> Variable | list[Variable]:
        """The result, or a list of them, with the sequences of the first step input, in the order in which it has them.

        Raises ValueError inside of the block.
        """
        if self.status != DynamicRNN.AFTER_RNN:
            raise ArgumentError("Output of the dynamic RNN can only be visited outside the rnn block.")
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs

    def _ordered(self, name: str, x: Variable) -> Variable:
        """The rows, or sequences, of `x` in the order of the table."""
        outside = outer_block(self.helper.main_program)
        from_outside(outside, x)
        made = outside.create_var(
            name=outside._new_name(name), lod_level=x.lod_level, dtype=x.dtype, shape=x.shape
        )
        outside.append_op(
            type="reorder_lod_tensor_by_rank",
            inputs={"X": [x], "RankTable": [self._table()]},
            outputs={"Out": [made]},
        )
        return made

    def _array(self, outside: Block, name: str, like: Variable) -> Variable:
        return outside.create_var(
            name=outside._new_name(name), type=VarType.LOD_TENSOR_ARRAY, dtype=like.dtype
        )

    def _zero(self, outside: Block) -> Variable:
        """The number of the first step."""
        if self.zero_idx is None:
            self.zero_idx = outside.create_var(name=outside._new_name("zero_idx"), dtype="int64")
            outside.append_op(
                type="fill_constant",
                outputs={"Out": [self.zero_idx]},
                attrs={"shape": [1], "dtype": int(VarType.INT64), "value": 0.0, "force_cpu": True},
            )
        return self.zero_idx

    def _table(self) -> Variable:
        assert self.lod_rank_table is not None
        return self.lod_rank_table

    def _index(self) -> Variable:
        assert self.step_idx is not None
        return self.step_idx

    def _inside(self, method: str) -> None:
        if self.status != DynamicRNN.IN_RNN:
            raise ArgumentError(f"{method} can only be invoked inside rnn block.")
