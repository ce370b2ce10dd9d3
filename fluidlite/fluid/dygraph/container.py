"""Layers that hold layers or parameters: `Sequential`, `LayerList`, `ParameterList`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from .layers import Layer

__all__ = ["LayerList", "ParameterList", "Sequential"]


class Sequential(Layer):
    """A chain of layers: each is called with the output of the previous one (`fluid.dygraph.Sequential`).

    Args:
        layers: layers, which are named '0', '1', ..., or (name, layer) pairs, as tuples.

    `seq[0]` and `seq['name']` give layers by index and name, slices a Sequential of those.

    Raises:
        AssertionError, as in Fluid: for anything else.
    """

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        for index, item in enumerate(layers):
            if isinstance(item, (tuple, list)) and len(item) == 2 and isinstance(item[0], str):
                self.add_sublayer(*item)
            elif isinstance(item, Layer):
                self.add_sublayer(str(index), item)
            else:
                raise AssertionError(
                    f"Sequential takes layers or (name, layer) pairs, got {type(item).__name__} as number {index}; "
                    "for a list of layers write Sequential(*layers)"
                )

    def __getitem__(self, key: Any) -> Any:
        return _found(self._sub_layers, key, Sequential)

    def __setitem__(self, key: Any, layer: Any) -> None:
        setattr(self, _name(self._sub_layers, key, may_be_new=True), layer)

    def __delitem__(self, key: Any) -> None:
        del self._sub_layers[_name(self._sub_layers, key)]

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._sub_layers.values())

    def forward(self, input: Any) -> Any:
        for layer in self._sub_layers.values():
            input = layer(input)
        return input


class LayerList(Layer):
    """A list of layers that registers them under '0', '1', ... (`fluid.dygraph.LayerList`). It cannot be called.

    Args:
        sublayers: an iterable of layers.
    """

    def __init__(self, sublayers: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(() if sublayers is None else sublayers)

    def __getitem__(self, key: Any) -> Any:
        return _found(self._sub_layers, key, LayerList)

    def __setitem__(self, key: Any, layer: Any) -> None:
        setattr(self, _name(self._sub_layers, key), layer)

    def __delitem__(self, key: Any) -> None:
        layers = list(self._sub_layers.values())
        if isinstance(key, slice):
            del layers[key]
        else:
            del layers[list(self._sub_layers).index(_name(self._sub_layers, key))]
        self._renumber(layers)

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._sub_layers.values())

    def append(self, sublayer: Any) -> LayerList:
        """Add a layer at the end; returns the list."""
        self.add_sublayer(str(len(self)), sublayer)
        return self

    def insert(self, index: int, sublayer: Any) -> None:
        """Put a layer before number `index`, which is in [0, length]. Raises AssertionError, as Fluid, for others."""
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index <= len(self):
            raise AssertionError(f"index should be an integer in range [0, {len(self)}], got {index!r}")
        layers = list(self._sub_layers.values())
        self.add_sublayer(str(len(layers)), sublayer)
        self._renumber([*layers[:index], sublayer, *layers[index:]])

    def extend(self, sublayers: Iterable[Any]) -> LayerList:
        """Add layers at the end; returns the list."""
        for layer in sublayers:
            self.append(layer)
        return self

    def _renumber(self, layers: list[Any]) -> None:
        self._sub_layers.clear()
        self._sub_layers.update((str(index), layer) for index, layer in enumerate(layers))


class ParameterList(Layer):
    """A list of parameters that registers them under '0', '1', ... (`fluid.dygraph.ParameterList`).

    Args:
        parameters: an iterable of parameters.
    """

    def __init__(self, parameters: Iterable[Any] | None = None) -> None:
        super().__init__()
        for parameter in () if parameters is None else parameters:
            self.append(parameter)

    def __getitem__(self, key: Any) -> Any:
        return _found(self._parameters, key, ParameterList)

    def __setitem__(self, key: Any, parameter: Any) -> None:
        setattr(self, _name(self._parameters, key), parameter)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def extra_repr(self) -> str:
        return f"{len(self)} parameters"

    def append(self, parameter: Any) -> ParameterList:
        """Add a parameter at the end; returns the list."""
        self.add_parameter(str(len(self)), parameter)
        return self


def _name(held: OrderedDict[str, Any], key: Any, may_be_new: bool = False) -> str:
    """The name of the item at `key`, an index or a name.

    Raises KeyError for an unknown name, IndexError for an index out of range.
    """
    if isinstance(key, str):
        if key in held or may_be_new:
            return key
        raise KeyError(f"there is no {key!r}; there are {list(held)}")
    if str(key) in held:
        return str(key)
    names = list(held)
    if not -len(names) <= key < len(names):
        raise IndexError(f"there is no number {key}; there are {len(names)}")
    return names[key]


def _found(held: OrderedDict[str, Any], key: Any, kind: Any) -> Any:
    if isinstance(key, slice):
        if kind is Sequential:
            return Sequential(*list(held.items())[key])
        return kind(list(held.values())[key])
    return held[_name(held, key)]
