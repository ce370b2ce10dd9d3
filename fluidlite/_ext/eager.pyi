from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Literal

import numpy as np

def setup(
    tensor_type: type,
    foreign_type: type,
    recording: Any,
    add_up: Callable[[Any, Any], Any],
    explain: Callable[[Form, int, tuple[int, ...]], Exception],
    plain: Callable[[Any], np.ndarray],
    plain_numbers: Collection[int],
) -> None: ...
def setup_tracing(
    divert: Callable[[Form, list[Any]], list[Any] | None], tracer: Callable[[], Any]
) -> None: ...
def setup_devices(
    settle: Callable[[Form | None, list[Any]], Any],
    ambient: Callable[[], Any],
    zeros: Callable[[Any, tuple[int, ...], Any], Any],
    duplicate: Callable[[Any], Any],
) -> None: ...
def count_traces(change: int) -> None: ...
def set_observer(observe: Callable[[str, int, int, Any], Any] | None) -> None: ...
def result_memory() -> tuple[int, int]: ...
def let_result_memory_go() -> None: ...
def serial() -> int: ...
def set_serial(number: int) -> None: ...
def recording() -> bool: ...
def record_call(
    function: Callable[[list[Any], bool], Iterable[Any]],
    tensors: list[Any],
    results: list[Any],
    differentiable: Sequence[bool],
) -> None: ...
def mixture(values: Iterable[Any]) -> int: ...

class Value:
    array: Any
    stop_gradient: bool
    persistable: bool
    given_name: str | None
    serial: int
    def take_number(self) -> None: ...
    node: Node | None
    index: int
    hooks: list[Callable[[Any], Any]] | None
    grad_array: Any
    def zeros_alike(self) -> Any: ...
    def clear_leaf(self) -> None: ...
    def accumulate(self, gradient: Any) -> None: ...
    def take_over(self, other: Value) -> None: ...

class Node:
    variant: Variant
    recipe: tuple[Any, Any]
    function: Callable[[list[Any], bool], Iterable[Any]] | None
    edges: list[Any] | None
    indices: list[int]
    saved: list[Any]
    out_grads: list[Any] | None
    hooks: dict[int, list[Callable[[Any], Any]]] | None
    number: int
    n_out: int
    released: bool
    def zeros(self, k: int) -> Any: ...
    def release(self) -> None: ...

class Variant:
    form: Form
    meta: Any
    device: Any
    cached: bool
    stop_gradient: tuple[bool, ...]
    layouts_out: tuple[tuple[np.dtype, tuple[int, ...]] | None, ...]
    is_native: bool
    is_view: bool
    is_open: bool
    is_fixed: bool
    def __init__(
        self,
        form: Form,
        inputs: Sequence[Any],
        outputs: Sequence[tuple[np.dtype, tuple[int, ...]] | None],
        calls: Sequence[tuple[int, list[int], list[int], list[float]]] | None,
        view: bool,
        python: Callable[[list[Any]], list[Any]],
        stop_gradient: tuple[bool, ...],
        differentiate: Callable[[Variant, tuple[bool, ...]], tuple[Any, Any] | Literal[False] | None],
        meta: Any,
        random: bool,
        cached: bool,
        device: Any = None,
        opening: tuple[Any, Any, Any, Any, Any] | None = None,
    ) -> None: ...
    def compute(self, arrays: list[Any]) -> list[Any]: ...
    def recipe(self, wanted: tuple[bool, ...]) -> tuple[Any, Any] | Literal[False] | None: ...

class Form:
    LIMIT: int
    MOST_OPEN: int
    definition: Any
    inputs: dict[str, list[str]]
    outputs: dict[str, list[str]]
    attrs: dict[str, Any]
    known: Any
    names_in: tuple[str, ...]
    names_out: tuple[str, ...]
    kinds: dict[Any, Any]
    opened: list[Variant]
    counted: bool
    def __init__(
        self,
        specialise: Callable[[Form, list[Any], Any, bool], Variant],
        definition: Any,
        inputs: dict[str, list[str]],
        outputs: dict[str, list[str]],
        attrs: dict[str, Any],
        known: Any = None,
    ) -> None: ...
    def variant(self, arrays: list[Any]) -> Variant: ...
    def __call__(self, *tensors: Any) -> Any: ...
    def invoke(self, tensors: list[Any]) -> list[Any]: ...

def arrives(places: tuple[int, ...], n_saved: int, out_grads: list[Any]) -> bool: ...

class Sweep:
    broken: bool
    def __init__(self, retain: bool, only: Any = None, blocked: Any = None, ends: Any = ()) -> None: ...
    def give(self, place: Any, index: int, gradient: Any) -> None: ...
    def arrived(self) -> list[tuple[Any, Any]]: ...
    def nodes(self) -> list[Node]: ...
    def sweep(self) -> None: ...
