"""Variables in folders of tensor files, or in one combined file (`fluid.io.save_vars`, `load_params`, ...).

Files take their places when all of them are written; loading reads and checks everything before it changes anything.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ...base.dtypes import VarType
from ...base.errors import MissingFileError, NotSupportedError
from ...base.storage.files import also_by_url, atomic_files, atomic_writer, make_folder
from ...executor.lod_tensor import LoDTensor
from ...executor.scope import global_scope
from ...executor.tensor_files import read_tensors, write_tensor
from ...framework import Program, Variable
from . import selection
from .selection import as_program, check_fits, is_parameter, is_persistable, put_all, tensor_in

if TYPE_CHECKING:
    from ...framework.serialization.ir_graph import IrGraph

Folder = str | os.PathLike[str]
Predicate = Callable[[Variable], bool]


@also_by_url("dirname", 1, writes=True)
def save_vars(
    executor: Any,
    dirname: Folder | None,
    main_program: Program | None = None,
    vars: Sequence[Variable] | None = None,
    predicate: Predicate | None = None,
    filename: str | None = None,
) -> bytes | None:
    """Save variables of `main_program` from the global scope (`fluid.io.save_vars`).

    `vars`: which; or `predicate`: Variable -> whether to save it. `dirname`: a folder, made if need be, that
    gets a file for each variable, of its name; with `filename` one file in that folder has them all, sorted
    by name. Without variables nothing is written. With `dirname=None` the bytes of the combined file are returned
    instead. `executor` is not needed and there for Fluid's sake. Tables that a trainer looks up on parameter servers
    come from these, whole.

    Raises EnforceNotMet, with nothing written, if a variable has no value; ValueError for a name that leaves
    the folder; TypeError for a `main_program` that is no Program; OSError as `open` does.
    """
    chosen = _choose(main_program, vars, predicate)
    tensors = selection.looked_up(chosen.values())
    tensors |= {name: tensor_in(global_scope(), name) for name in chosen if name not in tensors}
    if dirname is None:
        if filename is not None:
            raise TypeError("save_vars with a filename needs dirname, the folder for it; got None")
        return _combined(tensors)
    if not tensors:
        return None
    if filename is not None:
        with atomic_writer(_inside(dirname, filename)) as file:
            for name in sorted(tensors):
                write_tensor(file, tensors[name])
        return None
    paths = {name: _inside(dirname, name) for name in tensors}
    make_folder(dirname)
    with atomic_files():
        for name, tensor in tensors.items():
            with atomic_writer(paths[name]) as file:
                write_tensor(file, tensor)
    return None


def save_params(
    executor: Any, dirname: Folder | None, main_program: Program | None = None, filename: str | None = None
) -> bytes | None:
    """Save the parameters of `main_program`; see `save_vars` (`fluid.io.save_params`)."""
    return save_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


@also_by_url("dirname", 1, writes=True)
def save_persistables(
    executor: Any, dirname: Folder | None, main_program: Program | None = None, filename: str | None = None
) -> bytes | None:
    """Save all persistable variables of `main_program`: parameters and the optimizer's; see `save_vars`.

    For a trainer's program made by `DistributeTranspiler`, variables that only servers hold are fetched, whole; then
    there is a file for each variable, whatever `filename`. Follows `fluid.io.save_persistables`.
    """
    if main_program is not None and getattr(main_program, "_is_distributed", False) and dirname is not None:
        remote = selection.held_elsewhere(main_program) if not selection.is_server(main_program) else set()
        with atomic_files():
            save_vars(
                executor,
                dirname,
                main_program,
                predicate=lambda var: is_persistable(var) and var.name not in remote,
            )
            if remote:
                selection.save_remote(main_program, dirname)
        return None
    return save_vars(executor, dirname, main_program, predicate=is_persistable, filename=filename)


def _save_persistable_nodes(executor: Any, dirname: Folder, graph: IrGraph) -> None:
    """`save_persistables` for the variables of an `IrGraph` (`fluid.io._save_persistable_nodes`)."""
    save_vars(executor, dirname, graph.to_program(), predicate=is_persistable)


def _load_persistable_nodes(executor: Any, dirname: Folder, graph: IrGraph) -> None:
    """Load the persistable variables of an `IrGraph` that have a file (`fluid.io._load_persistable_nodes`)."""
    folder = Path(dirname)
    load_vars(
        executor,
        dirname,
        graph.to_program(),
        predicate=lambda var: is_persistable(var) and (folder / var.name).exists(),
    )


@also_by_url("dirname", 1)
def load_vars(
    executor: Any,
    dirname: Folder | None,
    main_program: Program | None = None,
    vars: Sequence[Variable] | None = None,
    predicate: Predicate | None = None,
    filename: str | bytes | None = None,
) -> None:
    """Load variables of `main_program` into the global scope, as `save_vars` saved them
    (`fluid.io.load_vars`).

    The arguments are those of `save_vars`; with `dirname=None`, `filename` is the bytes of a combined file.

    Raises, with nothing changed in the scope: FileNotFoundError for a missing file, FormatError for one that
    is cut off or is no file of tensors, RuntimeError for a parameter of another shape, or a variable of another
    element type, than the program has.
    """
    chosen = _choose(main_program, vars, predicate)
    put_all(global_scope(), read_vars(dirname, chosen, filename))


def load_params(
    executor: Any,
    dirname: Folder | None,
    main_program: Program | None = None,
    filename: str | bytes | None = None,
) -> None:
    """Load the parameters of `main_program`; see `load_vars` (`fluid.io.load_params`)."""
    load_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


@also_by_url("dirname", 1)
def load_persistables(
    executor: Any,
    dirname: Folder | None,
    main_program: Program | None = None,
    filename: str | bytes | None = None,
) -> None:
    """Load all persistable variables of `main_program`; see `load_vars` (`fluid.io.load_persistables`).

    A server's program that `DistributeTranspiler` has made gets its parts of what a trainer has saved.
    """
    if main_program is not None and getattr(main_program, "_is_distributed", False) and dirname is not None:
        load_parts(Path(dirname), main_program)
        return
    load_vars(executor, dirname, main_program, predicate=is_persistable, filename=filename)


def load_parts(folder: Path, program: Program, own: dict[str, Path] | None = None) -> None:
    """Load a server's parts, or a trainer's variables that no server holds, from files of whole variables.

    `own`: files of single parts, by the names of their variables.
    """
    own = own or {}
    here = selection.on_this_server(program) if selection.is_server(program) else None
    gone = selection.held_elsewhere(program)

    def wanted(var: Variable) -> bool:
        return is_persistable(var) and (var.name in here if here is not None else var.name not in gone)

    found = {}
    for name, var in _choose(program, None, wanted).items():
        part = here[name] if here is not None and name not in own else None
        whole = part[0] if part else name
        path = own[name] if name in own else _inside(folder, whole)
        tensor = read_file(path, [whole])[whole]
        assert tensor.array is not None
        if part:
            tensor = LoDTensor.wrap(tensor.array[part[1] : part[1] + part[2]].copy())
        check_fits(var, tensor.array, str(path))
        found[name] = tensor
    put_all(global_scope(), found)


def read_vars(
    dirname: Folder | None, chosen: dict[str, Variable], filename: str | bytes | None = None
) -> dict[str, LoDTensor]:
    """The saved values of the variables `chosen`, checked against their shapes and types; see `load_vars`."""
    if not chosen:
        return {}
    if dirname is None:
        if not isinstance(filename, (bytes, bytearray)):
            raise TypeError(
                f"without dirname, filename must be the bytes of a combined file, got {filename!r}"
            )
        result = read_tensors(io.BytesIO(filename), sorted(chosen), "the combined file given as bytes")
        sources = dict.fromkeys(chosen, "the combined file given as bytes")
    elif filename is not None:
        path = _inside(dirname, os.fspath(filename) if not isinstance(filename, bytes) else filename.decode())
        result = read_file(path, sorted(chosen))
        sources = dict.fromkeys(chosen, str(path))
    else:
        paths = {name: _inside(dirname, name) for name in chosen}
        result = {name: read_file(path, [name])[name] for name, path in paths.items()}
        sources = {name: str(path) for name, path in paths.items()}
    for name, tensor in result.items():
        assert tensor.array is not None
        check_fits(chosen[name], tensor.array, sources[name])
    return result


def read_file(path: Path, names: Sequence[str]) -> dict[str, LoDTensor]:
    """The tensors `names`, in that order, of the file at `path`; see `read_tensors`."""
    try:
        with path.open("rb") as file:
            return read_tensors(file, names, path)
    except FileNotFoundError:
        what = f"of variable {names[0]!r} " if len(names) == 1 else ""
        raise MissingFileError(f"there is no file {path}: the value {what}was not saved there") from None


def _choose(
    main_program: Any, vars: Iterable[Any] | None, predicate: Predicate | None
) -> dict[str, Variable]:
    """The variables to save or load, by name."""
    if vars is None:
        if predicate is None:
            raise TypeError(
                "vars and predicate are both None: say which variables, by a list or by a function"
            )
        vars = [var for var in as_program(main_program).list_vars() if predicate(var)]
    elif main_program is not None:
        as_program(main_program)
    chosen = {}
    for var in vars:
        if not isinstance(var, Variable):
            raise TypeError(
                f"vars must be a list of Variables, got {var!r} of type {type(var).__name__} in it"
            )
        if var.type == VarType.RAW:
            continue
        if var.type != VarType.LOD_TENSOR:
            raise NotSupportedError(
                f"variable {var.name!r} is a {var.type}; only tensors can be saved and loaded"
            )
        chosen[var.name] = var
    return chosen


def _combined(tensors: dict[str, LoDTensor]) -> bytes:
    file = io.BytesIO()
    for name in sorted(tensors):
        write_tensor(file, tensors[name])
    return file.getvalue()


def _inside(dirname: Folder, name: str) -> Path:
    """The path of the file called `name` (which may have folders in it) in the folder `dirname`."""
    relative = PurePosixPath(name)
    if relative.is_absolute() or ".." in relative.parts or not relative.parts:
        raise ValueError(
            f"{name!r} cannot be a file in {os.fspath(dirname)!r}: expected a name that stays in that folder"
        )
    return Path(dirname) / relative
