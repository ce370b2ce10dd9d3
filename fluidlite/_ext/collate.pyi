from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

class FieldCountError(ValueError): ...

class Spec:
    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    lod_level: int
    def __init__(self, name: str, dtype: Any, shape: Iterable[int], lod_level: int = 0) -> None: ...

class Collator:
    samples: int
    batches: int
    def __init__(
        self,
        specs: Sequence[Spec],
        tensor: type,
        wrap: Callable[[np.ndarray, Any], Any],
        fresh_memory: bool = False,
        reader: str = "",
    ) -> None: ...
    @property
    def fresh_memory(self) -> bool: ...
    def take_up(self, previous: Collator) -> None: ...
    def collate(self, samples: Iterable[Any]) -> list[Any]: ...
    def fill(self, iterator: Iterator[Any], count: int, drop_short: bool) -> list[Any] | None: ...
    def batch(self, items: Any) -> list[Any]: ...

def counters() -> dict[str, int]: ...
def trim() -> None: ...
