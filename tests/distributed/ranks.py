"""Runs a script of this folder in two processes."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MISSING = [
    name
    for name, found in (
        ("mpi4py", importlib.util.find_spec("mpi4py")),
        (
            "mpiexec",
            shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"),
        ),
    )
    if not found
]
needs_mpi = pytest.mark.skipif(
    bool(MISSING), reason=f"needs {' and '.join(MISSING)}: pip install 'fluidlite[mpi]'"
)


def environment(**more):
    """The environment of a run: of MPI's and Fluid's variables none but what root in a container needs."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PADDLE_", "OMPI_", "PMIX_", "FLAGS_"))}
    kept["PATH"] = f"{Path(sys.executable).parent}:{kept.get('PATH', '')}"
    kept["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    return {**kept, "OMP_NUM_THREADS": "1", **more}


def launch(*args, count=2, timeout=120, **more):
    """`fluidlite launch -n COUNT ARGS`; what it printed and its exit status."""
    command = [sys.executable, "-m", "fluidlite", "launch", "-n", str(count), *map(str, args)]
    return subprocess.run(
        command,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        cwd=HERE,
    )
