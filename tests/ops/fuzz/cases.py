"""Random cases of one operator: their parts, how these are drawn, and their form in files."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
Arrays = dict[str, list[np.ndarray]]

SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-42, 1.5e-38, 1.0, -1.0, 0.5, 2.0]
SIZES = [0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 17]


@dataclass
class Case:
    """One operator with its operands: `inputs` and `weights` (one for each float output) by slot."""

    op: str
    inputs: Arrays
    attrs: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)
    lods: dict[str, list[Any]] = field(default_factory=dict)
    grads: list[str] = field(default_factory=list)
    weights: Arrays = field(default_factory=dict)

    def __repr__(self) -> str:
        described = {slot: [_described(a) for a in items] for slot, items in self.inputs.items()}
        return f"{self.op} {described} {self.attrs}" + (f" lods {self.lods}" if self.lods else "")


def _described(array: np.ndarray) -> str:
    text = f"{array.dtype}{list(array.shape)}"
    return text if array.size > 24 else text + "=" + " ".join(str(array.tolist()).split())


class Chooser:
    """Draws everything that is random in a case from one primitive: a whole number between two bounds."""

    def __init__(self, integer: Callable[[int, int], int]) -> None:
        self.int = integer

    def pick(self, items: Sequence[T]) -> T:
        return items[self.int(0, len(items) - 1)]

    def one_in(self, n: int) -> bool:
        return self.int(1, n) == n

    def bool(self) -> bool:
        return self.int(0, 1) == 1

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.int(0, 2**31 - 1))

    def dim(self, low: int = 0) -> int:
        """A size; 0 now and then."""
        found = self.pick(SIZES)
        return max(found, low) if found or self.one_in(4) else max(1, low)

    def shape(self, least: int = 1, most: int = 4, low: int = 0) -> tuple[int, ...]:
        """A shape of `least` to `most` axes with at most about 2000 elements."""
        made: list[int] = []
        for _ in range(self.int(least, most)):
            size = self.dim(low)
            made.append(size if np.prod(made, initial=1) * size <= 2000 else 1)
        return tuple(made)

    def real(self) -> str:
        """A float type."""
        return self.pick(["float32", "float32", "float32", "float64"])

    def floats(self, shape: Sequence[int], dtype: str | None = None, kind: str = "any") -> np.ndarray:
        """Floats: `any` (special values now and then), `plain` (-2 to 2), `unit` (0 to 1), `positive`."""
        rng = self.rng()
        dtype = dtype or self.real()
        if kind in ("unit", "positive"):
            return rng.uniform(0.05, 0.95 if kind == "unit" else 2, shape).astype(dtype)
        made = rng.uniform(-2, 2, shape)
        if self.one_in(3):
            made = np.round(made * 2) / 2  # ties
        made = made.astype(dtype)
        if kind == "any" and self.one_in(4):
            some = rng.random(shape) < 0.3
            made = np.where(some, rng.choice(SPECIAL, shape), made).astype(dtype)
        return made

    def ints(self, shape: Sequence[int], low: int, high: int, dtype: str = "int64") -> np.ndarray:
        """Whole numbers from low to high, both included."""
        return self.rng().integers(low, high + 1, shape).astype(dtype)

    def values(self, shape: Sequence[int], dtype: str, kind: str = "any") -> np.ndarray:
        """Elements of any type; extreme integers now and then."""
        if dtype.startswith("float"):
            return self.floats(shape, dtype, kind)
        if dtype == "bool":
            return self.ints(shape, 0, 1).astype(dtype)
        low = 0 if dtype.startswith("u") else -5
        made = self.ints(shape, low, 5, dtype)
        if kind == "any" and self.one_in(4):
            info = np.iinfo(dtype)
            rng = self.rng()
            extreme = rng.choice(np.array([info.min, info.max, 0, 1], dtype=dtype), shape)
            made = np.where(rng.random(shape) < 0.3, extreme, made)
        return made


Recipe = Callable[[Chooser, str], Case]
RECIPES: dict[str, Recipe] = {}


def recipe(*op_types: str) -> Callable[[Recipe], Recipe]:
    """Declare how cases of these operators are drawn."""

    def declare(function: Recipe) -> Recipe:
        for op_type in op_types:
            assert op_type not in RECIPES, op_type
            RECIPES[op_type] = function
        return function

    return declare


def drawn(op: str, number: int) -> Case:
    """The case of an operator with this number."""
    rng = np.random.default_rng([zlib.crc32(op.encode()), number])
    with np.errstate(all="ignore"):
        return RECIPES[op](Chooser(lambda low, high: int(rng.integers(low, high + 1))), op)


def case(op: str, inputs: dict[str, Any], attrs: dict[str, Any] | None = None, **more: Any) -> Case:
    """A case; lone arrays stand for lists of one, None for a slot left out."""
    lists = {
        slot: given if isinstance(given, list) else [given]
        for slot, given in inputs.items()
        if given is not None
    }
    return Case(op, lists, attrs or {}, **more)


def to_json(value: Any) -> Any:
    """Cases and results as JSON: arrays are dicts of dtype, shape and base64."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        text = base64.b64encode(array.tobytes()).decode()
        return {"dtype": array.dtype.str, "shape": list(array.shape), "data": text}
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, Case):
        return to_json(vars(value))
    return value


def from_json(value: Any) -> Any:
    """The inverse of `to_json`; cases become dicts."""
    if isinstance(value, dict):
        if set(value) == {"dtype", "shape", "data"}:
            raw = np.frombuffer(base64.b64decode(value["data"]), value["dtype"])
            return raw.reshape(value["shape"]).copy()
        return {key: from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_json(item) for item in value]
    return value
