"""Each construct in others: results and gradients, compiled against interpreted and against differences."""

import pytest

from .agreement import agree, check_slopes
from .parts import NEEDS
from .programs import (
    PROGRAMS,
    alone,
    batches,
    in_a_branch,
    in_a_loop,
    in_a_loop_that_replaces_all,
    in_a_switch,
    in_steps,
    in_steps_of_sequences,
    program,
)

IN_SEGMENTS = ("rows", "variable_of_branches_in_each_other", "in_steps_of_sequences static_rnn_of_states")


def is_one_plan(around, inside):
    """True if all sizes, and accesses to arrays, are known before a step."""
    if any(each in f"{around.__name__} {inside.__name__}" for each in IN_SEGMENTS):
        return False
    if "array" in inside.__name__:
        return around in (alone, in_steps, in_steps_of_sequences)
    return NEEDS[inside] != "words" or around in (
        alone,
        in_a_loop,
        in_a_loop_that_replaces_all,
        in_a_branch,
        in_a_switch,
    )


@pytest.mark.parametrize(("around", "inside"), PROGRAMS)
def test_compiled_as_interpreted(around, inside):
    text = agree(program(around, inside), batches())
    assert "run in segments" not in text or not is_one_plan(around, inside)


@pytest.mark.parametrize(("around", "inside"), [each for each in PROGRAMS if NEEDS[each[1]] != "words"][::3])
def test_gradients_are_slopes(around, inside):
    check_slopes(program(around, inside, "float64"), batches("float64")[1:5:3])
