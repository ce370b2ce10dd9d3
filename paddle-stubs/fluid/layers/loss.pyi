# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.data_feeder import (
    check_type as check_type,
    check_variable_and_dtype as check_variable_and_dtype,
)
from fluidlite.fluid.initializer import (
    ConstantInitializer as Constant,
    NumpyArrayInitializer as NumpyArrayInitializer,
)
from fluidlite.fluid.layer_helper import (
    LayerHelper as LayerHelper,
)
from fluidlite.fluid.layers import (
    nn as nn,
)
from fluidlite.fluid.layers.layer_function_generator import (
    templatedoc as templatedoc,
)
from fluidlite.fluid.layers.loss import (
    bpr_loss as bpr_loss,
    center_loss as center_loss,
    chunk_eval as chunk_eval,
    crf_decoding as crf_decoding,
    cross_entropy as cross_entropy,
    cross_entropy2 as cross_entropy2,
    ctc_greedy_decoder as ctc_greedy_decoder,
    dice_loss as dice_loss,
    edit_distance as edit_distance,
    hsigmoid as hsigmoid,
    huber_loss as huber_loss,
    kIgnoreIndex as kIgnoreIndex,
    kldiv_loss as kldiv_loss,
    label_smooth as label_smooth,
    linear_chain_crf as linear_chain_crf,
    log_loss as log_loss,
    margin_rank_loss as margin_rank_loss,
    mse_loss as mse_loss,
    nce as nce,
    npair_loss as npair_loss,
    rank_loss as rank_loss,
    sampled_softmax_with_cross_entropy as sampled_softmax_with_cross_entropy,
    sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits,
    smooth_l1 as smooth_l1,
    softmax_with_cross_entropy as softmax_with_cross_entropy,
    square_error_cost as square_error_cost,
    teacher_student_sigmoid_loss as teacher_student_sigmoid_loss,
    warpctc as warpctc,
)
from fluidlite.fluid.layers.ops import (
    square as square,
)
from fluidlite.fluid.layers.tensor.arithmetic import (
    equal as equal,
)
from fluidlite.fluid.param_attr import (
    ParamAttr as ParamAttr,
)
from fluidlite.framework.mode import (
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
