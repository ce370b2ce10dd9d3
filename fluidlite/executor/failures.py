"""Errors of a step, with the operator, the variable, and what to do; refusals of the compiler, failures of guards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NoReturn

from ..base.callsite import describe
from ..base.errors import EnforceNotMet, EOFException, called
from ..framework import Operator, Program
from ..framework.verify import suggest
from ..ops.program.host import ENDS
from ..ops.registry import OperatorError


@called("EnforceNotMet")
class NotFed(EnforceNotMet):
    """An operator reads a variable that should be fed and was not.

    `where`: the operator and variable, for the message; `name`: the variable; `fed`: the names that were fed.
    """

    def __init__(self, where: str, name: str, fed: Iterable[str]) -> None:
        import difflib  # slow to import

        names = sorted(fed)
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean it by {close[0]!r}?" if close else ""
        super().__init__(
            f"{where}, which is not initialized: it was not fed. Fed were: {names or 'none'}{hint}"
        )
        self.where, self.name = where, name

    def among(self, fed: Iterable[str]) -> NotFed:
        """The same error with the names that the user fed, including those that the program does not declare."""
        return NotFed(self.where, self.name, fed)


def missing_value(op: Operator, name: str, fed: Iterable[str] = ()) -> EnforceNotMet:
    """The error for an operator input without a value when the operator runs."""
    var = op.block._find_var_recursive(name)
    where = f"operator {op.type} needs variable {name!r}{describe(op.line)}"
    if var is not None and var.persistable:
        return EnforceNotMet(
            f"{where}, which has not been initialized. Run the startup program first: exe.run(startup_program), "
            "after optimizer.minimize and in the same scope"
        )
    if var is not None and (var.is_data or (var.op is not None and var.op.type in ENDS)):
        return NotFed(where, name, fed)
    if var is not None and var.op is not None and var.op.definition.planning.pattern == "read":
        return EnforceNotMet(
            f"{where}, which is not initialized: it was read beyond the end of array {var.op.inputs['X'][0]!r}"
            f"{describe(var.op.line)}"
        )
    return EnforceNotMet(f"{where}, which no operator before it has computed")


@called("EnforceNotMet")
class UnknownFetch(EnforceNotMet):
    """A name in fetch_list that the program does not compute."""

    def __init__(self, name: str, program: Program, note: str = "") -> None:
        names = [name for block in program.blocks for name in block.vars]
        if name in names:
            text = "which no operator of the program computes"
        else:
            text = f"which the program does not have{suggest(name, names)}"
        super().__init__(f"fetch_list names variable {name!r}, {text}. {_fetchable(program)}{note}")
        self._given = name, program

    def in_default_program(self) -> UnknownFetch:
        """The same error for a step that no program was given for."""
        return UnknownFetch(
            *self._given,
            ". No program was passed: exe.run ran fluid.default_main_program(); pass program=...",
        )


def _fetchable(program: Program) -> str:
    """The names that an operator of the program computes, without gradients and state; of many the last ones."""
    computed = [
        name
        for name, var in program.global_block().vars.items()
        if var.op is not None and not var.persistable and "@" not in name
    ]
    if not computed:
        return "It computes nothing"
    last = ", ".join(map(repr, computed[-_SHOWN:]))
    return f"It computes {last}{f' and {len(computed) - _SHOWN} more' if len(computed) > _SHOWN else ''}"


_SHOWN = 8


def in_operator(op: Operator, error: Exception) -> Exception:
    """`error`, raised by `op`, with the operator and the user's line in its message."""
    if isinstance(error, EOFException):
        return error
    if op.definition.effects.user_errors and not isinstance(error, EnforceNotMet):
        return error
    at = describe(op.line)
    names = ", ".join(f"{slot}={names}" for slot, names in op.inputs.items())
    if isinstance(error, EnforceNotMet):
        text = str(error)
        if at and at in text:
            return error
        if isinstance(error, OperatorError) and not any(
            re.search(rf"\b{re.escape(name)}\b", text) for name in op.reads()
        ):
            text = f"{text} ({names})"
        return type(error)(text + at)
    return OperatorError(f"operator {op.type} ({names}) failed: {type(error).__name__}: {error}{at}")


def raise_in_operator(op: Operator, error: Exception) -> NoReturn:
    """Raise the result of `in_operator`, from an except clause."""
    located = in_operator(op, error)
    if located is error:
        raise
    raise located from (None if isinstance(error, EnforceNotMet) else error)


def refusal(op: Operator, message: str) -> OperatorError:
    """The error of an operator that cannot run, with the user's line."""
    return OperatorError(f"operator {op.type}: {message}{describe(op.line)}")


def shape_text(shape: Iterable[int]) -> str:
    """A shape as Fluid prints it, with None for a variable size."""
    return "[" + ", ".join("None" if n < 0 else str(n) for n in shape) + "]"


class Unsupported(Exception):
    """A program cannot be planned; the message says why.

    `op`: the operator to blame, if it is a single one; `retryable`: whether a later step of the program may be planned.
    """

    def __init__(self, reason: str, op: Operator | None = None, retryable: bool = False) -> None:
        super().__init__(reason)
        self.op = op
        self.retryable = retryable


class DataDependentShape(Unsupported):
    """A size depends on data, in a request that does not allow data-dependent sizes."""


class GuardFailure(Exception):
    """A guard of a running plan has failed: a data-dependent size, or an element of an array, is not as planned.

    `sizes`: the data-dependent sizes computed so far, by label, if one of them has failed a guard.
    """

    def __init__(self, reason: str, sizes: Mapping[str, int] | None = None) -> None:
        super().__init__(reason)
        self.sizes = sizes
