"""`IfElse`: two blocks, each for a part of the rows of a batch, by a mask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from ....base.errors import ArgumentError, ArgumentTypeError
from ....framework import Variable
from ...layer_helper import LayerHelper, check_variable
from ...op_functions import run_layer
from ..tensor.variables import assign
from .conditional_block import ConditionalBlock, GuardOf, from_outside, outer_block, programs_only

__all__ = ["IfElse"]


def split_lod_tensor(input: Variable, mask: Variable, level: int = 0) -> tuple[Variable, Variable]:
    """The rows of `input` where `mask` is true, and those where it is not.

    Args:
        input: [rows, ...]. If it has sequences, those of `level` stay together.
        mask: bool [n, 1] or [n]: one element for each sequence, or row.
        level: of the sequences.

    Returns:
        Two Variables. Follows `fluid.layers.control_flow.split_lod_tensor`.
    """
    return run_layer("split_lod_tensor", locals(), X="input")


def merge_lod_tensor(
    in_true: Variable, in_false: Variable, x: Variable, mask: Variable, level: int = 0
) -> Variable:
    """Merge two tensors that `split_lod_tensor` has split.

    Args:
        in_true, in_false: the rows, or sequences, where `mask` is true and where it is not, in order.
        x: the sequences above `level` are those of this variable.
        mask: bool [n, 1] or [n].
        level: of the sequences.

    Returns:
        A Variable. Follows `fluid.layers.control_flow.merge_lod_tensor`.
    """
    return run_layer("merge_lod_tensor", locals())


class IfElse:
    """The rows of a batch where `cond` is true go through one block, the others through another one.

        choice = fluid.layers.IfElse(cond)
        with choice.true_block():
            choice.output(fluid.layers.scale(choice.input(x), 2.0))
        with choice.false_block():
            choice.output(choice.input(x))
        (out,) = choice()

    A block whose side has no rows does not run. Follows `fluid.layers.IfElse`.

    Args:
        cond: bool [rows, 1]; one element for each sequence where inputs have some.
        name: the prefix of the outputs' names.

    Raises:
        TypeError: `cond` is no Variable.
    """

    OUT_IF_ELSE_BLOCKS = 0
    IN_IF_ELSE_TRUE_BLOCKS = 1
    IN_IF_ELSE_FALSE_BLOCKS = 2

    def __init__(self, cond: Variable, name: str | None = None) -> None:
        if not isinstance(cond, Variable):
            raise ArgumentTypeError(
                f"The type of 'cond' in fluid.layers.IfElse must be Variable, but received {type(cond)}."
            )
        programs_only("IfElse")
        self.helper = LayerHelper("ifelse", name=name)
        self.cond = cond
        self.input_table: dict[str, tuple[Variable, Variable]] = {}
        self.status = IfElse.OUT_IF_ELSE_BLOCKS
        self.conditional_true_block = ConditionalBlock([cond])
        self.conditional_false_block = ConditionalBlock([cond])
        self.output_table: tuple[list[Variable], list[Variable]] = ([], [])
        """The outputs of the false block and those of the true one."""

    def input(self, x: Variable) -> Variable:
        """The rows of `x` that go through the block that is being built. Raises ValueError outside of one."""
        if self.status == IfElse.OUT_IF_ELSE_BLOCKS:
            raise ArgumentError("input must in true/false blocks")
        check_variable(x, "x", "fluid.layers.IfElse.input")
        if x.name not in self.input_table:
            parent = outer_block(self.helper.main_program)
            from_outside(parent, x)
            yes, no = (
                parent.create_var(name=parent._new_name("ifelse_input" + self.helper.name), dtype=x.dtype)
                for _ in range(2)
            )
            parent.append_op(
                type="split_lod_tensor",
                inputs={"X": x, "Mask": self.cond},
                outputs={"OutTrue": yes, "OutFalse": no},
                attrs={"level": 0},
            )
            self.input_table[x.name] = yes, no
        yes, no = self.input_table[x.name]
        return yes if self.status == IfElse.IN_IF_ELSE_TRUE_BLOCKS else no

    def true_block(self) -> AbstractContextManager[None]:
        """Build what happens to the rows where the condition is true: `with choice.true_block():`."""
        return self._block(IfElse.IN_IF_ELSE_TRUE_BLOCKS)

    def false_block(self) -> AbstractContextManager[None]:
        """Build what happens to the other rows: `with choice.false_block():`."""
        return self._block(IfElse.IN_IF_ELSE_FALSE_BLOCKS)

    @contextmanager
    def _block(self, status: int) -> Iterator[None]:
        if self.status != IfElse.OUT_IF_ELSE_BLOCKS:
            raise ArgumentError("You cannot invoke IfElse.block() inside a block")
        taken = status == IfElse.IN_IF_ELSE_TRUE_BLOCKS
        self.status = status
        try:
            with (self.conditional_true_block if taken else self.conditional_false_block).block():
                yield
        finally:
            self.status = IfElse.OUT_IF_ELSE_BLOCKS
        if not self.output_table[taken]:
            raise ArgumentError("Must set output inside block")

    def output(self, *outs: Variable) -> None:
        """Results of the block that is being built, as many and in the same order in both blocks.

        Raises ValueError outside of a block, TypeError for anything but Variables.
        """
        if self.status == IfElse.OUT_IF_ELSE_BLOCKS:
            raise ArgumentError("output can only be invoked in the sub-block")
        parent = outer_block(self.helper.main_program)
        for out in outs:
            if not isinstance(out, Variable):
                raise ArgumentTypeError(
                    "The type of 'each output' in fluid.layers.IfElse.output must be Variable, but received "
                    f"{type(out)}."
                )
            outside = parent.create_var(name=parent._new_name(f"{self.helper.name}_output"), dtype=out.dtype)
            self.output_table[self.status == IfElse.IN_IF_ELSE_TRUE_BLOCKS].append(outside)
            assign(out, outside)

    def __call__(self) -> list[Variable]:
        """The outputs with the rows of both blocks, in the order of the batch; those of the only block if there is one.

        Raises ValueError if there is no block, the blocks have different numbers of outputs, or inside of one.
        """
        if self.status != IfElse.OUT_IF_ELSE_BLOCKS:
            raise ArgumentError("IfElse::__call__ must be out of sub-block")
        no, yes = self.output_table
        if not no and not yes:
            raise ArgumentError("Must invoke true_block/false_block before __call__")
        if not no or not yes:
            return no or yes
        if len(no) != len(yes):
            raise ArgumentError(
                f"The output side must be same: true_block has {len(yes)} outputs, false_block {len(no)}"
            )
        return [
            merge_lod_tensor(in_true, in_false, x=self.cond, mask=self.cond)
            for in_true, in_false in zip(yes, no, strict=True)
        ]


class IfElseBlockGuard(GuardOf):
    """`with IfElseBlockGuard(True, choice):` is `with choice.true_block():`, with False `choice.false_block()`.

    Raises TypeError for anything but an IfElse, ValueError inside of a block.
    Follows `fluid.layers.control_flow.IfElseBlockGuard`.
    """

    def __init__(self, is_true: bool, ifelse: IfElse) -> None:
        if not isinstance(ifelse, IfElse):
            raise ArgumentTypeError(f"IfElseBlockGuard takes an IfElse, got {type(ifelse)}.")
        if ifelse.status != IfElse.OUT_IF_ELSE_BLOCKS:
            raise ArgumentError("You cannot invoke IfElse.block() inside a block")
        block = ifelse.true_block() if is_true else ifelse.false_block()
        super().__init__(ifelse.helper.main_program, block)
        self.is_true, self.ie = is_true, ifelse
