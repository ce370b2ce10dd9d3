"""How long does it take to put ragged samples together to batches?

Microseconds a batch of 128 samples of 10 to 59 words, other ones in each batch, by `DataFeeder.feed`: words in lists
of Python's ints and in arrays, numbers in lists of floats, float32 vectors of 32 in arrays, and sentences in lists of
lists (two levels); then whole epochs of a DataLoader, a sample at a time, with a thread of its own. fluidlite and
Paddle 1.8.5 run the same script (scripts/ragged_fluid.py), PyTorch makes padded batches with lengths by `pad_sequence`
in a `collate_fn` (scripts/ragged_torch.py). "NumPy" is concatenate and cumsum over the same samples, with the NumPy of
that side.

    python benchmarks/ragged.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import sides

WORKS = ("words in lists", "words in arrays", "numbers in lists", "vectors", "sentences")
GOALS = {work: sides.Goal(times=5) for work in WORKS}


def main() -> int:
    parser = sides.parser(__doc__, rounds=3)
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="seconds for each work and turn (default: %(default)s)"
    )
    parser.add_argument("--only", choices=WORKS, action="append", help="measure this work (can be repeated)")
    options = parser.parse_args()

    def measure(side: sides.Side) -> sides.Values:
        script = "ragged_torch.py" if side.name == sides.TORCH else "ragged_fluid.py"
        return side.values(script, str(options.seconds), *(options.only or WORKS))

    results, failed = sides.alternate(sides.find(options), options.rounds, measure)
    return sides.report(options, "ragged batches", "microseconds a batch", results, failed, GOALS)


if __name__ == "__main__":
    raise SystemExit(main())
