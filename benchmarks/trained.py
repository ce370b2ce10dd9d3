"""What networks.py and models.py share: how long steps of networks take, on all sides that can run these."""

from __future__ import annotations

from collections.abc import Mapping

import sides


def main(
    description: str | None,
    name: str,
    goals: Mapping[str, sides.Goal],
    title: str,
    unit: str,
    seconds: float,
) -> int:
    """Measure the networks of scripts/`name`_fluid.py, and of scripts/`name`_torch.py; returns the exit status.

    Paddle 3, which has no `fluid`, runs the first of these as scripts/on_paddle3.py says.
    """
    parser = sides.timed_parser(description, tuple(goals), seconds)
    parser.add_argument(
        "--compile",
        action="store_true",
        help="one more side: what torch.compile makes, which takes minutes once",
    )
    options = parser.parse_args()
    chosen = options.only or list(goals)

    def measure(side: sides.Side) -> sides.Values:
        script = [f"{name}_torch.py" if side.torch else f"{name}_fluid.py"]
        if side.name == sides.PADDLE3:
            script = ["on_paddle3.py", str(sides.SCRIPTS / script[0])]
        found = side.values(*script, str(options.seconds), *chosen)
        return {
            network: [value / 1e6 * sides.UNITS[unit] for value in values]
            for network, values in found.items()
        }

    found = sides.find(options, paddle3=True)
    results, failed = sides.alternate(found, options.rounds, measure)
    return sides.report(options, title, unit, results, failed, goals, floors=found[0].floors)
