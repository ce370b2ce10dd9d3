"""How much memory does a training step of a large model take?

MB of memory that a process takes at most for the model, its optimizer and some steps, above what it takes once the
framework is imported: ResNet-50 (64x64, or 224x224, batch 8, Momentum) and an encoder like BERT-base (12 layers, 768
wide, 4 texts of 128 words, Adam). fluidlite and Paddle 1.8.5 run the same script; PyTorch the equivalent
(scripts/models_fluid.py, models_torch.py). Of fluidlite there are three rows more: what its parameters and accumulators
take, what temporaries of the step are alive at most at the same time (`alive`), and the memory that they have got
(`arena`). The rows `step` are times.

    python benchmarks/memory.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import sides

MODELS = ("resnet-20", "resnet-50", "resnet-50-224", "bert-base")
USUAL = ("resnet-50", "bert-base")


def main() -> int:
    parser = sides.parser(__doc__, rounds=1)
    parser.add_argument(
        "--only", choices=MODELS, action="append", help="measure this model (can be repeated)"
    )
    options = parser.parse_args()
    ours, *others = sides.find(options)
    ours.env.pop("BENCHMARK_FLOOR", None)  # what floors are measured with takes memory, too

    def measure(side: sides.Side) -> sides.Values:
        script = "models_torch.py" if side.name == sides.TORCH else "models_fluid.py"
        found: sides.Values = {}
        for model in options.only or USUAL:
            found.update(side.values("memory_of.py", script, model))
        return found

    results, failed = sides.alternate([ours, *others], options.rounds, measure)
    unit = "MB, and in milliseconds of processor time where it says step"
    return sides.report(options, "memory of a training step", unit, results, failed, {})


if __name__ == "__main__":
    raise SystemExit(main())
