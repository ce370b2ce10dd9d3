from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

class FieldCountError(ValueError): ...

class Spec:
    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    lod_level: int
    checked: bool
    def __init__(
        self, name: str, dtype: Any, shape: Iterable[int], lod_level: int = 0, checked: bool = True
    ) -> None: ...

class Collator:
    samples: int
    batches: int
    reading: float
    def __init__(
        self,
        specs: Sequence[Spec],
        wrap: Callable[[np.ndarray, Any], Any],
        reader: str = "",
        memory: Any = None,
    ) -> None: ...
    def collate(self, samples: Iterable[Any]) -> list[Any]: ...
    def fill(self, iterator: Iterator[Any], count: int, drop_short: bool) -> list[Any] | None: ...

class Handover:
    reading: float
    def __init__(self, memory: Any = None, passing: bool = False) -> None: ...
    def take(self, produce: Callable[[], Any]) -> Any: ...
    def copy(self, array: np.ndarray) -> np.ndarray: ...

def fill_rows(samples: list[Any], field: int, fields: int, out: np.ndarray) -> int: ...
def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray: ...
def counters() -> dict[str, int]: ...
def trim() -> None: ...
