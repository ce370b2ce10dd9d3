"""Running programs: scopes, tensors, plans, executors (`fluid.executor`)."""

from ..base import missing
from .ends import check_feed_shape_type, has_feed_operators, has_fetch_operators
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
    "check_feed_shape_type",
    "create_lod_tensor",
    "create_random_int_lodtensor",
    "global_scope",
    "has_feed_operators",
    "has_fetch_operators",
    "scope_guard",
]

__getattr__ = missing.reporter(__name__)
