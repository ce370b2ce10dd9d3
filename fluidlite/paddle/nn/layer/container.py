"""Layers that hold layers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ....fluid.dygraph.container import LayerList, ParameterList, Sequential
from ....fluid.dygraph.layers import Layer

__all__ = ["LayerDict", "LayerList", "ParameterList", "Sequential"]


class LayerDict(Layer):
    """Layers by name (`paddle.nn.LayerDict`). It cannot be called.

    `sublayers`: a mapping, or (name, layer) pairs.
    """

    def __init__(self, sublayers: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        self.update(sublayers or {})

    def __getitem__(self, key: str) -> Any:
        return self._sub_layers[key]

    def __setitem__(self, key: str, layer: Any) -> None:
        self.add_sublayer(key, layer)

    def __delitem__(self, key: str) -> None:
        del self._sub_layers[key]

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sub_layers)

    def __contains__(self, key: object) -> bool:
        return key in self._sub_layers

    def keys(self) -> Any:
        """The names."""
        return self._sub_layers.keys()

    def values(self) -> Any:
        """The layers."""
        return self._sub_layers.values()

    def items(self) -> Any:
        """(name, layer) pairs."""
        return self._sub_layers.items()

    def pop(self, key: str) -> Any:
        """Take the layer of that name out; returns it."""
        return self._sub_layers.pop(key)

    def clear(self) -> None:
        """Take all layers out."""
        self._sub_layers.clear()

    def update(self, sublayers: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add layers, in place of those of the same names."""
        for name, layer in sublayers.items() if isinstance(sublayers, Mapping) else sublayers:
            self.add_sublayer(name, layer)
