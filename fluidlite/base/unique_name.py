"""Unique names for variables, parameters and operators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from . import context


class UniqueNameGenerator:
    """Counts per key: `fc` gives `fc_0`, `fc_1`, ..., with `prefix` before each name."""

    def __init__(self, prefix: str | None = None) -> None:
        self.prefix = prefix or ""
        self.ids: defaultdict[str, int] = defaultdict(int)

    def __call__(self, key: str) -> str:
        number = self.ids[key]
        self.ids[key] = number + 1
        return f"{self.prefix}{key}_{number}"


class DygraphParameterNameChecker:
    """The names that users gave to parameters in dygraph mode, each of which may be used once."""

    def __init__(self) -> None:
        self._name_set: set[str] = set()

    def __call__(self, name: str) -> bool:
        """Whether `name` is taken; takes it."""
        known = name in self._name_set
        self._name_set.add(name)
        return known


State = tuple[UniqueNameGenerator, DygraphParameterNameChecker]

_current: context.Slot[State] = context.Slot(
    "unique_name", (UniqueNameGenerator(), DygraphParameterNameChecker())
)


def current() -> State:
    """The current generator of names, and that of parameters in dygraph mode."""
    return _current.get()


def generate(key: str) -> str:
    """A name `key_N` that the current generator has not given out yet."""
    return _current.get()[0](key)


def is_taken(name: str) -> bool:
    """Whether a parameter of dygraph mode is called `name`; from now on one is."""
    return _current.get()[1](name)


def switch(
    new_generator: UniqueNameGenerator | None = None,
    new_para_name_checker: DygraphParameterNameChecker | None = None,
) -> State:
    """Switch to these generators, or to fresh ones; returns the old ones, to be restored by `switch(*old)`."""
    old = _current.get()
    _current.set(_state(new_generator, new_para_name_checker))
    return old


def _state(
    generator: UniqueNameGenerator | None, checker: DygraphParameterNameChecker | None = None
) -> State:
    return (
        UniqueNameGenerator() if generator is None else generator,
        DygraphParameterNameChecker() if checker is None else checker,
    )


@contextmanager
def guard(new_generator: UniqueNameGenerator | str | bytes | None = None) -> Iterator[None]:
    """Count names from zero inside the block, so that two networks can get the same parameter names.

    Args:
        new_generator: a generator to go on with, or a string put before each name.

    Example:
        >>> import paddle.fluid as fluid
        >>> for _ in range(2):
        ...     with fluid.unique_name.guard("net_"):
        ...         print(fluid.unique_name.generate("fc"))
        net_fc_0
        net_fc_0
    """
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator)
    with _current.hold(_state(new_generator)):
        yield
