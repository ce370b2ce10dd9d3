"""How long do training steps of taggers and of labels without places take?

Milliseconds of a step with feeding and fetching; Adam, batches of 32. A tagger: embedding, fc and linear_chain_crf with
9 tags, sequences of 10 to 59 words, other lengths in each batch. CTC: fc and warpctc, 60 frames and 80 classes to a
sequence, 10 labels. fluidlite and Paddle 1.8.5 run the same script (scripts/tagging_fluid.py); PyTorch runs CTC
(scripts/tagging_torch.py), and has no conditional random field.

    python benchmarks/tagging.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import sides

GOALS = {"linear_chain_crf": sides.Goal(times=3), "warpctc": sides.Goal(times=3, peer=sides.TORCH)}


def main() -> int:
    parser = sides.steps_parser(__doc__)
    parser.add_argument(
        "--steps", type=int, default=60, help="steps of each work and turn (default: %(default)s)"
    )
    options = parser.parse_args()

    def measure(side: sides.Side) -> sides.Values:
        script = "tagging_torch.py" if side.name == sides.TORCH else "tagging_fluid.py"
        return side.values(script, str(options.steps))

    results, failed = sides.alternate(sides.find(options), options.rounds, measure)
    return sides.report(options, "a step with tags or labels", "milliseconds", results, failed, GOALS)


if __name__ == "__main__":
    raise SystemExit(main())
