"""Shapes, types and values of the variables of an eager operator call."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend
from ..base.dtypes import VarType
from ..base.sizes import ShapeEnv


class EagerMeta:
    """The metadata of one call; `asked` becomes True when an operator reads values.

    `sizes`: the environment of symbolic sizes in the shapes, None if all are numbers.
    """

    def __init__(self, known: EagerMeta | None = None, sizes: ShapeEnv | None = None) -> None:
        self.shapes: dict[str, tuple[int, ...]] = dict(known.shapes) if known else {}
        self.dtypes: dict[str, VarType] = dict(known.dtypes) if known else {}
        self.sizes: ShapeEnv | None = known.sizes if known else sizes
        self.values: dict[str, Any] = {}
        self.asked = False

    def shape(self, name: str) -> tuple[int, ...]:
        return self.shapes[name]

    def dtype(self, name: str) -> VarType:
        return self.dtypes[name]

    def set(self, name: str, shape: tuple[int, ...], dtype: VarType) -> None:
        self.shapes[name] = shape
        self.dtypes[name] = dtype

    def value(self, name: str) -> np.ndarray | None:
        self.asked = True
        return backend.to_host(self.values.get(name))
