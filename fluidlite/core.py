"""`fluid.core`: the names that Fluid code takes from Fluid's native module."""

from .base import missing
from .base.dtypes import VarType
from .base.errors import EnforceNotMet, EOFException
from .base.place import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place, is_compiled_with_cuda
from .base.place import cuda_device_count as get_cuda_device_count
from .eager import Tensor as VarBase
from .eager.strategy import BackwardStrategy
from .executor.lod_tensor import LoDTensor, LoDTensorArray, from_dlpack
from .executor.scope import Scope


class VarDesc:
    """Holds `VarType`, as `fluid.core.VarDesc.VarType`."""

    VarType = VarType


__all__ = [
    "BackwardStrategy",
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "EOFException",
    "EnforceNotMet",
    "LoDTensor",
    "LoDTensorArray",
    "Place",
    "Scope",
    "VarBase",
    "VarDesc",
    "from_dlpack",
    "get_cuda_device_count",
    "is_compiled_with_cuda",
]

__getattr__ = missing.reporter(__name__)
