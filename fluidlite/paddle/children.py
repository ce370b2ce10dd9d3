"""Make `paddle` mean this package in Python processes that a script starts (`subprocess`, `os.system`).

Such processes get a folder on PYTHONPATH in which `paddle` installs the import hook, if their Python is the one that
runs this process. Real Paddle in another one is left alone. Processes of multiprocessing get the hook in another way
(`hook.py`).
"""

from __future__ import annotations

import os
import sys

from .. import old_scripts
from ..base import flags
from . import hook

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "of_children")
_PYTHON, _DEVICE, _STRICT = "FLUIDLITE_PYTHON", "FLUIDLITE_DEVICE", "FLUIDLITE_STRICT"


def announce() -> None:
    """Set the environment from which child processes install the hook, with the options of this process."""
    os.environ[_PYTHON] = sys.prefix
    os.environ[_DEVICE] = flags.device()
    if old_scripts.strict():
        os.environ[_STRICT] = "1"
    known = os.environ.get("PYTHONPATH")
    if not known:
        os.environ["PYTHONPATH"] = _FOLDER
    elif _FOLDER not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = f"{_FOLDER}{os.pathsep}{known}"


def adopt() -> None:
    """Install the hook in a child process, from the environment that `announce` has set."""
    flags.set_device(os.environ[_DEVICE])
    hook.install()
