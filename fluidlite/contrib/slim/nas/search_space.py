"""`SearchSpace`: the networks to choose from."""

from __future__ import annotations

from typing import Any, NoReturn

from ....base import missing

__all__ = ["SearchSpace"]


class SearchSpace:
    """Base of spaces of networks, each a list of integers (`fluid.contrib.slim.nas.SearchSpace`)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Accepts the arguments of subclasses."""

    def init_tokens(self) -> Any:
        """The network to begin with."""
        _abstract("init_tokens")

    def range_table(self) -> Any:
        """The number of values of each integer."""
        _abstract("range_table")

    def create_net(self, tokens: Any) -> Any:
        """The programs, metrics and readers of a network."""
        _abstract("create_net")

    def get_model_latency(self, program: Any) -> Any:
        """The latency of a network."""
        _abstract("get_model_latency")


def _abstract(name: str) -> NoReturn:
    raise NotImplementedError(f"Abstract method: a SearchSpace defines {name}")


__getattr__ = missing.reporter(__name__)
