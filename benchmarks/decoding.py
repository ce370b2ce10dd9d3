"""How long do decoding, and training what decodes, take?

Milliseconds of a step with feeding and fetching. Beam search of width 4 for 30 steps, batches of 8, a GRU of 128, 2,000
words: by dynamic_decode, and by beam_search in a While over arrays. Training with Adam: sequence to sequence with
attention, batches of 16, 20 words each, hidden 64, 1,000 words; a language model of two LSTMs of 200 over 20 steps,
batches of 20, 10,000 words. fluidlite and Paddle 1.8.5 run the same script (scripts/decoding_fluid.py); PyTorch runs
the equivalent (scripts/decoding_torch.py), with loops in Python, and besides the language model with torch.nn.LSTM.

    python benchmarks/decoding.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import sides

GOALS = {
    "beam search": sides.Goal(times=3, peer=sides.TORCH),
    "beam search, arrays": sides.Goal(times=3),
    "attention": sides.Goal(times=3, peer=sides.TORCH),
    "language model": sides.Goal(times=3, peer=sides.TORCH),
}

READY = "language model, torch.nn.LSTM"


def main() -> int:
    parser = sides.steps_parser(__doc__)
    parser.add_argument(
        "--steps", type=int, default=15, help="steps of each work and turn (default: %(default)s)"
    )
    parser.add_argument("--only", choices=GOALS, action="append", help="measure this work (can be repeated)")
    options = parser.parse_args()

    def measure(side: sides.Side) -> sides.Values:
        works = options.only or list(GOALS)
        if not side.torch:
            return side.values("decoding_fluid.py", str(options.steps), *works)
        works = [work for work in works if work != "beam search, arrays"]
        if "language model" in works:
            works.append(READY)
        return side.values("decoding_torch.py", str(options.steps), *works)

    found = sides.find(options)
    results, failed = sides.alternate(found, options.rounds, measure)
    return sides.report(
        options,
        "decoding, and training for it",
        "milliseconds",
        results,
        failed,
        GOALS,
        floors=found[0].floors,
    )


if __name__ == "__main__":
    raise SystemExit(main())
