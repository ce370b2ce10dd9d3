"""Programs in binary and text files, and checks of saved models (`fluid.incubate.fleet.utils.utils`)."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .....base.dtypes import VarType, to_numpy
from .....base.place import CPUPlace
from .....base.storage.files import write_file
from .....executor import Executor, LoDTensor
from .....framework import Block, Program, Variable
from .....framework.serialization import proto
from .... import debugger
from ....io import load_vars
from ....io.inference import must_only_compute
from ....small_modules import get_logger

__all__ = [
    "check_pruned_program_vars",
    "check_saved_vars_try_dump",
    "graphviz",
    "load_program",
    "parse_program",
    "program_type_trans",
    "save_program",
]

logger = get_logger(__name__, logging.INFO, fmt="%(asctime)s - %(levelname)s - %(message)s")

persistable_vars_out_fn = "vars_persistable.log"
all_vars_out_fn = "vars_all.log"
ops_out_fn = "ops.log"
"""The files of `parse_program`."""

feed_fetch_type_list = [VarType.FEED_MINIBATCH, VarType.FETCH_LIST]
not_expected_op_types = ["lookup_table"]


def load_program_binary(model_filename: str) -> Program:
    """The program in a file like `__model__`. Raises FormatError if it holds none."""
    with open(model_filename, "rb") as file:
        return proto.parse_program(file.read(), model_filename)


def load_program_text(model_filename: str) -> Program:
    """The program in a file with the text of `print(program)`. Raises FormatError if it holds none."""
    with open(model_filename, encoding="utf-8", errors="replace") as file:
        return proto.parse_program_text(file.read(), model_filename)


def load_program(model_filename: str, is_text: bool = False) -> Program:
    """The program in a file: `load_program_text` or `load_program_binary`."""
    return (load_program_text if is_text else load_program_binary)(model_filename)


def save_program(program: Program, model_filename: str = "__model__", is_text: bool = False) -> None:
    """Write a program as text or as `save_inference_model` does."""
    data = str(program).encode() if is_text else program.desc.serialize_to_string()
    write_file(model_filename, data, folders=False)


def program_type_trans(prog_dir: str, prog_fn: str, is_text: bool) -> str:
    """Convert a binary program to `NAME.pbtxt`, or with `is_text` a text to `NAME.bin`; returns the new name."""
    new_name = prog_fn + (".bin" if is_text else ".pbtxt")
    save_program(
        load_program(os.path.join(prog_dir, prog_fn), is_text), os.path.join(prog_dir, new_name), not is_text
    )
    return new_name


def check_not_expected_ops(prog: Program) -> None:
    """Log a warning for operators of `not_expected_op_types`."""
    unexpected = sorted({op.type for op in prog.global_block().ops} & set(not_expected_op_types))
    if unexpected:
        logger.warning(
            "find op type '%s' in program, please check if your program is pruned correctly", unexpected
        )


def check_pruned_program_vars(train_prog: Program, pruned_prog: Program) -> bool:
    """True if a pruned program's persistable variables have the shapes and types of those of the whole program.

    Differences are logged, and variables that the whole program lacks, which are ignored.
    """
    agree = True
    kept = _persistable(pruned_prog)
    logger.info("persistable vars in pruned program: %s", [var.name for var in kept])
    for var in kept:
        whole = train_prog.global_block().vars.get(var.name)
        if whole is None:
            logger.error("not find variable '%s' in train program. please check pruning.", var.name)
        elif (var.shape, var.dtype) != (whole.shape, whole.dtype):
            logger.error(
                "variable: %s not match. in pruned program shape: %s dtype: %s, in train program shape: %s dtype: %s",
                var.name, var.shape, var.dtype, whole.shape, whole.dtype,
            )  # fmt: skip
            agree = False
    return agree


def parse_program(program: Program, output_dir: str) -> None:
    """Write the variables, persistable variables and operators of a program to three files in `output_dir`."""
    block = program.global_block()
    described = {
        persistable_vars_out_fn: (
            "persistable vars",
            [_described(var, True) for var in _persistable(program)],
        ),
        all_vars_out_fn: ("all vars", [_described(var) for var in block.vars.values()]),
        ops_out_fn: (
            "ops",
            [
                {
                    "type": op.type,
                    "input_arg_names": str(op.input_arg_names),
                    "output_arg_names": str(op.output_arg_names),
                }
                for op in block.ops
            ],
        ),
    }
    for name, (title, lines) in described.items():
        write_file(
            os.path.join(output_dir, name), "\n".join([f"{title}:", *map(str, lines)]) + "\n", folders=False
        )


def _described(var: Variable, with_type: bool = False) -> dict[str, Any]:
    kind = {"type": f"VarType.{VarType(var.type).name}"}
    if var.type in feed_fetch_type_list:
        return {"name": var.name, **kind}
    described = {
        "name": var.name,
        "shape": str(var.shape),
        "lod_level": var.lod_level,
        "dtype": f"VarType.{VarType(var.dtype).name}",
    }
    return {**described, **kind} if with_type else described


def _persistable(program: Program) -> list[Variable]:
    variables = program.list_vars()
    return [var for var in variables if var.persistable and var.type not in feed_fetch_type_list]


def graphviz(block: Block, output_dir: str = "", filename: str = "debug") -> None:
    """Draw a block to `FILENAME.dot`, and to a PDF if Graphviz is installed."""
    debugger.draw_block_graphviz(block, path=os.path.join(output_dir, filename + ".dot"))


def append_save_op(block: Block, var: Variable, path: str) -> None:
    """Append an operator that writes `var` to the file `path`."""
    block.append_op(type="save", inputs={"X": [var]}, outputs={}, attrs={"file_path": path})


def append_load_op(block: Block, var: Variable, path: str) -> None:
    """Append an operator that reads `var` from the file `path`."""
    block.append_op(type="load", inputs={}, outputs={"Out": [var]}, attrs={"file_path": path})


def save_var(
    np_array: np.ndarray, var_name: str, shape_list: Sequence[int], dtype: Any, save_path: str
) -> None:
    """Write an array to a file, as Fluid writes variables."""
    _run(var_name, shape_list, dtype, lambda block, var: append_save_op(block, var, save_path), np_array)


def load_var(var_name: str, shape_list: Sequence[int], dtype: Any, save_path: str) -> list[np.ndarray]:
    """The array in a file with one variable, as a list."""
    return _run(var_name, shape_list, dtype, lambda block, var: append_load_op(block, var, save_path))


def _run(
    name: str,
    shape: Sequence[int],
    dtype: Any,
    append: Callable[[Block, Variable], None],
    value: np.ndarray | None = None,
) -> list[np.ndarray]:
    program = Program()
    block = program.global_block()
    var = block.create_var(name=name, shape=list(shape), dtype=dtype, persistable=value is None)
    append(block, var)
    results = Executor(CPUPlace()).run(program, feed={} if value is None else {name: value}, fetch_list=[var])
    return list(results)


def reader(batch_size: int, fn: str, dim: int | Sequence[int]) -> list[np.ndarray]:
    """The numbers of a text file as float64 arrays [batch_size, *dim].

    Each line holds one or more of them; an incomplete rest of a line is dropped.
    """
    shape = [batch_size, *(dim if isinstance(dim, (list, tuple)) else [dim])]
    count = math.prod(shape)
    arrays = []
    with open(fn, encoding="utf-8") as file:
        for line in file:
            numbers = [float(word) for word in line.split()]
            arrays += [
                np.array(numbers[at : at + count]).reshape(shape)
                for at in range(0, len(numbers) - count + 1, count)
            ]
    return arrays


def feed_gen(
    batch_size: int, feeded_vars_dims: Sequence[Any], feeded_vars_filelist: Sequence[str]
) -> list[list[np.ndarray]]:
    """The arrays of `reader` for each file."""
    pairs = zip(feeded_vars_filelist, feeded_vars_dims, strict=True)
    return [reader(batch_size, name, dim) for name, dim in pairs]


def try_load_model_vars(
    dump_dir: str,
    dump_prog_fn: str,
    is_text_dump_program: bool,
    batch_size: int,
    feed_config: Any,
    fetch_config: Any,
    save_filename: str | None,
    saved_params: Sequence[Variable],
) -> list[np.ndarray]:
    """Load a saved program and `saved_params`, run it once and log the results; see `check_saved_vars_try_dump`."""
    path = os.path.join(dump_dir, dump_prog_fn)
    program = load_program(path, is_text_dump_program)
    must_only_compute(program, path)
    block = program.global_block()
    exe = Executor(CPUPlace())
    if save_filename is None:
        for var in saved_params:
            path = os.path.join(dump_dir, var.name)
            [array] = load_var(var.name, list(var.shape), var.dtype, path)
            if array.shape != var.shape:
                raise RuntimeError(
                    f"Shape not matching: the Program requires a parameter with a shape of {var.shape}, while the "
                    f"loaded parameter (namely [ {var.name} ]) has a shape of {array.shape}."
                )
    load_vars(exe, dump_dir, program, list(saved_params), filename=save_filename)
    names = list(feed_config.feeded_vars_names)
    feeds = [block.var(name) for name in names]
    for var, dim in zip(feeds, feed_config.feeded_vars_dims, strict=True):
        dims = tuple(dim) if isinstance(dim, (list, tuple)) else (dim,)
        if var.shape[1:] != dims:
            raise RuntimeError(
                f"feed variable '{var.name}' shape not match. infer program  shape: {var.shape[1:]}. feed tensor "
                f"shape: {dims}"
            )
    if feed_config.feeded_vars_filelist is not None:
        logger.info("load feed vars from files: %s.", feed_config.feeded_vars_filelist)
        batches = feed_gen(batch_size, feed_config.feeded_vars_dims, feed_config.feeded_vars_filelist)
        arrays = [np.concatenate(parts) for parts in batches]
    else:
        logger.info("generate random feed vars.")
        arrays = [np.random.random((batch_size, *var.shape[1:])) for var in feeds]
    feed = {}
    for var, array, kind in zip(feeds, arrays, feed_config.feeded_vars_types, strict=True):
        feed[var.name] = tensor = LoDTensor()
        tensor.set(array.astype(to_numpy(kind) if isinstance(kind, VarType) else kind), CPUPlace())
        if var.lod_level:
            tensor.set_recursive_sequence_lengths([[1] * len(array)])
    fetches = [block.var(name) for name in fetch_config.fetch_vars_names]
    results = exe.run(_without_feed_and_fetch(program), feed=feed, fetch_list=fetches, return_numpy=True)
    for var, value in zip(fetches, results, strict=True):
        logger.info("fetch_targets name: %s", var.name)
        logger.info("fetch_targets: %s", value)
    return list(results)


def _without_feed_and_fetch(program: Program) -> Program:
    block = program.global_block()
    for index in reversed(range(len(block.ops))):
        if block.ops[index].type in ("feed", "fetch"):
            block._remove_op(index)
    return program


def check_saved_vars_try_dump(
    dump_dir: str,
    dump_prog_fn: str,
    is_text_dump_program: bool,
    feed_config: Any,
    fetch_config: Any,
    batch_size: int = 1,
    save_filename: str | None = None,
) -> list[np.ndarray]:
    """Run a saved model once, to check that its program and files fit.

    Args:
        dump_dir: the folder of the program and its variables.
        dump_prog_fn: the program's file; `is_text_dump_program`: in text form.
        feed_config: has lists `feeded_vars_names`, `feeded_vars_dims` (without the batch), `feeded_vars_types` and
            `feeded_vars_filelist`, files for `reader`, or None for random numbers.
        fetch_config: has a list `fetch_vars_names`.
        batch_size: the number of samples.
        save_filename: the file with all variables; by default each has a file of its name.

    Returns:
        The fetched arrays.

    Raises:
        RuntimeError: shapes do not fit. ValueError: a variable is missing in the program.
    """
    program = load_program(os.path.join(dump_dir, dump_prog_fn), is_text_dump_program)
    saved = _persistable(program)
    logger.info("persistable vars in dump program: %s", [var.name for var in saved])
    check_not_expected_ops(program)
    return try_load_model_vars(
        dump_dir,
        dump_prog_fn,
        is_text_dump_program,
        batch_size,
        feed_config,
        fetch_config,
        save_filename,
        saved,
    )
