"""`StaticRNN`: a network that goes through a number of steps which all samples of a batch have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ....base.dtypes import VarType
from ....base.errors import ArgumentAssertion, ArgumentError
from ....framework import Block, Variable
from ....framework.gradients.blocks import names_from_outside
from ...layer_helper import LayerHelper, check_variable, check_variables
from .conditional_block import GuardOf, from_outside, outer_block, programs_only

__all__ = ["StaticRNN"]


class StaticRNNMemoryLink:
    """A state of a StaticRNN: its initial value (outside), and the variables that a step reads and writes (inside).

    Follows `fluid.layers.control_flow.StaticRNNMemoryLink`.
    """

    def __init__(self, init: Variable, pre_mem: Variable, mem: Variable | None = None) -> None:
        self.init = init
        self.pre_mem = pre_mem
        self.mem = mem


class StaticRNN:
    """Runs a block once for each step of its inputs, [steps, batch, ...] (`fluid.layers.StaticRNN`).

        rnn = fluid.layers.StaticRNN()
        with rnn.step():
            word = rnn.step_input(words)                          # words: [steps, batch, size]
            state = rnn.memory(shape=[-1, 128], batch_ref=word)
            new = fluid.layers.fc([word, state], 128, act='tanh')
            rnn.update_memory(state, new)
            rnn.step_output(new)
        out = rnn()                                               # [steps, batch, 128]

    `name`: the prefix of variables' names.
    """

    BEFORE_RNN_BLOCK = 0
    IN_RNN_BLOCK = 1
    AFTER_RNN_BLOCK = 2

    def __init__(self, name: str | None = None) -> None:
        programs_only("StaticRNN")
        self.helper = LayerHelper("static_rnn", name=name)
        self.status = StaticRNN.BEFORE_RNN_BLOCK
        self.inputs: list[Variable] = []
        self.outputs: list[Variable] = []
        self.seq_len: int | None = None
        self._sources: list[Variable] = []
        self._made: list[Variable] = []
        self._memories: dict[str, StaticRNNMemoryLink] = {}

    @contextmanager
    def step(self) -> Iterator[None]:
        """The block that is run in each step."""
        if self.status != StaticRNN.BEFORE_RNN_BLOCK:
            raise ArgumentError("step of a StaticRNN can be entered only once")
        program = self.helper.main_program
        block = program._create_block()
        self.status = StaticRNN.IN_RNN_BLOCK
        try:
            yield
            self._carry_states(block)
        finally:
            program._rollback()
            self.status = StaticRNN.AFTER_RNN_BLOCK
        self._append(block)

    def step_input(self, x: Variable) -> Variable:
        """In each step, the step of `x`, [steps, batch, ...]: [batch, ...].

        Raises TypeError for anything but a Variable, ValueError outside of the block or for inputs of another number
        of steps.
        """
        self._inside("step_input")
        check_variable(x, "x", "fluid.layers.StaticRNN.step_input")
        from_outside(outer_block(self.helper.main_program), x)
        if self.seq_len is None:
            self.seq_len = x.shape[0]
        elif x.shape[0] != -1 and self.seq_len != x.shape[0]:
            raise ArgumentError(
                f"Static RNN only take fix seq_len input: {x.name!r} has {x.shape[0]} steps, and "
                f"{self._sources[0].name!r} has {self.seq_len}"
            )
        made: Variable = self.helper.create_variable(
            name=x.name, dtype=x.dtype, shape=list(x.shape[1:]), type=x.type
        )
        self._sources.append(x)
        self.inputs.append(made)
        return made

    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        batch_ref: Variable | None = None,
        init_value: float = 0.0,
        init_batch_dim_idx: int = 0,
        ref_batch_dim_idx: int = 1,
    ) -> Variable:
        """A state, as the step before left it (see `update_memory`).

        Args:
            init: its value in the first step; or else it is
            shape, init_value: everywhere `init_value`, in this shape, where one size is that of the batch:
            batch_ref, init_batch_dim_idx, ref_batch_dim_idx: size `init_batch_dim_idx` is size `ref_batch_dim_idx` of
                `batch_ref`, a step input or a variable from outside, in the form it has there.

        Raises:
            TypeError: for arguments of other types.
            ValueError: outside of the block, or if neither init nor both shape and batch_ref are given.
        """
        self._inside("memory")
        self._check_kinds(init, shape, batch_ref)
        if init is None:
            if shape is None or batch_ref is None:
                raise ArgumentError("if init is None, memory at least need shape and batch_ref")
            start = self._boot(shape, batch_ref, init_value, init_batch_dim_idx, ref_batch_dim_idx)
        else:
            from_outside(outer_block(self.helper.main_program), init)
            start = init
        before: Variable = self.helper.create_variable(
            name=self.helper._new_name(f"{self.helper.name}@mem"), dtype=start.dtype, shape=start.shape
        )
        self._memories[before.name] = StaticRNNMemoryLink(start, before)
        return before

    @staticmethod
    def _check_kinds(init: Any, shape: Any, batch_ref: Any) -> None:
        layer = "fluid.layers.StaticRNN.memory"
        if init is not None:
            check_variable(init, "init", layer)
        if not isinstance(shape, (list, tuple, type(None))):
            raise TypeError(
                f"The type of 'shape' in {layer} must be list or tuple, but received {type(shape)}"
            )
        if batch_ref is not None:
            check_variable(batch_ref, "batch_ref", layer)

    def _boot(
        self, shape: Sequence[int], batch_ref: Variable, value: float, out_axis: int, ref_axis: int
    ) -> Variable:
        outside = outer_block(self.helper.main_program)
        from_outside(outside, batch_ref)
        if outside._find_var_recursive(batch_ref.name) is None:
            raise ArgumentError(
                f"batch_ref of memory must be a step input or a variable from outside of the block, and "
                f"{batch_ref.name!r} is neither"
            )
        boot = outside.create_var(
            name=outside._new_name(f"{self.helper.name}@memory_boot"),
            shape=list(shape),
            dtype=batch_ref.dtype,
            persistable=False,
        )
        outside.append_op(
            type="fill_constant_batch_size_like",
            inputs={"Input": [batch_ref.name]},
            outputs={"Out": [boot]},
            attrs={
                "value": float(value),
                "shape": list(shape),
                "dtype": int(boot.dtype),
                "input_dim_idx": ref_axis,
                "output_dim_idx": out_axis,
            },
        )
        return boot

    def update_memory(self, mem: Variable, var: Variable) -> None:
        """In the next step, `mem`, what `memory` gave, will be `var`; of several updates the last one counts.

        Raises TypeError for anything but Variables, ValueError if `mem` is no memory of this network.
        """
        check_variables("fluid.layers.StaticRNN.update_memory", mem=mem, var=var)
        if mem.name not in self._memories:
            raise ArgumentError(
                f"{mem.name!r} is no memory of this StaticRNN: update_memory takes what memory gave"
            )
        self._memories[mem.name].mem = var

    def step_output(self, o: Variable) -> None:
        """Let the steps of `o`, stacked, be a result. Raises TypeError for anything but a Variable."""
        self._inside("step_output")
        check_variable(o, "o", "fluid.layers.StaticRNN.step_output")
        copied = self._copied(o)
        self._made.append(copied)
        self.outputs.append(
            outer_block(self.helper.main_program).create_var(
                name=copied.name,
                shape=[-1 if self.seq_len is None else self.seq_len, *copied.shape],
                dtype=copied.dtype,
            )
        )

    def output(self, *outputs: Variable) -> None:
        """`step_output` of each of `outputs`."""
        for each in outputs:
            self.step_output(each)

    def __call__(self, *args: Any, **kwargs: Any) -> Variable | list[Variable]:
        """The result, or a list of them. Raises ValueError inside of the block, and if there is none."""
        if self.status != StaticRNN.AFTER_RNN_BLOCK:
            raise ArgumentError("RNN output can only be retrieved after rnn block")
        if not self.outputs:
            raise ArgumentError("RNN has no output")
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs

    def _copied(self, var: Variable) -> Variable:
        """Copy `var` by `rnn_memory_helper`: each output and memory has a variable of its own, as in Fluid."""
        made: Variable = self.helper.create_variable_for_type_inference(dtype=var.dtype)
        self.helper.append_op(
            type="rnn_memory_helper",
            inputs={"X": [var]},
            outputs={"Out": [made]},
            attrs={"dtype": int(var.dtype)},
        )
        return made

    def _carry_states(self, block: Block) -> None:
        for name, memory in self._memories.items():
            if memory.mem is None:
                raise ArgumentAssertion(f"{name} should be updated in every step: call update_memory")
            memory.mem = self._copied(memory.mem)

    def _append(self, block: Block) -> None:
        """Append the operator that runs the block."""
        outside = self.helper.main_program.current_block()
        memories = list(self._memories.values())
        read, _ = names_from_outside(block)
        scopes = outside.create_var(type=VarType.STEP_SCOPES)
        outside.append_op(
            type="recurrent",
            inputs={
                "inputs": self._sources,
                "initial_states": [memory.init for memory in memories],
                "parameters": read,
            },
            outputs={"outputs": self.outputs, "step_scopes": [scopes]},
            attrs={
                "has_states": bool(memories),
                "ex_states": [memory.pre_mem.name for memory in memories],
                "states": [memory.mem.name for memory in memories if memory.mem is not None],
                "sub_block": block,
            },
        )

    def _inside(self, method: str) -> None:
        if self.status != StaticRNN.IN_RNN_BLOCK:
            raise ArgumentError(f"You must invoke {method} in rnn block")


class BlockGuardWithCompletion(GuardOf):
    """`with BlockGuardWithCompletion(rnn):` is `with rnn.step():`; TypeError for anything but a StaticRNN.

    Follows `fluid.layers.control_flow.BlockGuardWithCompletion`.
    """

    def __init__(self, rnn: StaticRNN) -> None:
        if not isinstance(rnn, StaticRNN):
            raise TypeError("BlockGuardWithCompletion takes a StaticRNN")
        super().__init__(rnn.helper.main_program, rnn.step())
        self.rnn = rnn
