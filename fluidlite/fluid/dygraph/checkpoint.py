"""State dicts in files: `save_dygraph`, `load_dygraph` (`fluid.dygraph.checkpoint`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ...base.storage.files import also_by_url
from ...eager import Parameter, Tensor
from ..io.pickles import read_pickle, write_pickle
from .members import NAME_TABLE

__all__ = ["load_dygraph", "save_dygraph"]

ParamBase = Parameter
_PARAMETERS, _OPTIMIZER = ".pdparams", ".pdopt"


@also_by_url("model_path", 1, writes=True, files=True)
def save_dygraph(state_dict: Mapping[str, Any], model_path: str | os.PathLike[str]) -> None:
    """Save the state dict of a layer or an optimizer (`fluid.save_dygraph`).

    Args:
        state_dict: what `state_dict()` gave: tensors (arrays and numbers may be among them) by name.
        model_path: the file without its ending; '.pdparams' is added if there are parameters in the dict, '.pdopt'
            otherwise. Folders are made if need be.

    Real Fluid 1.8 reads the files. Raises AssertionError, as Fluid does, for an empty dict and for a path that does not
    end with a name; TypeError for anything but a dict; OSError as `open` does.
    """
    base = os.fspath(model_path)
    if not os.path.basename(base):
        raise AssertionError(
            f"model_path must be of the form FOLDER/NAME, got {base!r}, which has no name at its end"
        )
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"save_dygraph takes a state dict, got a {type(state_dict).__name__}")
    if not state_dict:
        raise AssertionError("state_dict is empty, no need to save")
    state = {key: value._on_host if isinstance(value, Tensor) else value for key, value in state_dict.items()}
    state[NAME_TABLE] = {key: value.name for key, value in state_dict.items() if isinstance(value, Tensor)}
    has_parameters = any(isinstance(value, Parameter) for value in state_dict.values())
    write_pickle(base + (_PARAMETERS if has_parameters else _OPTIMIZER), state)


@also_by_url("model_path", 0, files=True)
def load_dygraph(
    model_path: str | os.PathLike[str], keep_name_table: bool = False
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Read what `save_dygraph` (here or of real Fluid) or `fluid.save` wrote (`fluid.load_dygraph`).

    Args:
        model_path: the files without, or with, their ending.
        keep_name_table: keep the entry of the parameters' dict that maps its names to those of the parameters.

    Returns:
        The parameters' dict, and the optimizer's or None if there is no such file; arrays by name.

    Raises:
        RuntimeError, as in Fluid: there is no '.pdparams' file. FormatError (an EnforceNotMet): a file is damaged or
        asks for anything but plain data; nothing in a file is ever run.
    """
    base = os.fspath(model_path)
    for ending in (_PARAMETERS, _OPTIMIZER):
        base = base.removesuffix(ending)
    if not os.path.isfile(base + _PARAMETERS):
        raise RuntimeError(f"Parameter file [ {base + _PARAMETERS} ] not exists")
    parameters = read_pickle(base + _PARAMETERS)
    if not keep_name_table:
        parameters.pop(NAME_TABLE, None)
    return parameters, read_pickle(base + _OPTIMIZER) if os.path.isfile(base + _OPTIMIZER) else None
