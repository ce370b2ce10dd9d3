"""What is done to programs with tables on servers (`fluid.contrib.utils.lookup_table_utils`)."""

from __future__ import annotations

from collections.abc import Sequence

from ...base import missing
from ...framework import Program, Variable
from ...io.inference import MODEL as model_filename
from ...io.inference import with_ends

__all__ = ["get_inference_model", "lookup_table_dir", "model_filename"]

lookup_table_dir = "__lookup_table__"


def get_inference_model(
    main_program: Program, feeded_var_names: Sequence[str] | str, target_vars: Sequence[Variable] | Variable
) -> Program:
    """The part of a program that computes `target_vars` from the variables `feeded_var_names`, in test mode, with
    `feed` and `fetch` operators at its ends (`fluid.contrib.utils.lookup_table_utils.get_inference_model`).

    `main_program` is not changed. Raises ValueError for names and targets that are none, that the program does not
    have, or that the targets do not need.
    """
    feeds = [feeded_var_names] if isinstance(feeded_var_names, str) else list(feeded_var_names)
    if not feeds or not all(isinstance(name, str) for name in feeds):
        raise ValueError(f"feed_var_names should be a list of str, got {feeds!r}")
    targets = [target_vars] if isinstance(target_vars, Variable) else list(target_vars)
    if not targets or not all(isinstance(var, Variable) for var in targets):
        raise ValueError("target_vars should be a list of Variable, with at least one in it")
    for name in [*feeds, *(var.name for var in targets)]:
        main_program.global_block().var(name)
    outputs = [var.name for var in targets]
    return with_ends(main_program, feeds, outputs, outputs)


__getattr__ = missing.reporter(__name__)
