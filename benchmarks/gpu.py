"""What the benchmarks for GPUs share."""

from __future__ import annotations

import argparse
import subprocess
import sys

import sides

LOOK = """
import fluidlite
from fluidlite.backend.cupy_ import library
print(library.problem() or library.describe())
raise SystemExit(not fluidlite.is_compiled_with_cuda())
"""


def add_place(parser: argparse.ArgumentParser) -> None:
    """The argument that says where to run."""
    parser.add_argument(
        "--place",
        choices=("gpu", "cpu"),
        default="gpu",
        help="where programs run; cpu is for trying the benchmark out (default: %(default)s)",
    )


def find(options: argparse.Namespace, torch: bool = True) -> list[sides.Side]:
    """The sides that can be measured: fluidlite, which must have a GPU unless told otherwise, and PyTorch."""
    found = sides.find(options, torch, paddle=False)
    if options.place == "gpu":
        found[0].env["FLUIDLITE_REQUIRE_GPU"] = "1"
    return found


def ready(options: argparse.Namespace) -> bool:
    """Whether fluidlite can use a GPU, if one is wanted; prints which, or why not."""
    if options.place == "cpu":
        return True
    ours = sides.find(options, torch=False, paddle=False)[0]
    looked = subprocess.run(
        [sys.executable, "-c", LOOK], capture_output=True, text=True, env=ours.environment(), check=False
    )
    words = (looked.stdout.strip() or looked.stderr.strip()).splitlines()
    print(words[-1] if words else "looking for a GPU failed")
    return looked.returncode == 0
