"""How long do steps with sequences and loops take?

Milliseconds of a step with feeding and fetching. Training with Adam, batches of 32 sequences of 10 to 59 words,
other lengths in each batch: sequence_conv_pool (windows of 3 and 4 words), a DynamicRNN of one fc, one whose steps
look at all words of their sentence (attention), fc and dynamic_lstm with the largest of all states, fc and
dynamic_gru with the last state; a StaticRNN of 20 steps of one fc. And a while_loop of 1,000 turns of matmul 8 x 8,
add, relu, increment and less_than, without training. fluidlite and Paddle 1.8.5 run the same script
(scripts/sequences_fluid.py); PyTorch runs the equivalent (scripts/sequences_torch.py): nn.LSTM and nn.GRU get
packed batches, loops in Python padded ones with a mask; more rows are what it does with packed batches.

    python benchmarks/sequences.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import sides

GOALS = {
    "sequence_conv_pool": sides.Goal(times=3, peer=sides.TORCH),
    "DynamicRNN": sides.Goal(times=5, peer=sides.TORCH),
    "attention": sides.Goal(times=3, peer=sides.TORCH),
    "dynamic_lstm": sides.Goal(times=4),
    "dynamic_gru": sides.Goal(times=4),
    "StaticRNN": sides.Goal(times=6),
    "while_loop": sides.Goal(times=30),
}

PACKED = ("DynamicRNN, packed", "DynamicRNN, torch.nn.RNN")


def main() -> int:
    parser = sides.steps_parser(__doc__)
    parser.add_argument(
        "--steps", type=int, default=60, help="steps of each work and turn (default: %(default)s)"
    )
    parser.add_argument("--only", choices=GOALS, action="append", help="measure this work (can be repeated)")
    options = parser.parse_args()

    def measure(side: sides.Side) -> sides.Values:
        works = options.only or list(GOALS)
        if not side.torch:
            return side.values("sequences_fluid.py", str(options.steps), *works)
        if "DynamicRNN" in works:
            works = [*works, *PACKED]
        return side.values("sequences_torch.py", str(options.steps), *works)

    found = sides.find(options)
    results, failed = sides.alternate(found, options.rounds, measure)
    return sides.report(
        options,
        "a step with sequences or loops",
        "milliseconds",
        results,
        failed,
        GOALS,
        floors=found[0].floors,
    )


if __name__ == "__main__":
    raise SystemExit(main())
