#!/usr/bin/env python
"""Compares the gradients of random programs that decide with finite differences; see docs/fuzzing.md.

python scripts/fuzz_gradients.py --programs 1000 [--seed 1] [--stop-after 5]
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.framework.deciding_programs import check


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=100, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first one")
    parser.add_argument("--stop-after", type=int, default=5, help="how many wrong ones to print")
    args = parser.parse_args()
    wrong = runs = 0
    for seed in range(args.seed, args.seed + args.programs):
        try:
            told, compared = check(seed)
        except Exception:
            told, compared = f"seed {seed}:\n{traceback.format_exc(limit=-4)}", 0
        runs += compared
        if told:
            wrong += 1
            print(told, flush=True)
            if wrong >= args.stop_after:
                break
    print(f"{wrong} of {seed - args.seed + 1} programs are wrong; {runs} runs compared")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
