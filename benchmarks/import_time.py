"""How long does `import fluidlite` take?

Milliseconds a whole process takes that imports the package and does nothing else, less the same for `import
numpy`: the row `above numpy`. Each import is timed in processes of its own, in turn; `paddle.fluid` and `torch`
stand beside as peers.

    python benchmarks/import_time.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import statistics
import subprocess
import time

import sides

GOALS = {"above numpy": sides.Goal(limit=60)}
MODULES = {sides.OURS: "fluidlite", sides.PADDLE: "paddle.fluid", sides.TORCH: "torch"}


def process_ms(side: sides.Side, statement: str) -> float:
    """Wall time in milliseconds of a process of the side's interpreter that runs one statement.

    Raises SideFailed if it fails.
    """
    begin = time.perf_counter()
    done = subprocess.run(
        [side.command[0], "-c", statement],
        env=side.environment(),
        cwd=sides.HERE,
        capture_output=True,
        text=True,
    )
    took = (time.perf_counter() - begin) * 1e3
    if done.returncode:
        raise sides.SideFailed(f"{side.name}: {statement!r} failed\n{sides.tail(done.stderr)}")
    return took


def main() -> int:
    parser = sides.parser(__doc__, rounds=9)
    options = parser.parse_args()

    def measure(side: sides.Side) -> sides.Values:
        return {
            "import numpy": [process_ms(side, "import numpy")],
            "import the package": [process_ms(side, f"import {MODULES[side.name]}")],
        }

    found = sides.find(options)
    for side in found:
        try:
            measure(side)
        except sides.SideFailed:
            continue  # told about in the measured rounds
    results, failed = sides.alternate(found, options.rounds, measure)
    for values in results.values():
        values["above numpy"] = [
            statistics.median(values["import the package"]) - statistics.median(values["import numpy"])
        ]
    return sides.report(options, "importing the package", "milliseconds of a process", results, failed, GOALS)


if __name__ == "__main__":
    raise SystemExit(main())
