"""Blocks, loops, branches, arrays (`fluid.layers.control_flow`)."""

from typing import TYPE_CHECKING

from ....base import missing

if TYPE_CHECKING:
    from .arrays import *  # noqa: F403
    from .branching import *  # noqa: F403
    from .branching import copy_var_to_parent_block as copy_var_to_parent_block
    from .branching import select_input as select_input
    from .branching import select_output as select_output
    from .conditional_block import *  # noqa: F403
    from .conditional_block import BlockGuard as BlockGuard
    from .conditional_block import ConditionalBlock as ConditionalBlock
    from .conditional_block import ConditionalBlockGuard as ConditionalBlockGuard
    from .dynamic_rnn import *  # noqa: F403
    from .dynamic_rnn import array_to_lod_tensor as array_to_lod_tensor
    from .dynamic_rnn import lod_rank_table as lod_rank_table
    from .dynamic_rnn import lod_tensor_to_array as lod_tensor_to_array
    from .dynamic_rnn import max_sequence_len as max_sequence_len
    from .dynamic_rnn import shrink_memory as shrink_memory
    from .if_else import *  # noqa: F403
    from .if_else import IfElseBlockGuard as IfElseBlockGuard
    from .if_else import merge_lod_tensor as merge_lod_tensor
    from .if_else import split_lod_tensor as split_lod_tensor
    from .loops import *  # noqa: F403
    from .loops import WhileGuard as WhileGuard
    from .static_rnn import *  # noqa: F403
    from .static_rnn import BlockGuardWithCompletion as BlockGuardWithCompletion
    from .static_rnn import StaticRNNMemoryLink as StaticRNNMemoryLink
else:
    __all__ = missing.public(__name__)

__getattr__, __dir__ = missing.lazy(__name__)
