"""Do n threads decode pictures n times as fast as one?

Microseconds a picture, by the clock: JPEG files of 500 x 375 points in memory, decoded, resized, cut and mirrored by
`paddle.dataset.image` (OpenCV, itself on one thread) to float32 [3, 224, 224].

* `loop`: one after the other, without a loader;
* `n threads`: `xmap_readers` with n threads in front of a DataLoader that makes batches of 32;
* `n x n threads / 1 thread`: 1 where n threads are n times as fast as one; it takes as many processors.

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
    parser.add_argument("--most", type=int, default=2, help="threads at most (default: %(default)s)")
    options = parser.parse_args()
    counts = [2**k for k in range(options.most.bit_length())]

    def measure(side: sides.Side) -> sides.Values:
        values = side.values("pictures_fluid.py", str(options.pictures), *map(str, counts))
        one = statistics.median(values["1 threads"])
        for count in counts[1:]:
            many = statistics.median(values[f"{count} threads"])
            values[f"{count} x {count} threads / 1 thread"] = [count * many / one]
        return values

    results, failed = sides.alternate(sides.find(options, torch=False), options.rounds, measure)
    return sides.report(options, "a picture", "microseconds", results, failed)


if __name__ == "__main__":
    raise SystemExit(main())
