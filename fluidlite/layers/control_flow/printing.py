"""`fluid.layers.Print`."""

from __future__ import annotations

import itertools

from ...framework import Variable
from ...layer_helper import LayerHelper, check_variable
from ...op_functions import run_layer
from ..checks import check_choice

__all__ = ["Print"]

_serial = itertools.count(1)


def Print(
    input: Variable,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Variable:
    """Shows `input` whenever the program computes it, and passes it on (`fluid.layers.Print`).

    Only what uses the result is sure to come after the print.

    Args:
        input: the variable to show.
        first_n: the number of times to show it; -1: always.
        message: text put before it.
        summarize: how many elements to show; -1: all.
        print_tensor_name, print_tensor_type, print_tensor_shape, print_tensor_lod: what to show besides.
        print_phase: 'forward' shows the value, 'backward' its gradient, 'both' both.

    Returns:
        A variable equal to `input`.
    """
    check_variable(input, "input", "Print")
    check_choice(print_phase.upper(), "print_phase", ("FORWARD", "BACKWARD", "BOTH"), "Print")
    print_phase, message, tensor_name = print_phase.upper(), message or "", input.name
    serial, helper = next(_serial), LayerHelper(f"print_{input.name}")
    return run_layer("print", locals(), without=("helper",), helper=helper, In="input")
