"""Record which names and parameters two installations of CuPy have in common.

    python -I tests/simulated_cuda/record_api.py PYTHON_WITH_CUPY_13 PYTHON_WITH_CUPY_14

writes `cupy_api.json.gz` beside this file. Neither installation needs a GPU: CuPy is only imported and looked at. The
simulated CuPy offers what is in this file and nothing else.
"""

import gzip
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

API = Path(__file__).with_name("cupy_api.json.gz")
METHODS = ("at", "reduce", "accumulate", "reduceat", "outer")


def main(interpreters: list[str]) -> None:
    """Ask every interpreter for its CuPy and write what all of them have."""
    found = [
        # Isolated: the modules beside this file are no modules of those installations.
        json.loads(subprocess.run([python, "-I", __file__, "--dump"], check=True, capture_output=True).stdout)
        for python in interpreters
    ]
    common: dict[str, Any] = {"versions": [each["version"] for each in found]}
    for part in found[0]:
        if part != "version":
            common[part] = shared([each[part] for each in found])
    API.write_bytes(gzip.compress(json.dumps(common, sort_keys=True).encode() + b"\n", mtime=0))


def shared(parts: list[Any]) -> Any:
    """What is the same in all parts: common keys of dictionaries, common items of lists, parameters of both."""
    first, *others = parts
    if isinstance(first, dict):
        return {
            name: shared([each[name] for each in parts]) for name in first if all(name in o for o in others)
        }
    if isinstance(first, list) and first and isinstance(first[0], list):
        names = [{parameter[0]: parameter for parameter in each} for each in parts]
        return [
            [name, kind, all(each[name][2] for each in names)]
            for name, kind, _ in first
            if all(name in each for each in names)
        ]
    if isinstance(first, list):
        return [item for item in first if all(item in each for each in others)]
    return first if all(each == first for each in others) else None


def dump() -> dict[str, Any]:
    """What the CuPy of this interpreter has."""
    import cupy
    import cupyx
    import cupyx.scipy.special

    ufuncs = {n: ufunc(f) for n, f in vars(cupy).items() if isinstance(f, cupy.ufunc)}
    return {
        "version": cupy.__version__,
        "ufuncs": ufuncs,
        "functions": functions(cupy),
        "values": [n for n, v in vars(cupy).items() if isinstance(v, float)],
        "types": [n for n, v in vars(cupy).items() if inspect.isclass(v) and v.__module__ == "numpy"],
        "linalg": functions(cupy.linalg),
        "random": functions(cupy.random),
        "lib.stride_tricks": functions(cupy.lib.stride_tricks),
        "cupyx": functions(cupyx),
        "special": public(cupyx.scipy.special),
        "ndarray": methods(cupy.ndarray),
        "cuda": public(cupy.cuda),
        "cuda.runtime": public(cupy.cuda.runtime),
        "cuda.driver": public(cupy.cuda.driver),
        "cuda.memory": public(cupy.cuda.memory),
        "cuda.runtime.parameters": functions(cupy.cuda.runtime),
        "cuda.Stream": methods(cupy.cuda.Stream),
        "cuda.Event": methods(cupy.cuda.Event),
        "cuda.Device": methods(cupy.cuda.Device),
        "cuda.MemoryPool": methods(cupy.cuda.MemoryPool),
        "cuda.MemoryPointer": methods(cupy.cuda.MemoryPointer),
        "cuda.PinnedMemoryPool": methods(cupy.cuda.PinnedMemoryPool),
        "cuda.PinnedMemoryPointer": methods(cupy.cuda.PinnedMemoryPointer),
        "cuda.Graph": methods(cupy.cuda.Graph),
        "RawModule": methods(cupy.RawModule),
        "RawKernel": methods(cupy.RawKernel),
    }


def public(module: Any) -> list[str]:
    return [name for name in dir(module) if not name.startswith("_")]


def functions(module: Any) -> dict[str, Any]:
    """Parameters of the functions of a module."""
    found = {}
    for name in public(module):
        value = getattr(module, name)
        if callable(value) and not inspect.isclass(value) and type(value).__name__ != "ufunc":
            found[name] = parameters(value)
    return found


def methods(kind: type) -> dict[str, Any]:
    """Parameters of the methods of a class; `None` for what is not called."""
    names = [n for n in dir(kind) if not n.startswith("_")]
    return {n: parameters(getattr(kind, n)) if callable(getattr(kind, n)) else None for n in names}


def parameters(function: Callable[..., Any]) -> list[list[Any]] | None:
    """(name, kind, whether it must be given) of every parameter; `None` if that cannot be found out."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        lines = (getattr(function, "__doc__", None) or "").strip().splitlines()
        found = re.match(r"[\w.]*\((.*?)\)( ->.*)?$", lines[0]) if lines else None
        if found is None:
            return None
        return from_text(found[1])
    return [
        [p.name, p.kind.name, p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        for p in signature.parameters.values()
    ]


def from_text(text: str) -> list[list[Any]]:
    """Parameters as the first line of a compiled function's documentation gives them."""
    kind, found = "POSITIONAL_OR_KEYWORD", []
    for part in filter(None, (piece.strip() for piece in text.replace("\\", "").split(","))):
        name = part.split("=")[0].split(":")[0].split()[-1]
        if name in ("self", "cls", "/"):
            continue
        if name == "*":
            kind = "KEYWORD_ONLY"
        elif name.startswith("**"):
            found.append([name[2:], "VAR_KEYWORD", False])
        elif name.startswith("*"):
            found.append([name[1:], "VAR_POSITIONAL", False])
            kind = "KEYWORD_ONLY"
        else:
            found.append([name, kind, "=" not in part])
    return found


def ufunc(function: Any) -> dict[str, Any]:
    """Number of operands, loops, and the methods that are more than a refusal."""
    usable = []
    for method in METHODS:
        try:
            getattr(function, method)(1, 1)
        except NotImplementedError:
            continue
        except Exception:  # noqa: BLE001  (a number is no array; without a GPU nothing can be computed)
            usable.append(method)
    return {"nin": function.nin, "nout": function.nout, "types": function.types, "methods": usable}


if __name__ == "__main__":
    if sys.argv[1:] == ["--dump"]:
        json.dump(dump(), sys.stdout)
    else:
        main(sys.argv[1:])
