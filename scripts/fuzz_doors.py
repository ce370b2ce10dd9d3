#!/usr/bin/env python
"""Sends random arrays through every way into and out of fluidlite and reports what arrives changed.

    PYTHONPATH=. python scripts/fuzz_doors.py --examples 200 --seed 1 [--only REGEX]

Ways and arrays are in tests/reader/doors.py, figures in docs/life_of_a_batch.md. `--examples`: cases for each door; a
tenth of that for those that start processes.
"""

from __future__ import annotations

import argparse
import faulthandler
import re
import sys
import time
import warnings
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.reader.doors import DOORS, SLOW, Case, cases, go_through


def through(name: str, examples: int, number: int) -> tuple[int, int]:
    """How many cases a door took, and how many it refused; raises the first difference, made as small as can be."""
    counts = [0, 0]

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck),
              phases=[Phase.generate, Phase.shrink])  # fmt: skip
    @seed(number)
    @given(cases())
    def one(case: Case) -> None:
        counts[not go_through(name, case)] += 1

    one()
    return counts[0], counts[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of every fork beside threads
    took, refused, differ, begin = 0, 0, [], time.monotonic()
    for name in DOORS:
        if not re.search(options.only, name):
            continue
        try:
            some, others = through(
                name, max(options.examples // (10 if name in SLOW else 1), 1), options.seed
            )
        except Exception as error:
            differ.append(name)
            print(
                f"{name}: {type(error).__name__} {error}\n" + "\n".join(getattr(error, "__notes__", [])),
                flush=True,
            )
            continue
        took, refused = took + some, refused + others
        print(f"{name}: {some} arrived unchanged, {others} refused", flush=True)
    print(f"{took} cases arrived unchanged, {refused} were refused, {len(differ)} doors differ: {differ}; "
          f"{time.monotonic() - begin:.0f} s")  # fmt: skip
    return bool(differ)


if __name__ == "__main__":
    raise SystemExit(main())
