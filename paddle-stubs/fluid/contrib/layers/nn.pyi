# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.base.dtypes import (
    to_vartype as convert_np_dtype_to_dtype_,
)
from fluidlite.fluid import (
    unique_name as unique_name,
)
from fluidlite.fluid.contrib.layers.nn import (
    LayerHelper as LayerHelper,
    Variable as Variable,
    fused_elemwise_activation as fused_elemwise_activation,
    fused_embedding_seq_pool as fused_embedding_seq_pool,
    match_matrix_tensor as match_matrix_tensor,
    multiclass_nms2 as multiclass_nms2,
    partial_concat as partial_concat,
    partial_sum as partial_sum,
    rank_attention as rank_attention,
    reshape as reshape,
    search_pyramid_hash as search_pyramid_hash,
    sequence_topk_avg_pooling as sequence_topk_avg_pooling,
    shuffle_batch as shuffle_batch,
    slice as slice,
    tdm_child as tdm_child,
    tdm_sampler as tdm_sampler,
    tree_conv as tree_conv,
    var_conv_2d as var_conv_2d,
)
from fluidlite.fluid.data_feeder import (
    check_dtype as check_dtype,
    check_type as check_type,
    check_variable_and_dtype as check_variable_and_dtype,
    convert_dtype as convert_dtype,
)
from fluidlite.fluid.initializer import (
    ConstantInitializer as Constant,
    NormalInitializer as Normal,
    NumpyArrayInitializer as NumpyArrayInitializer,
)
from fluidlite.fluid.layers import (
    utils as utils,
)
