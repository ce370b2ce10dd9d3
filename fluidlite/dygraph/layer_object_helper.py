"""`LayerObjectHelper`: the `LayerHelper` of a `Layer`, whose methods take inputs and attributes as arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..base import missing
from ..base.dtypes import VarType
from ..layer_helper import LayerHelper

__all__ = ["LayerObjectHelper"]


class LayerObjectHelper(LayerHelper):
    """The `_helper` of a `Layer` (`fluid.dygraph.layer_object_helper.LayerObjectHelper`).

    `name`: the prefix of names of parameters and results.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, name=name)

    def _helper_for(self, inputs_in: Any, param_attr_in: Any = None) -> LayerHelper:
        """A helper of the same name with these inputs and attributes."""
        return LayerHelper(self.layer_type, name=self.name, input=inputs_in, param_attr=param_attr_in)

    def _multiple_input(self, inputs_in: Any) -> list[Any]:
        """`inputs_in` as a list; TypeError for anything but variables and tensors."""
        return list(self._helper_for(inputs_in).multiple_input())

    def _input(self, inputs_in: Any) -> Any:
        """The only one of `inputs_in`; ValueError if there are several."""
        return self._helper_for(inputs_in).input()

    def _multiple_param_attr(self, length: int, param_attr_in: Any = None) -> list[Any]:
        """A ParamAttr for each of `length` inputs."""
        return self._helper_for([], param_attr_in).multiple_param_attr(length)

    def iter_inputs_and_params(  # type: ignore[override]
        self, inputs_in: Any, param_attr_in: Any = None
    ) -> Iterator[tuple[Any, Any]]:
        """Each of `inputs_in` with its ParamAttr."""
        return self._helper_for(inputs_in, param_attr_in).iter_inputs_and_params()

    def input_dtype(self, inputs_in: Any) -> VarType:  # type: ignore[override]
        """The element type of `inputs_in`; ValueError if they differ."""
        return self._helper_for(inputs_in).input_dtype()

    def is_instance(self, param: Any, cls: type) -> None:  # type: ignore[override]
        """Raise TypeError unless `param` is a `cls`."""
        if not isinstance(param, cls):
            raise TypeError(
                f"an argument of {self.name} must be a {cls.__name__}, got {type(param).__name__}"
            )


__getattr__ = missing.reporter(__name__)
