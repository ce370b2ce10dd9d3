"""Do n threads decode pictures n times as fast as one?

Microseconds a picture, by the clock: JPEG files of 500 x 375 points in memory, decoded, resized, cut and mirrored by
`paddle.dataset.image` (OpenCV, itself on one thread) to float32 [3, 224, 224].

* `loop`: one after the other, without a loader;
* `n threads`: `xmap_readers` with n threads in front of a DataLoader that makes batches of 32;
* `n processes`: n processes with such a loader and one thread each, which have nothing in common: as fast as n
  processors are, also where other programs want them too;
* `n threads / n processes`: what it costs that threads share an interpreter, its lock and a loader.

fluidlite and Paddle 1.8.5 run the same script (scripts/pictures_fluid.py); both environments need OpenCV.

    python benchmarks/pictures.py --paddle PYTHON_OF_PADDLE_1.8.5
"""

from __future__ import annotations

import statistics

import sides


def main() -> int:
    parser = sides.parser(__doc__, rounds=5)
    parser.add_argument(
        "--pictures", type=int, default=256, help="pictures of each row and turn (default: %(default)s)"
    )
    parser.add_argument(
        "--most", type=int, default=2, help="threads and processes at most (default: %(default)s)"
    )
    options = parser.parse_args()
    counts = [2**k for k in range(1, options.most.bit_length())]

    def measure(side: sides.Side) -> sides.Values:
        values = side.values("pictures_fluid.py", str(options.pictures), *map(str, counts))
        for count in counts:
            threads, processes = (
                statistics.median(values[f"{count} {kind}"]) for kind in ("threads", "processes")
            )
            values[f"{count} threads / {count} processes"] = [threads / processes]
        return values

    results, failed = sides.alternate(sides.find(options, torch=False), options.rounds, measure)
    goals = {f"{count} threads / {count} processes": sides.Goal(limit=1.1) for count in counts}
    return sides.report(options, "a picture", "microseconds", results, failed, goals)


if __name__ == "__main__":
    raise SystemExit(main())
