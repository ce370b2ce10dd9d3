"""What CuPy has: the names and parameters that `record_api.py` found in two versions."""

import gzip
import inspect
import json
from pathlib import Path
from typing import Any

API: dict[str, Any] = json.loads(gzip.decompress(Path(__file__).with_name("cupy_api.json.gz").read_bytes()))


def signature(parameters: list[list[Any]] | None) -> inspect.Signature | None:
    """The signature of recorded parameters."""
    if parameters is None:
        return None
    kinds = [each for each in parameters if each[0] != "self"]
    order = list(inspect._ParameterKind)
    made, optional = [], False
    for name, kind, needed in sorted(kinds, key=lambda each: order.index(inspect._ParameterKind[each[1]])):
        which = inspect._ParameterKind[kind]
        variable = which in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        positional = which in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        optional = optional or (positional and not needed)
        default = inspect.Parameter.empty if variable or (needed and not (positional and optional)) else None
        made.append(inspect.Parameter(name, which, default=default))
    return inspect.Signature(made)
