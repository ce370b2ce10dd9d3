"""The layers: functions that append operators to the main program (`fluid.layers`)."""

from typing import TYPE_CHECKING

from ...base import missing

if TYPE_CHECKING:
    from . import (  # noqa: F401
        control_flow,
        detection,
        distributions,
        io,
        learning_rate_scheduler,
        loss,
        metric_op,
        nn,
        ops,
        recurrent,
        sequence_lod,
        tensor,
        utils,
    )
    from .control_flow import *  # noqa: F403
    from .control_flow import BlockGuard as BlockGuard
    from .control_flow import ConditionalBlock as ConditionalBlock
    from .control_flow import WhileGuard as WhileGuard
    from .control_flow import array_to_lod_tensor as array_to_lod_tensor
    from .control_flow import copy_var_to_parent_block as copy_var_to_parent_block
    from .control_flow import lod_rank_table as lod_rank_table
    from .control_flow import lod_tensor_to_array as lod_tensor_to_array
    from .control_flow import max_sequence_len as max_sequence_len
    from .control_flow import merge_lod_tensor as merge_lod_tensor
    from .control_flow import select_input as select_input
    from .control_flow import select_output as select_output
    from .control_flow import shrink_memory as shrink_memory
    from .control_flow import split_lod_tensor as split_lod_tensor
    from .detection import *  # noqa: F403
    from .distributions import *  # noqa: F403
    from .inputs import *  # noqa: F403
    from .io import *  # noqa: F403
    from .learning_rate_scheduler import *  # noqa: F403
    from .learning_rate_scheduler import _decay_step_counter as _decay_step_counter
    from .loss import *  # noqa: F403
    from .metric_op import *  # noqa: F403
    from .nn import *  # noqa: F403
    from .ops import *  # noqa: F403
    from .ops import _scale as _scale
    from .recurrent import *  # noqa: F403
    from .sequence_lod import *  # noqa: F403
    from .tensor import *  # noqa: F403
    from .utils import compare_ops as compare_ops
else:
    __all__ = missing.public(__name__)

__getattr__, __dir__ = missing.lazy(__name__)
