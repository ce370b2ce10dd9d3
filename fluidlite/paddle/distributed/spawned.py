"""Entry point of a process that `spawn` has started: runs the call that is pickled in a given file."""

from __future__ import annotations

import pickle
import sys
from multiprocessing import spawn
from pathlib import Path


def main() -> None:
    """Read the script's module, then the call, as processes of `multiprocessing` do."""
    with Path(sys.argv[1]).open("rb") as file:
        spawn.prepare(pickle.load(file))
        function, args = pickle.load(file)
    function(*args)


if __name__ == "__main__":
    main()
