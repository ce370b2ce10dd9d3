"""Running programs: scopes, tensors, plans, executors (`fluid.executor`)."""

from typing import TYPE_CHECKING

from ..base import missing
from .lod_tensor import LoDTensor, LoDTensorArray, create_lod_tensor, create_random_int_lodtensor
from .scope import Scope, global_scope, scope_guard
from .scope import switch_scope as _switch_scope  # noqa: F401 - its name in Fluid

if TYPE_CHECKING:
    # Loaded on first use.
    from .executor import Executor
    from .functions import _as_lodtensor as _as_lodtensor
    from .functions import _fetch_var as _fetch_var
    from .functions import _to_name_str as _to_name_str
    from .functions import (
        as_numpy,
        check_feed_shape_type,
        dimension_is_compatible_with,
        dtype_is_compatible_with,
        has_feed_operators,
        has_fetch_operators,
    )
    from .reading import FetchHandler

g_scope = global_scope()

__all__ = [
    "Executor",
    "FetchHandler",
    "LoDTensor",
    "LoDTensorArray",
    "Scope",
    "as_numpy",
    "check_feed_shape_type",
    "create_lod_tensor",
    "create_random_int_lodtensor",
    "dimension_is_compatible_with",
    "dtype_is_compatible_with",
    "g_scope",
    "global_scope",
    "has_feed_operators",
    "has_fetch_operators",
    "scope_guard",
]

__getattr__, __dir__ = missing.lazy(__name__)
