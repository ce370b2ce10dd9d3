"""Finding NVIDIA's libraries: by an environment variable, in Python packages, or by the system's loader."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence


def _folders(packages: Sequence[str]) -> Iterator[str]:
    """Folders in which Python packages (`nvidia.cudnn`, ...) keep shared libraries. None of them is imported."""
    for package in packages:
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:  # its parent package is not installed
            continue
        for place in (spec.submodule_search_locations or ()) if spec is not None else ():
            yield os.path.join(place, "lib")
    yield os.path.join(sys.prefix, "lib")


def open_first(names: Sequence[str], packages: Sequence[str], variable: str) -> ctypes.CDLL:
    """The first of some shared libraries that can be opened.

    Args:
        names: file names, the best first.
        packages: Python packages in whose folder `lib` to look before asking the system's loader.
        variable: an environment variable that may hold the path of the library instead; 0 refuses it.

    Raises OSError that lists the attempts.
    """
    chosen = os.environ.get(variable, "")
    if chosen == "0":
        raise OSError(f"refused by {variable}=0")
    if chosen:
        return ctypes.CDLL(chosen)
    folders = list(_folders(packages))
    placed = (os.path.join(folder, name) for name in names for folder in folders)
    found = [path for path in placed if os.path.isfile(path)]
    problems = []
    for path in (*found, *names):
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            problems.append(str(error))
    raise OSError("; ".join(problems) + f" (set {variable} to its path if it is somewhere else)")
