"""A whole model in three files: `fluid.save`, `fluid.load`, `load_program_state` and `set_program_state`.

`PATH.pdparams` and `PATH.pdopt` hold the parameters and the other persistable variables, `PATH.pdmodel` the
program.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...base import callsite
from ...base.errors import (
    EnforceNotMet,
    FormatError,
    MissingModelError,
    MissingPartError,
    MissingValueError,
    TypeAssertion,
)
from ...base.storage.files import also_by_url, atomic_files, is_draft, write_file
from ...executor import Executor
from ...executor.lod_tensor import LoDTensor
from ...executor.scope import Scope, global_scope
from ...framework import Program, Variable
from .pickles import read_pickle, write_pickle
from .saving import read_file, read_vars
from .selection import (
    as_program,
    check_fits,
    get_program_persistable_vars,
    is_belong_to_optimizer,
    is_parameter,
    put_all,
    tensor_in,
)

_SUFFIXES = (".pdparams", ".pdopt", ".pdmodel")


@also_by_url("model_path", 1, writes=True, files=True)
def save(program: Program, model_path: str | os.PathLike[str]) -> None:
    """Save `program`, its parameters and all its other persistable variables from the global scope
    (`fluid.save`).

    `model_path`: what the three files are called before `.pdparams`, `.pdopt` and `.pdmodel`; folders are
    made if need be.

    Raises AssertionError for a path without a file name, EnforceNotMet, with nothing written, if a variable has
    no value, and OSError as `open` does.
    """
    base = os.fspath(model_path)
    if not os.path.basename(base):
        raise AssertionError(
            f"model_path must be of the form FOLDER/NAME, got {base!r}, which has no name at its end"
        )
    program = as_program(program)
    scope = global_scope()
    params = _arrays(scope, filter(is_parameter, program.list_vars()))
    others = _arrays(scope, filter(is_belong_to_optimizer, program.list_vars()))
    model = program.desc.serialize_to_string()
    with atomic_files():
        write_pickle(base + ".pdparams", params)
        write_pickle(base + ".pdopt", others)
        write_file(base + ".pdmodel", model)


@also_by_url("model_path", 1, files=True)
def load(
    program: Program,
    model_path: str | os.PathLike[str],
    executor: Any = None,
    var_list: Iterable[Variable] | None = None,
) -> None:
    """Load what `save` saved into the global scope (`fluid.load`).

    That is all that `program` has of parameters and persistables.

    Args:
        program: a Program with the variables.
        model_path: as given to `save`, or with one of the three suffixes. A folder or file written by
            `save_persistables` and the like is read as well.
        executor: without it the variables must exist in the scope, which is so after the startup program was run.
        var_list: of a combined file the variables in it, in their order; of a folder those to load (by default what it
            has).

    Raises:
        FileNotFoundError: a file is missing.
        FormatError: a file is damaged or foreign.
        AssertionError: a variable is missing in the file.
        RuntimeError: a parameter has another shape there, or a variable another element type.
        ValueError: a combined file without `var_list`.
        EnforceNotMet: variables do not exist in the scope. In all these cases nothing in the scope has changed.

    Example:
        >>> import tempfile
        >>> import paddle.fluid as fluid

        >>> y = fluid.layers.fc(fluid.data("x", [None, 3], "float32"), 2)
        >>> exe, program = fluid.Executor(fluid.CPUPlace()), fluid.default_main_program()
        >>> _ = exe.run(fluid.default_startup_program())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fluid.save(program, folder + "/model")
        ...     fluid.load(program, folder + "/model", exe)
    """
    program = as_program(program)
    if not isinstance(executor, (Executor, type(None))):
        raise TypeAssertion(f"executor must be a fluid.Executor, got {type(executor).__name__}")
    base = _without_suffix(model_path)
    pickled = os.path.isfile(base + ".pdparams")
    wanted = None if var_list is None or pickled else _by_name(var_list)
    if pickled:
        values = _load_pickles(program, base)
    elif os.path.isdir(base):
        if wanted is None:
            persistables = get_program_persistable_vars(program)
            wanted = _by_name(var for var in persistables if os.path.isfile(os.path.join(base, var.name)))
            if persistables and not wanted:
                raise RuntimeError(
                    f"the folder {base} has a file for none of the {len(persistables)} variables of the "
                    "program"
                )
        values = read_vars(base, wanted)
    elif os.path.isfile(base):
        if wanted is None:
            raise ValueError(
                f"{base} is a combined file, which does not say what is in it: give var_list, the variables "
                "that were saved"
            )
        values = read_vars(os.path.dirname(base) or ".", wanted, os.path.basename(base))
    else:
        raise _not_found(base)
    scope = global_scope()
    if executor is None:
        for name in values:
            _existing(scope, name)
    put_all(scope, values)


@also_by_url("model_path", 0, files=True)
def load_program_state(
    model_path: str | os.PathLike[str], var_list: Iterable[Variable] | None = None
) -> dict[str, np.ndarray]:
    """The saved arrays by variable name, without a program or scope (`fluid.load_program_state`).

    `model_path`: as for `load`. `var_list`: for a folder of tensor files, which to read (all of them if
    None); for a combined file, what is in it. Raises FileNotFoundError, FormatError and ValueError as `load`
    does.
    """
    base = _without_suffix(model_path)
    if os.path.isfile(base + ".pdparams"):
        state = read_pickle(base + ".pdparams")
        if os.path.isfile(base + ".pdopt"):
            state.update(read_pickle(base + ".pdopt"))
        return state
    if os.path.isdir(base):
        if var_list is None:
            files = sorted(
                path for path in Path(base).rglob("*") if path.is_file() and not is_draft(path.name)
            )
            names = {path.relative_to(base).as_posix(): path for path in files}
            found = {name: read_file(path, [name])[name] for name, path in names.items()}
        else:
            found = read_vars(base, _by_name(var_list))
    elif os.path.isfile(base):
        if var_list is None:
            raise ValueError(f"var_list can not be None when model_path is a combined file, which {base} is")
        found = read_vars(os.path.dirname(base) or ".", _by_name(var_list), os.path.basename(base))
    else:
        raise _not_found(base)
    return {name: tensor.numpy() for name, tensor in found.items()}


def set_program_state(program: Program, state_dict: Mapping[str, np.ndarray]) -> None:
    """Set the persistable variables of `program` to the values in `state_dict` (`fluid.set_program_state`).

    Variables that are not in it keep theirs; what the program does not have is left out with a warning. The
    variables must exist in the global scope (run the startup program first).

    Raises, with nothing changed: EnforceNotMet for variables without value, AssertionError for another shape or
    dtype, TypeError for values that are no arrays.
    """
    scope = global_scope()
    values = {}
    unused = set(state_dict)
    for var in get_program_persistable_vars(as_program(program)):
        if var.name not in state_dict:
            continue
        unused.discard(var.name)
        array = state_dict[var.name]
        if not isinstance(array, np.ndarray):
            raise TypeError(f"state_dict must hold NumPy arrays, got {type(array).__name__} for {var.name!r}")
        _check_same(tensor_in(scope, var.name), array, var.name)
        values[var.name] = LoDTensor.wrap(array)
    if unused:
        callsite.warn(
            f"not set, because the program has no variable of that name: {', '.join(sorted(unused))}"
        )
    put_all(scope, values)


def _arrays(scope: Scope, variables: Iterable[Variable]) -> dict[str, np.ndarray]:
    return {var.name: tensor_in(scope, var.name).numpy() for var in variables}


def _load_pickles(program: Program, base: str) -> dict[str, LoDTensor]:
    """The values of the parameters and other persistable variables of `program`.

    A parsed program has no parameters, so either file may have those that the other lacks.
    """
    paths = [base + ".pdparams", base + ".pdopt"]
    files = {path: read_pickle(path) for path in paths if os.path.isfile(path)}
    values = {}
    for var in get_program_persistable_vars(program):
        own = paths[0] if is_parameter(var) else paths[1]
        path = next((path for path in [own, *files] if var.name in files.get(path, ())), None)
        if path is None and own not in files:
            raise MissingPartError(
                f"there is no file {own}, where the value of {var.name!r} would be: the program has persistable "
                "variables besides parameters, which are saved there"
            )
        if path is None:
            raise MissingValueError(
                f"Can not find [{var.name}] in model file [{own}], which has {_some(files[own])}: it was saved for "
                "another program, or before the variable was made"
            )
        array = files[path][var.name]
        if not isinstance(array, np.ndarray):
            raise FormatError(f"[{var.name}] in {path} should be an array, got {type(array).__name__}")
        check_fits(var, array, path)
        values[var.name] = LoDTensor.wrap(array)
    return values


def _check_same(tensor: LoDTensor, array: np.ndarray, name: str) -> None:
    mine = tensor.array
    assert mine is not None
    if mine.shape != array.shape or mine.dtype != array.dtype:
        raise AssertionError(
            f"Parameter's shape or data type does not match: the program has {name!r} with shape "
            f"{list(mine.shape)} and "
            f"dtype {mine.dtype}, while the given one has shape {list(array.shape)} and dtype {array.dtype}"
        )


def _some(names: Iterable[str]) -> str:
    """A few of these names, for a message."""
    known = sorted(names)
    return f"{', '.join(known[:5])}{', ...' if len(known) > 5 else ''}" if known else "nothing"


def _existing(scope: Scope, name: str) -> None:
    if scope.find_var(name) is None:
        raise EnforceNotMet(
            f"variable {name!r} is not in the scope: run the startup program before fluid.load, or give it "
            "an executor"
        )


def _by_name(variables: Iterable[Variable]) -> dict[str, Variable]:
    return {var.name: var for var in variables}


def _without_suffix(model_path: str | os.PathLike[str]) -> str:
    base = os.fspath(model_path)
    return next((base[: -len(suffix)] for suffix in _SUFFIXES if base.endswith(suffix)), base)


def _not_found(base: str) -> MissingModelError:
    return MissingModelError(
        f"there is neither a file {base}.pdparams nor a file or folder {base} of saved variables"
    )
