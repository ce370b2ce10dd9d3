"""The parameters, buffers and sublayers of a layer, registered by assignment to attributes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from ...base import callsite
from ...eager import Tensor, placing
from ...executor.lod_tensor import LoDTensor
from ...framework import Parameter

Self = TypeVar("Self", bound="Members")

_STORES = ("_parameters", "_sub_layers", "_buffers")
_WANTED = {"_parameters": ("parameter", "Parameter"), "_sub_layers": ("sublayer", "Layer")}


class Members:
    """Registers parameters, sublayers and buffers under the names of attributes, and walks over them.

    Base of `Layer`. They are kept in the dicts `_parameters`, `_sub_layers` and `_buffers` and nowhere else.
    """

    def __init__(self) -> None:
        self._parameters: OrderedDict[str, Any] = OrderedDict()
        self._sub_layers: OrderedDict[str, Any] = OrderedDict()
        self._buffers: OrderedDict[str, Any] = OrderedDict()
        self._non_persistable_buffers: set[str] = set()

    def add_parameter(self, name: str, parameter: Any) -> Any:
        """Register `parameter` (or None) as attribute `name`; returns it. Raises TypeError for anything else."""
        if parameter is not None and not isinstance(parameter, Parameter):
            raise TypeError(
                f"parameter assignment requires Parameter or None, but got '{type(parameter).__name__}'"
            )
        self._put("_parameters", name, parameter)
        return parameter

    def add_sublayer(self, name: str, sublayer: Any) -> Any:
        """Register the layer `sublayer` as attribute `name`; returns it.

        Raises AssertionError, as Fluid does, for anything else.
        """
        if not isinstance(sublayer, Members):
            raise AssertionError(f"add_sublayer takes a Layer, got '{type(sublayer).__name__}' for {name!r}")
        self._put("_sub_layers", str(name), sublayer)
        return sublayer

    def register_buffer(self, name: str, tensor: Any, persistable: bool = True) -> None:
        """Register a tensor (or None) that is no parameter, such as a running mean, as attribute `name`.

        `persistable`: whether `state_dict` has it. Raises TypeError for anything but a tensor or None, ValueError for
        a name that is taken by something else.
        """
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"a buffer must be a tensor or None, got '{type(tensor).__name__}' for {name!r}")
        if name not in self._buffers and hasattr(self, name):
            raise ValueError(f"the attribute {name!r} already exists and is no buffer")
        self._put("_buffers", name, tensor)
        if persistable:
            self._non_persistable_buffers.discard(name)
        else:
            self._non_persistable_buffers.add(name)

    def _put(self, store: str, name: str, value: Any) -> None:
        """Register `value`; it replaces any other member of that name."""
        mine = self.__dict__
        if store not in mine:
            raise ValueError("super(YourLayer, self).__init__() should be called first")
        mine.pop(name, None)
        for other in _STORES:
            if other != store:
                mine[other].pop(name, None)
        mine[store][name] = value

    def __getattr__(self, name: str) -> Any:
        # Python asks here for names that are neither in the instance nor in its class.
        mine = self.__dict__
        for store in _STORES:
            held = mine.get(store)
            if held is not None and name in held:
                return held[name]
        if "training" not in mine and name != "training":
            raise AttributeError(
                f"{type(self).__name__} has no {name!r} yet: call super().__init__() first in its __init__",
                name=name,
                obj=self,
            )
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        by_property = isinstance(getattr(type(self), name, None), property)
        if by_property:  # as in Fluid, the property is set and the value is registered, too
            object.__setattr__(self, name, value)
        if isinstance(value, Parameter):
            self._put("_parameters", name, value)
        elif isinstance(value, Members):
            self._put("_sub_layers", name, value)
        else:
            store = self._store_of(name)
            if store is None:
                if not by_property:
                    object.__setattr__(self, name, value)
            elif value is None or (store == "_buffers" and isinstance(value, Tensor)):
                self.__dict__[store][name] = value
            else:
                kind, wanted = _WANTED.get(store, ("buffer", "Tensor"))
                raise TypeError(
                    f"assignment to {kind} '{name}' should be of type {wanted} or None, "
                    f"but got '{type(value).__name__}'"
                )

    def __delattr__(self, name: str) -> None:
        store = self._store_of(name)
        if store is None:
            object.__delattr__(self, name)
        else:
            del self.__dict__[store][name]

    def __dir__(self) -> list[str]:
        return sorted(
            {*super().__dir__(), *(name for store in _STORES for name in self.__dict__.get(store, ()))}
        )

    def _store_of(self, name: str) -> str | None:
        mine = self.__dict__
        return next((store for store in _STORES if store in mine and name in mine[store]), None)

    def sublayers(self, include_sublayers: bool = True, include_self: bool = False) -> list[Any]:
        """The layers inside this one, at any depth; `include_self`: and this one, first.

        `include_sublayers=False` leaves them out, as in Fluid 1.8; `children` gives only those directly inside.
        """
        return [layer for _, layer in self.named_sublayers("", include_sublayers, include_self)]

    def named_sublayers(
        self,
        prefix: str = "",
        include_sublayers: bool = True,
        include_self: bool = False,
        layers_set: set[Any] | None = None,
    ) -> Iterator[tuple[str, Any]]:
        """(name, layer) for each layer inside this one, named by attributes joined with dots.

        Every layer comes once. `prefix` goes before the names; `layers_set` holds layers to leave out.
        """
        seen = set() if layers_set is None else layers_set
        if include_self and self not in seen:
            seen.add(self)
            yield prefix, self
        if include_sublayers:
            for name, layer in self._sub_layers.items():
                if layer is not None:
                    yield from layer.named_sublayers(_joined(prefix, name), True, True, seen)

    def children(self) -> Iterator[Any]:
        """The layers directly inside this one."""
        return (layer for _, layer in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """(name, layer) for each layer directly inside this one; every layer comes once."""
        seen: set[Any] = set()
        for name, layer in self._sub_layers.items():
            if layer is not None and layer not in seen:
                seen.add(layer)
                yield name, layer

    def parameters(self, include_sublayers: bool = True) -> list[Any]:
        """The parameters of this layer and those inside it, each once."""
        return [parameter for _, parameter in self.named_parameters("", include_sublayers)]

    def named_parameters(self, prefix: str = "", include_sublayers: bool = True) -> Iterator[tuple[str, Any]]:
        """(name, parameter) for each parameter, named by attributes joined with dots; each comes once."""
        return self._walk("_parameters", prefix, include_sublayers)

    def buffers(self, include_sublayers: bool = True) -> list[Any]:
        """The buffers of this layer and those inside it, each once."""
        return [buffer for _, buffer in self.named_buffers("", include_sublayers)]

    def named_buffers(self, prefix: str = "", include_sublayers: bool = True) -> Iterator[tuple[str, Any]]:
        """(name, buffer) for each buffer, named by attributes joined with dots; each comes once."""
        return self._walk("_buffers", prefix, include_sublayers)

    def _walk(self, store: str, prefix: str, include_sublayers: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for path, layer in self.named_sublayers(prefix, include_sublayers, include_self=True):
            for name, value in layer.__dict__[store].items():
                if value is not None and id(value) not in seen:
                    seen.add(id(value))
                    yield _joined(path, name), value

    def _everything(self) -> list[Any]:
        """This layer and those inside it, each once, in no particular order; cheaper than walking by names."""
        every: list[Any] = [self]
        seen: set[Any] = {self}
        for layer in every:
            for inner in layer._sub_layers.values():
                if inner is not None and inner not in seen:
                    seen.add(inner)
                    every.append(inner)
        return every

    def apply(self: Self, fn: Callable[[Any], Any]) -> Self:
        """Call `fn(layer)` for every layer inside this one, the innermost first, and for this one; returns it."""
        for layer in self.children():
            layer.apply(fn)
        fn(self)
        return self


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else str(name)


NAME_TABLE = "StructuredToParameterName@@"
"""The key in files of the table from structured names to parameters' names."""


def gather(layer: Members, into: dict[str, Any], prefix: str, include_sublayers: bool) -> dict[str, Any]:
    """Add the parameters and persistable buffers of `layer` to a dict by their names; returns it.

    Shared tensors are there under each of their names, so that each layer can be restored separately.
    """
    for name, parameter in layer._parameters.items():
        if parameter is not None:
            into[prefix + name] = parameter
    for name, buffer in layer._buffers.items():
        if buffer is not None and name not in layer._non_persistable_buffers:
            into[prefix + name] = buffer
    if include_sublayers:
        for name, inner in layer._sub_layers.items():
            if inner is not None:
                gather(inner, into, f"{prefix}{name}.", True)
    return into


def restore(targets: Mapping[str, Any], given: Any, structured: bool) -> None:
    """Copy the values in the dict `given` into `targets` (name -> tensor), all or none.

    `structured`: its keys are those of `targets`; otherwise they are the names of the tensors. Warns of unused names.
    Raises RuntimeError for a missing name, AssertionError, as in Fluid, for another shape or element type, TypeError if
    `given` is no dict; then nothing is changed.
    """
    wanted = _keyed(targets, structured)
    state = _checked(given)
    missing = [key for key in wanted if key not in state]
    if missing:
        raise RuntimeError(
            f"Parameter not found: the state dict has no {missing[0]!r}"
            + (f" (and {len(missing) - 1} more)" if len(missing) > 1 else "")
            + f"; its keys begin with {list(state)[:3]}. use_structured_name is {structured}: "
            + ("True takes names of attributes" if structured else "False takes names of parameters")
        )
    pairs = [(target, _fitting(target, key, state[key])) for key, target in wanted.items()]
    _warn_unused(state, wanted)
    for target, array in pairs:
        target.set_value(array)


def restore_what_fits(
    targets: Mapping[str, Any], given: Any, structured: bool
) -> tuple[list[str], list[str]]:
    """As `restore`, but values that are missing or do not fit are skipped, with a warning.

    Returns the names missing in `given` and the unused ones in it.
    """
    wanted = _keyed(targets, structured)
    state = _checked(given)
    missing, pairs = [], []
    for key, target in wanted.items():
        if key not in state:
            missing.append(key)
            callsite.warn(f"{key!r} is not in the state dict and keeps its value")
            continue
        try:
            pairs.append((target, _fitting(target, key, state[key])))
        except AssertionError as error:
            callsite.warn(f"{key!r} keeps its value: {error}")
    for target, array in pairs:
        target.set_value(array)
    return missing, [key for key in state if key not in wanted]


def _keyed(targets: Mapping[str, Any], structured: bool) -> dict[str, Any]:
    return dict(targets) if structured else {target.name: target for target in targets.values()}


def _checked(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise TypeError(f"a state dict maps names to tensors or arrays, got a {type(given).__name__}")
    return {key: value for key, value in given.items() if key != NAME_TABLE}


def _fitting(target: Any, key: str, value: Any) -> Any:
    """The array to set; AssertionError if it does not fit `target`."""
    if not isinstance(target, Tensor):
        target.set_value(value)  # refuses: a variable of a program has no value yet
    if isinstance(value, (Tensor, LoDTensor)):
        value = value.array
    if not (isinstance(value, np.ndarray) or placing.on_device(value)):
        raise AssertionError(
            f"{key!r} in the state dict must be a tensor or a NumPy array, got {type(value).__name__}"
        )
    target.check_fits(value, f" ({key!r})")
    return value


def _warn_unused(state: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    unused = [str(key) for key in state if key not in wanted]
    if unused:
        callsite.warn(
            f"not used, because the layer has no parameter or buffer of that name: {', '.join(unused)}"
        )
