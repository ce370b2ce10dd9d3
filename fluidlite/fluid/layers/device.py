"""`fluid.layers.device`: the device list of programs that predate `ParallelExecutor`."""

from __future__ import annotations

from ...base.dtypes import VarType
from ...framework import Variable
from ..layer_helper import LayerHelper
from ..small_modules import deprecated

__all__: list[str] = []


@deprecated(since="0.15.0", instead="ParallelExecutor")
def get_places(device_count: int | None = None, device_type: str | None = None) -> Variable:
    """A variable that stands for `device_count` devices of a type, 'CPU' or 'CUDA'; of no use since Fluid 0.15."""
    helper = LayerHelper("get_places")
    places = helper.create_variable(name=helper._new_name(f"{helper.name}.out"), type=VarType.PLACE_LIST)
    attrs = {"device_count": int(device_count) if device_count else 0, "device_type": device_type or "AUTO"}
    helper.append_op(type="get_places", outputs={"Out": [places]}, attrs=attrs)
    return places
