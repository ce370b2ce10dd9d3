"""`fluid.core`: the names that Fluid code takes from Fluid's native module."""

from typing import TYPE_CHECKING

from ...base import missing
from ...base.errors import EnforceNotMet, EOFException
from ...base.fluid_flags import Globals as GlobalVarGetterSetterRegistry
from ...base.fluid_flags import all_flags as globals
from ...base.place import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place, is_compiled_with_cuda
from ...base.place import cuda_device_count as get_cuda_device_count
from ...base.rank_table import RankTable as LodRankTable
from ...eager import Tensor as VarBase
from ...eager import Tracer
from ...eager.tracer import BackwardStrategy
from ...executor.functions import BoundOperator as Operator
from ...executor.lod_tensor import LoDTensor, LoDTensorArray, from_dlpack
from ...executor.scope import RowsInScope as SelectedRows
from ...executor.scope import Scope
from ...executor.scope import ScopeVariable as Variable
from ...framework.serialization.descs import AttrType, BlockDesc, OpDesc, ProgramDesc, VarDesc
from ...framework.serialization.ir_graph import Graph
from ...framework.serialization.ir_graph import IrNode as Node
from ...reader.loader import tensor_queue
from ...reader.loader.tensor_queue import *  # noqa: F403
from . import native_executor, ops, programs, system
from .native_executor import *  # noqa: F403
from .programs import *  # noqa: F403
from .system import *  # noqa: F403

if TYPE_CHECKING:
    from ..inference import *  # noqa: F403
    from .processes import *  # noqa: F403

_Scope = Scope
_set_eager_deletion_mode = system._set_eager_deletion_mode
_set_fuse_parameter_group_size = system._set_fuse_parameter_group_size
_set_fuse_parameter_memory_size = system._set_fuse_parameter_memory_size
_dygraph_debug_level = system._dygraph_debug_level
_is_dygraph_debug_enabled = system._is_dygraph_debug_enabled
_is_program_version_supported = system._is_program_version_supported
Tensor = LoDTensor

__all__ = [
    "AttrType",
    "BackwardStrategy",
    "BlockDesc",
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "EOFException",
    "EnforceNotMet",
    "GlobalVarGetterSetterRegistry",
    "Graph",
    "LoDTensor",
    "LoDTensorArray",
    "LodRankTable",
    "Node",
    "OpDesc",
    "Operator",
    "Place",
    "ProgramDesc",
    "Scope",
    "SelectedRows",
    "Tensor",
    "Tracer",
    "VarBase",
    "VarDesc",
    "Variable",
    "from_dlpack",
    "get_cuda_device_count",
    "globals",
    "is_compiled_with_cuda",
    "op_proto_and_checker_maker",  # noqa: F405 - a view (base/names/views.py)
    "ops",
    "var_names",  # noqa: F405 - a view
]
__all__ += system.__all__
__all__ += tensor_queue.__all__
__all__ += programs.__all__
__all__ += native_executor.__all__
__all__ += missing.public(__name__)

__getattr__, __dir__ = missing.lazy(__name__)
