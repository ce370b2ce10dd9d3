# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    metric_op as metric_op,
    nn as nn,
    rnn_impl as rnn_impl,
)
from fluidlite.fluid.contrib.layers import (
    BasicGRUUnit as BasicGRUUnit,
    BasicLSTMUnit as BasicLSTMUnit,
    basic_gru as basic_gru,
    basic_lstm as basic_lstm,
    ctr_metric_bundle as ctr_metric_bundle,
    fused_elemwise_activation as fused_elemwise_activation,
    fused_embedding_seq_pool as fused_embedding_seq_pool,
    match_matrix_tensor as match_matrix_tensor,
    multiclass_nms2 as multiclass_nms2,
    partial_concat as partial_concat,
    partial_sum as partial_sum,
    rank_attention as rank_attention,
    search_pyramid_hash as search_pyramid_hash,
    sequence_topk_avg_pooling as sequence_topk_avg_pooling,
    shuffle_batch as shuffle_batch,
    tdm_child as tdm_child,
    tdm_sampler as tdm_sampler,
    tree_conv as tree_conv,
    var_conv_2d as var_conv_2d,
)
