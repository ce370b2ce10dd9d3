"""How long does a training step take on a GPU?

Microseconds a step, with the batch in the GPU's memory: five 8 x 8 layers with Adam (batch 4), an MLP (128, SGD), a
LeNet-like conv net (64, Momentum), ResNet-20 on 32 x 32 images (128) and ResNet-50 on 224 x 224 (64). In the first row
of each the loss is read after every step, in the second after every 20th. Float32 everywhere, TF32 is off.

PyTorch is measured three times over: eager, with torch.compile, and with the whole step as one CUDA graph.

    python benchmarks/gpu_steps.py
    python benchmarks/gpu_steps.py --place cpu --only mlp      without a GPU, to try it out
"""

from __future__ import annotations

import gpu
import sides

NETWORKS = ("five 8x8", "mlp", "lenet", "resnet-20", "resnet-50")
MODES = {"PyTorch": "eager", "torch.compile": "compile", "torch CUDA graph": "graph"}
GOALS = {
    "five 8x8": sides.Goal(times=10, peer="PyTorch"),
    "five 8x8, loss every 20 steps": sides.Goal(times=1, peer="torch CUDA graph"),
    **{name: sides.Goal(times=1, peer="PyTorch") for name in ("mlp", "lenet", "resnet-20")},
}


def main() -> int:
    parser = sides.parser(__doc__, rounds=3)
    gpu.add_place(parser)
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="time of measuring per row and turn (default: %(default)s)"
    )
    parser.add_argument(
        "--only", choices=NETWORKS, action="append", help="measure this network (can be repeated)"
    )
    parser.add_argument(
        "--mode", choices=list(MODES), action="append", help="this way to run PyTorch only (can be repeated)"
    )
    options = parser.parse_args()
    chosen = options.only or list(NETWORKS)
    if not gpu.ready(options):
        return 2
    found = []
    for side in gpu.find(options):
        if side.name != sides.TORCH:
            found.append(side)
            continue
        for name in options.mode or MODES:
            if MODES[name] != "graph" or options.place == "gpu":
                found.append(sides.Side(name, side.command, side.env))

    def measure(side: sides.Side) -> sides.Values:
        place, seconds = options.place, str(options.seconds)
        if side.name == sides.OURS:
            return side.values("gpu_fluid.py", place, seconds, *chosen)
        return side.values("gpu_torch.py", place, seconds, MODES[side.name], *chosen)

    results, failed = sides.alternate(found, options.rounds, measure)
    goals = GOALS if options.place == "gpu" else {}
    return sides.report(options, "a training step on a GPU", "microseconds", results, failed, goals)


if __name__ == "__main__":
    raise SystemExit(main())
