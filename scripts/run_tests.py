"""Runs all tests, in two processes side by side: `python scripts/run_tests.py [OPTIONS OF PYTEST]`.

The tests of operators, programs, plans, kernels and devices run in the one, all others in the other, whose output is
shown when both have ended. For single files and folders: `python -m pytest PATHS`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
FIRST = [
    TESTS / name for name in ("ops", "executor", "ext", "backend", "conformance", "gpu", "framework", "onnx")
]
"""What takes about half of the time."""


def main(options: list[str]) -> int:
    """Run both; returns 0 if all tests pass, otherwise what pytest returned."""
    command = [sys.executable, "-m", "pytest", *options]
    with tempfile.TemporaryFile() as output:
        second = subprocess.Popen(
            [*command, *(f"--ignore={path}" for path in FIRST), TESTS],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=TESTS.parent,
        )
        first = subprocess.run([*command, *FIRST], check=False, cwd=TESTS.parent)
        second.wait()
        output.seek(0)
        sys.stdout.flush()
        sys.stdout.buffer.write(output.read())
    return first.returncode or second.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
