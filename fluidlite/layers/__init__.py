"""The layers: functions that append operators to the main program (`fluid.layers`)."""

from ..base import missing
from . import (
    activations,
    anchors,
    arithmetic,
    arranging,
    arrays,
    beams,
    boxes,
    branching,
    centers,
    click_values,
    comparison,
    constants,
    convolution,
    counter,
    crf,
    ctc,
    decode_helpers,
    decoding,
    dense,
    distributions,
    dynamic_rnn,
    if_else,
    inputs,
    io,
    joining,
    learning_rate_scheduler,
    limits,
    lod,
    loops,
    loss,
    matching,
    matrix,
    metric_op,
    normalization,
    ops,
    parts,
    picking,
    pooling,
    position_encoding,
    printing,
    probability,
    proposals,
    random,
    rank_table,
    rearranging,
    recurrent,
    recurrent_unit,
    reductions,
    regions,
    regression,
    resizing,
    retinanet,
    rnn_cells,
    sampled,
    search,
    selected_rows,
    sequence_lod,
    shapes,
    similarity,
    ssd,
    static_rnn,
    suppression,
    switch,
    tensor_math,
    user_functions,
    variables,
    yolo,
)
from .activations import *  # noqa: F403
from .anchors import *  # noqa: F403
from .arithmetic import *  # noqa: F403
from .arranging import *  # noqa: F403
from .arrays import *  # noqa: F403
from .beams import *  # noqa: F403
from .blocks import BlockGuard as BlockGuard
from .boxes import *  # noqa: F403
from .branching import *  # noqa: F403
from .branching import copy_var_to_parent_block as copy_var_to_parent_block
from .branching import select_input as select_input
from .branching import select_output as select_output
from .centers import *  # noqa: F403
from .click_values import *  # noqa: F403
from .comparison import *  # noqa: F403
from .conditional_block import ConditionalBlock as ConditionalBlock
from .constants import *  # noqa: F403
from .convolution import *  # noqa: F403
from .counter import *  # noqa: F403
from .crf import *  # noqa: F403
from .ctc import *  # noqa: F403
from .decode_helpers import *  # noqa: F403
from .decoding import *  # noqa: F403
from .dense import *  # noqa: F403
from .distributions import *  # noqa: F403
from .dynamic_rnn import *  # noqa: F403
from .if_else import *  # noqa: F403
from .if_else import merge_lod_tensor as merge_lod_tensor
from .if_else import split_lod_tensor as split_lod_tensor
from .inputs import *  # noqa: F403
from .io import *  # noqa: F403
from .joining import *  # noqa: F403
from .learning_rate_scheduler import *  # noqa: F403
from .learning_rate_scheduler import _decay_step_counter as _decay_step_counter
from .limits import *  # noqa: F403
from .lod import *  # noqa: F403
from .loops import *  # noqa: F403
from .loops import WhileGuard as WhileGuard
from .loss import *  # noqa: F403
from .matching import *  # noqa: F403
from .matrix import *  # noqa: F403
from .metric_op import *  # noqa: F403
from .normalization import *  # noqa: F403
from .ops import *  # noqa: F403
from .parts import *  # noqa: F403
from .picking import *  # noqa: F403
from .pooling import *  # noqa: F403
from .position_encoding import *  # noqa: F403
from .printing import *  # noqa: F403
from .probability import *  # noqa: F403
from .proposals import *  # noqa: F403
from .random import *  # noqa: F403
from .rank_table import *  # noqa: F403
from .rank_table import array_to_lod_tensor as array_to_lod_tensor
from .rank_table import lod_rank_table as lod_rank_table
from .rank_table import lod_tensor_to_array as lod_tensor_to_array
from .rank_table import max_sequence_len as max_sequence_len
from .rank_table import shrink_memory as shrink_memory
from .rearranging import *  # noqa: F403
from .recurrent import *  # noqa: F403
from .recurrent_unit import *  # noqa: F403
from .reductions import *  # noqa: F403
from .regions import *  # noqa: F403
from .regression import *  # noqa: F403
from .resizing import *  # noqa: F403
from .retinanet import *  # noqa: F403
from .rnn_cells import *  # noqa: F403
from .sampled import *  # noqa: F403
from .search import *  # noqa: F403
from .selected_rows import *  # noqa: F403
from .sequence_lod import *  # noqa: F403
from .shapes import *  # noqa: F403
from .similarity import *  # noqa: F403
from .ssd import *  # noqa: F403
from .static_rnn import *  # noqa: F403
from .suppression import *  # noqa: F403
from .switch import *  # noqa: F403
from .tensor_math import *  # noqa: F403
from .user_functions import *  # noqa: F403
from .variables import *  # noqa: F403
from .yolo import *  # noqa: F403

__all__ = []
__all__ += activations.__all__
__all__ += anchors.__all__
__all__ += arithmetic.__all__
__all__ += arranging.__all__
__all__ += arrays.__all__
__all__ += beams.__all__
__all__ += boxes.__all__
__all__ += branching.__all__
__all__ += centers.__all__
__all__ += click_values.__all__
__all__ += comparison.__all__
__all__ += constants.__all__
__all__ += convolution.__all__
__all__ += counter.__all__
__all__ += crf.__all__
__all__ += ctc.__all__
__all__ += decode_helpers.__all__
__all__ += decoding.__all__
__all__ += dense.__all__
__all__ += distributions.__all__
__all__ += dynamic_rnn.__all__
__all__ += if_else.__all__
__all__ += inputs.__all__
__all__ += io.__all__
__all__ += joining.__all__
__all__ += learning_rate_scheduler.__all__
__all__ += limits.__all__
__all__ += lod.__all__
__all__ += loops.__all__
__all__ += loss.__all__
__all__ += matching.__all__
__all__ += matrix.__all__
__all__ += metric_op.__all__
__all__ += normalization.__all__
__all__ += ops.__all__
__all__ += parts.__all__
__all__ += picking.__all__
__all__ += pooling.__all__
__all__ += position_encoding.__all__
__all__ += printing.__all__
__all__ += probability.__all__
__all__ += proposals.__all__
__all__ += random.__all__
__all__ += rank_table.__all__
__all__ += rearranging.__all__
__all__ += recurrent.__all__
__all__ += recurrent_unit.__all__
__all__ += reductions.__all__
__all__ += regions.__all__
__all__ += regression.__all__
__all__ += resizing.__all__
__all__ += retinanet.__all__
__all__ += rnn_cells.__all__
__all__ += sampled.__all__
__all__ += search.__all__
__all__ += selected_rows.__all__
__all__ += sequence_lod.__all__
__all__ += shapes.__all__
__all__ += similarity.__all__
__all__ += ssd.__all__
__all__ += static_rnn.__all__
__all__ += suppression.__all__
__all__ += switch.__all__
__all__ += tensor_math.__all__
__all__ += user_functions.__all__
__all__ += variables.__all__
__all__ += yolo.__all__

__getattr__ = missing.reporter(__name__)
