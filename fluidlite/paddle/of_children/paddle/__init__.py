"""The `paddle` that Python processes of a script import: replaces itself by fluidlite (see `hook.py`).

In another Python than the script's it is the next `paddle` on the path.
"""

import importlib
import os
import sys


def _replace_by_fluidlite() -> None:
    """Replace this module by the real `paddle` of the process."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [entry for entry in sys.path if not entry or os.path.abspath(entry) != folder]
    del sys.modules["paddle"]
    if os.environ.get("FLUIDLITE_PYTHON") == sys.prefix:
        root = os.path.dirname(os.path.dirname(os.path.dirname(folder)))  # where this package is
        if root not in sys.path:
            sys.path.append(root)
        importlib.import_module("fluidlite.paddle.hook").adopt()
    importlib.import_module("paddle")


if __name__ == "paddle":
    _replace_by_fluidlite()
