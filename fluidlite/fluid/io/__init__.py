"""Saving and loading models, and reading data (`fluid.io`)."""

from typing import TYPE_CHECKING

from ...base import missing

if TYPE_CHECKING:
    from ...reader import (
        ComposeNotAligned,
        DataLoader,
        Dataset,
        PyReader,
        batch,
        buffered,
        cache,
        chain,
        compose,
        default_collate_fn,
        firstn,
        map_readers,
        multiprocess_reader,
        shuffle,
        xmap_readers,
    )
    from ...reader import FluidBatchSampler as BatchSampler
    from .inference import append_fetch_ops, load_inference_model, prepend_feed_ops, save_inference_model
    from .saving import _load_persistable_nodes as _load_persistable_nodes
    from .saving import _save_persistable_nodes as _save_persistable_nodes
    from .saving import load_params, load_persistables, load_vars, save_params, save_persistables, save_vars
    from .selection import (
        get_parameter_value,
        get_parameter_value_by_name,
        get_program_parameter,
        get_program_persistable_vars,
        is_belong_to_optimizer,
        is_parameter,
        is_persistable,
    )
    from .state import load, load_program_state, save, set_program_state

__all__ = [
    "BatchSampler",
    "ComposeNotAligned",
    "DataLoader",
    "Dataset",
    "PyReader",
    "append_fetch_ops",
    "batch",
    "buffered",
    "cache",
    "chain",
    "compose",
    "default_collate_fn",
    "firstn",
    "get_parameter_value",
    "get_parameter_value_by_name",
    "get_program_parameter",
    "get_program_persistable_vars",
    "is_belong_to_optimizer",
    "is_parameter",
    "is_persistable",
    "load",
    "load_inference_model",
    "load_params",
    "load_persistables",
    "load_program_state",
    "load_vars",
    "map_readers",
    "multiprocess_reader",
    "prepend_feed_ops",
    "save",
    "save_inference_model",
    "save_params",
    "save_persistables",
    "save_vars",
    "set_program_state",
    "shuffle",
    "xmap_readers",
]

__getattr__, __dir__ = missing.lazy(__name__)
