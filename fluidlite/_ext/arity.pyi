from collections.abc import Callable, Sequence

class Arity:
    def __init__(self, name: str, text: str) -> None: ...
    def problem(
        self,
        operands: Sequence[bool],
        ints: Sequence[int],
        floats: Sequence[float],
        sizes: Sequence[int] | None,
    ) -> str | None: ...

class ChainArity(Arity):
    def __init__(self, name: str, check_step: Callable[..., None]) -> None: ...

def count_windows(size: int, before: int, after: int, count: int, dilation: int, step: int) -> int: ...
