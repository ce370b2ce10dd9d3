"""Inference models: a program pruned to its outputs, with its parameters (`fluid.io.save_inference_model`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...base import flags
from ...base.dtypes import VarType
from ...base.errors import FormatError, NotSupportedError
from ...base.storage.files import also_by_url, atomic_files, write_file
from ...framework import Program, Variable
from ...framework.serialization.proto import parse_program
from ...ops.program.host import ENDS
from .saving import Folder, load_persistables, save_persistables
from .selection import as_program

MODEL = "__model__"
"""The default name of the program's file."""


@also_by_url("dirname", 0, writes=True)
def save_inference_model(
    dirname: Folder,
    feeded_var_names: Sequence[str] | str,
    target_vars: Sequence[Variable] | Variable,
    executor: Any,
    main_program: Program | None = None,
    model_filename: str | None = None,
    params_filename: str | None = None,
    export_for_deployment: bool = True,
    program_only: bool = False,
) -> list[str]:
    """Save what is needed to compute `target_vars` from the variables `feeded_var_names`
    (`fluid.io.save_inference_model`).

    Args:
        dirname: the folder, which gets the program, in test mode and without what the targets do not need, and its
            parameters.
        feeded_var_names: names of variables to feed.
        target_vars: Variables to fetch.
        executor: not needed and there for Fluid's sake.
        main_program: the default main program by default; it is not changed.
        model_filename: the file of the program; `__model__` by default.
        params_filename: one file for all parameters; by default each has one.
        export_for_deployment: False saves the whole `main_program`, to train it further, as
            `__model__.main_program`, for which neither names nor targets are needed.
        program_only: leave the parameters out.

    Returns:
        The names that the outputs have in the saved program.

    Raises:
        ValueError: names or targets are none, or the program does not have them, or the targets do not need one that is
            fed.
        EnforceNotMet: a parameter has no value; nothing has been written.

    Example:
        >>> import tempfile
        >>> import paddle.fluid as fluid

        >>> x = fluid.data("x", [None, 2], "float32")
        >>> y = fluid.layers.fc(x, 1)
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> exe.run(fluid.default_startup_program())
        []
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = fluid.io.save_inference_model(folder, ["x"], [y], exe)
        ...     program, feeds, fetches = fluid.io.load_inference_model(folder, exe)
        >>> feeds, fetches[0].shape
        (['x'], (-1, 1))
    """
    program = as_program(main_program)
    targets = [target_vars] if isinstance(target_vars, Variable) else target_vars
    model = os.path.basename(model_filename) if model_filename is not None else MODEL
    if export_for_deployment:
        feeds = [feeded_var_names] if isinstance(feeded_var_names, str) else list(feeded_var_names)
        if not all(isinstance(name, str) for name in feeds):
            raise ValueError(f"'feed_var_names' should be a list of str, got {feeds!r}")
        if not targets or not all(isinstance(var, Variable) for var in targets):
            raise ValueError("'target_vars' should be a list of Variable, with at least one in it")
        saved, outputs = _for_inference(program, feeds, list(targets))
    else:
        saved, outputs, model = program, [var.name for var in targets], model + ".main_program"
    data = saved.desc.serialize_to_string()
    with atomic_files():
        write_file(Path(dirname) / model, data)
        if not program_only:
            params = None if params_filename is None else os.path.basename(params_filename)
            save_persistables(executor, dirname, saved, params)
    return outputs


@also_by_url("dirname", 0)
def load_inference_model(
    dirname: Folder | None,
    executor: Any,
    model_filename: str | bytes | None = None,
    params_filename: str | bytes | None = None,
    pserver_endpoints: Any = None,
) -> list[Any]:
    """Load what `save_inference_model` or Fluid 1.8 saved (`fluid.io.load_inference_model`).

    Args:
        dirname: the folder. None: the file names are the contents of the two files instead.
        executor: an Executor; the parameters go into the global scope.
        model_filename: the file of the program in it; `__model__` by default.
        params_filename: the file of all parameters, if they are in one.
        pserver_endpoints: the servers that are asked for tables which they hold.

    Returns:
        A list: the Program, the names of the variables to feed, the Variables to fetch.

    Raises:
        ValueError: the folder is missing.
        FileNotFoundError: a file is missing.
        FormatError: a file is damaged or foreign.
        NotSupportedError: the program has operators that fluidlite does not have, or that do more than compute (see
            `parse_model`).

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> x = fluid.data("x", [None, 2], "float32")
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = fluid.io.save_inference_model(folder, ["x"], [x * 2], exe)
        ...     program, names, fetches = fluid.io.load_inference_model(folder, exe)
        >>> exe.run(program, feed={names[0]: np.ones([1, 2], "float32")}, fetch_list=fetches)
        [array([[2., 2.]], dtype=float32)]
    """
    if dirname is None:
        if not isinstance(model_filename, (bytes, bytearray)):
            raise TypeError(
                "load_inference_model without dirname takes the program as bytes in model_filename"
            )
        data, source = bytes(model_filename), "the program given as bytes"
    else:
        if not os.path.isdir(dirname):
            raise ValueError(f"There is no directory named {os.fspath(dirname)!r}")
        name = MODEL if model_filename is None else os.path.basename(os.fsdecode(model_filename))
        path = Path(dirname) / name
        data, source = path.read_bytes(), str(path)
    program = parse_model(data, source)
    feeds, fetches = ends_of(program, source)
    for op in program.global_block().ops if pserver_endpoints else ():
        if op.has_attr("epmap"):
            op._set_attr("epmap", list(pserver_endpoints))
    if any(True for var in program.list_vars() if var.persistable):
        load_persistables(executor, dirname, program, params_filename)
    return [program, feeds, [program.global_block().var(name) for name in fetches]]


def parse_model(data: bytes, source: str) -> Program:
    """The program of an untrusted model, which may only compute. Errors are those of `parse_program` and
    `must_only_compute`.
    """
    program = parse_program(data, source)
    must_only_compute(program, source)
    return program


def must_only_compute(program: Program, source: str) -> None:
    """Raise NotSupportedError, unless FLUIDLITE_TRUST_MODELS=1, if a program loaded from `source` has operators
    that write or read files, open connections or call Python functions.
    """
    trusted = flags.switch("FLUIDLITE_TRUST_MODELS")
    for block in program.blocks if not trusted else ():
        for op in block.ops:
            if op.definition.effects.external:
                raise NotSupportedError(
                    f"{source} has an operator {op.type}, which {op.definition.effects.external}; a model should only "
                    "compute. "
                    "If you know who made it, set the environment variable FLUIDLITE_TRUST_MODELS=1"
                )


def prepend_feed_ops(
    program: Program, feed_target_names: Sequence[str], feed_holder_name: str = "feed"
) -> None:
    """Mark the variables `feed_target_names` as the inputs of a program to be saved
    (`fluid.io.prepend_feed_ops`).
    """
    if not feed_target_names:
        return
    block = program.global_block()
    holder = block.create_var(name=feed_holder_name, type=VarType.FEED_MINIBATCH, persistable=True)
    for number, name in enumerate(feed_target_names):
        block._prepend_op(
            type="feed", inputs={"X": [holder]}, outputs={"Out": [block.var(name)]}, attrs={"col": number}
        )


def append_fetch_ops(
    program: Program, fetch_target_names: Sequence[str], fetch_holder_name: str = "fetch"
) -> None:
    """Mark the variables `fetch_target_names` as the outputs of a program to be saved
    (`fluid.io.append_fetch_ops`).
    """
    block = program.global_block()
    holder = block.create_var(name=fetch_holder_name, type=VarType.FETCH_LIST, persistable=True)
    for number, name in enumerate(fetch_target_names):
        block.append_op(type="fetch", inputs={"X": [name]}, outputs={"Out": [holder]}, attrs={"col": number})


def _for_inference(
    program: Program, feeds: list[str], targets: Sequence[Variable]
) -> tuple[Program, list[str]]:
    """A copy of `program` pruned to the targets, with feed and fetch operators, and the names of its outputs."""
    copy = program.clone()
    _remove_ends(copy)
    block = copy.global_block()
    for name in [*feeds, *(var.name for var in targets)]:
        block.var(name)
    outputs = [_scaled(copy, number, block.var(target.name)) for number, target in enumerate(targets)]
    return with_ends(copy, feeds, outputs, [var.name for var in targets]), outputs


def with_ends(
    program: Program, feeds: Sequence[str], outputs: Sequence[str], targets: Sequence[str]
) -> Program:
    """A copy of `program` in test mode, cut down to what computes `outputs` from `feeds`, with its ends marked.

    Messages call the outputs `targets`.
    """
    copy = program._prune(outputs, feeds)
    read = {name for every in copy.blocks for op in every.ops for name in op.input_arg_names}
    for name in feeds:
        if name not in read:
            raise ValueError(
                f"feeded_var_names has {name!r}, but {', '.join(targets)} can be computed without it; leave it out"
            )
    for every in copy.blocks:
        for op in every.ops:
            if "is_test" in op.definition.attrs:
                op._set_attr("is_test", True)
    prepend_feed_ops(copy, feeds)
    append_fetch_ops(copy, outputs)
    return copy


def _scaled(program: Program, number: int, target: Variable) -> str:
    """The name of a new variable equal to `target`: an output of its own, which no pass may rename or
    overwrite.
    """
    block = program.global_block()
    out = block.create_var(
        name=block._new_name(f"save_infer_model/scale_{number}.tmp"),
        shape=target.shape,
        dtype=target.dtype,
        lod_level=target.lod_level,
    )
    attrs = {"scale": 1.0, "bias": 0.0, "bias_after_scale": True}
    block.append_op(type="scale", inputs={"X": [target]}, outputs={"Out": [out]}, attrs=attrs)
    return out.name


def ends_of(program: Program, source: str) -> tuple[list[str], list[str]]:
    """The names of the inputs and outputs of a loaded program, by its `feed` and `fetch` operators."""
    ops = program.global_block().ops
    feeds = {op.attr("col"): op.output("Out")[0] for op in ops if op.type == "feed"}
    fetches = {op.attr("col"): op.input("X")[0] for op in ops if op.type == "fetch"}
    for ends in (feeds, fetches):
        if sorted(ends) != list(range(len(ends))):
            raise FormatError(
                f"{source} is a damaged program: its inputs or outputs are numbered {sorted(ends)}"
            )
    if not fetches:
        raise FormatError(
            f"{source} is not an inference model: it has no outputs (save it with save_inference_model)"
        )
    return [feeds[n] for n in sorted(feeds)], [fetches[n] for n in sorted(fetches)]


def _remove_ends(program: Program) -> None:
    """Take the `feed` and `fetch` operators off a copy of a loaded program, which is to get others."""
    block = program.global_block()
    ends = [op for op in block.ops if op.type in ENDS]
    block.ops = [op for op in block.ops if op.type not in ENDS]
    for name in {(op.input("X") if op.type == "feed" else op.output("Out"))[0] for op in ends}:
        block._remove_var(name)
