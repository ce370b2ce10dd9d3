"""Shapes, types and values of the variables of an eager operator call."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend
from .._ext.operands import Types
from ..base.sizes import ShapeEnv


class EagerMeta(Types):
    """The metadata of one call; `asked` becomes True when an operator reads values.

    `sizes`: the environment of symbolic sizes in the shapes, None if all are numbers.
    """

    def __init__(self, known: EagerMeta | None = None, sizes: ShapeEnv | None = None) -> None:
        super().__init__(known.shapes if known else (), known.dtypes if known else ())
        self.sizes: ShapeEnv | None = known.sizes if known else sizes
        self.values: dict[str, Any] = {}
        self.asked = False

    def value(self, name: str) -> np.ndarray | None:
        self.asked = True
        return backend.to_host(self.values.get(name))
