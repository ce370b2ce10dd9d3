"""Run by path in a process that multiprocessing has spawned: installs the hook there; see `hook.py`."""

import sys
from pathlib import Path

_root = str(Path(__file__).parents[2])
if _root not in sys.path:
    sys.path.append(_root)

from fluidlite import old_scripts  # noqa: E402
from fluidlite.base import flags  # noqa: E402  (the path comes first)
from fluidlite.paddle import hook  # noqa: E402

flags.set_device(globals()["DEVICE"])
old_scripts.set_strict(globals()["STRICT"])
hook.install()
