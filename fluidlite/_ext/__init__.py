"""Compiled parts: one extension per concern; nothing here imports the rest of fluidlite."""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES


def _check_built(folder: str | os.PathLike[str]) -> None:
    """Raise ImportError, saying what to do, unless every extension in `folder` is built for this Python.

    Without it Python would take the folders of sources for packages, and miss names in them.
    """
    files = set(os.listdir(folder))
    names = sorted(name.removesuffix(".pyi") for name in files if name.endswith(".pyi"))
    missing = [name for name in names if not any(name + suffix in files for suffix in EXTENSION_SUFFIXES)]
    if not missing:
        return
    this = "Python {}.{}".format(*sys.version_info)
    others = {name.split(".")[1] for name in files if name.endswith((".so", ".pyd")) and name.count(".") > 1}
    there = f" (but for {', '.join(sorted(others))})" if others else ""
    root = os.path.dirname(os.path.dirname(folder))
    if os.path.exists(os.path.join(root, "setup.py")):
        what = f"build them with {sys.executable} -m pip install --editable {root}"
    else:
        what = f"install fluidlite again with {sys.executable} -m pip install --force-reinstall --no-deps fluidlite"
    raise ImportError(
        f"the extensions of fluidlite in {folder} are not built for {this}{there}: {what}",
        name=f"fluidlite._ext.{missing[0]}",
    )


_check_built(os.path.dirname(__file__))
