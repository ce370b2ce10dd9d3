"""What a step takes at least on this machine: a floor below our time and everybody's.

`scripts/work.py` counts a step's work, and measures the rates of products and copies in the process of the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Floors:
    """Work of steps by name, flops and bytes, and the best rates that any turn has seen.

    A floor is the larger of two times: flops over the rate of products, and bytes over the rate of a copy that reads
    and writes as many, or of the largest that was measured.
    """

    steps: dict[str, list[float]] = field(default_factory=dict)
    products: float = 0.0
    copies: dict[int, float] = field(default_factory=dict)

    def add(self, printed: Mapping[str, Any]) -> None:
        """Take in what a measured script has printed."""
        self.steps.update(printed["steps"])
        self.products = max(self.products, printed["products"])
        for size, rate in printed["copies"]:
            self.copies[size] = max(self.copies.get(size, 0.0), rate)

    def seconds(self, step: str) -> float | None:
        """The floor of a step, None if its work was not counted."""
        if step not in self.steps:
            return None
        flops, moved = self.steps[step]
        size = min((size for size in self.copies if 2 * size >= moved), default=max(self.copies))
        return max(flops / self.products, moved / self.copies[size])

    def rates(self) -> str:
        """The rates in words."""
        copies = ", ".join(f"{rate / 1e9:.0f} ({size / 2**20:g} MB)" for size, rate in self.copies.items())
        return f"floors: products at {self.products / 1e9:.0f} GFLOP/s, copies at {copies} GB/s"
