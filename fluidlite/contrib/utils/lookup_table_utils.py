"""Programs with distributed lookup tables (`fluid.contrib.utils.lookup_table_utils`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ...base import missing
from ...executor import Executor
from ...framework import Program, Variable
from ...io.inference import MODEL as model_filename
from ...io.inference import with_ends
from ...io.saving import load_parts

__all__ = [
    "get_inference_model",
    "load_persistables_for_increment",
    "lookup_table_dir",
    "model_filename",
]

lookup_table_dir = "__lookup_table__"


def get_inference_model(
    main_program: Program, feeded_var_names: Sequence[str] | str, target_vars: Sequence[Variable] | Variable
) -> Program:
    """The part of a program that computes `target_vars` from the variables `feeded_var_names`, in test mode, with
    `feed` and `fetch` operators at its ends (`fluid.contrib.utils.lookup_table_utils.get_inference_model`).

    `main_program` is not changed. Raises ValueError for names and targets that are invalid, unknown to the program, or
    not needed.
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


def load_persistables_for_increment(
    dirname: str | os.PathLike[str],
    executor: Executor,
    program: Program,
    lookup_table_var: str,
    lookup_table_var_path: str | os.PathLike[str],
) -> None:
    """Load the variables of a parameter server's program, to resume training: its shards of saved ones, and its table.

    Follows `fluid.contrib.utils.lookup_table_utils.load_persistables_for_increment`.

    Args:
        dirname: a folder with the whole variables, each in a file of its name.
        executor: not needed; the variables go into the global scope.
        program: a result of `DistributeTranspiler.get_pserver_program`.
        lookup_table_var: the table's variable, or this server's shard of it.
        lookup_table_var_path: the file with its value.

    Raises:
        ValueError: there is no such folder or file, or `program` is no server's program.
    """
    if not os.path.isdir(dirname):
        raise ValueError(f"There is no directory named {os.fspath(dirname)!r}")
    if not os.path.exists(lookup_table_var_path):
        raise ValueError(f"There is no file named {os.fspath(lookup_table_var_path)!r}")
    if not isinstance(program, Program) or program._ps_endpoint is None:
        raise ValueError("program must be an instance of fluid.Program, as get_pserver_program() gives it")
    program.global_block().var(lookup_table_var)
    load_parts(Path(dirname), program, {lookup_table_var: Path(lookup_table_var_path)})


__getattr__ = missing.reporter(__name__)
