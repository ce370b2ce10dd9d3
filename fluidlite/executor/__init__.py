"""Running programs: scopes, tensors, plans, executors (`fluid.executor`)."""

from ..base import missing
from .executor import Executor
from .from_dataset import FetchHandler
from .lod_tensor import LoDTensor, LoDTensorArray, create_lod_tensor, create_random_int_lodtensor
from .scope import Scope, global_scope, scope_guard

__all__ = [
    "Executor",
    "FetchHandler",
    "LoDTensor",
    "LoDTensorArray",
    "Scope",
    "create_lod_tensor",
    "create_random_int_lodtensor",
    "global_scope",
    "scope_guard",
]

__getattr__ = missing.reporter(__name__)
