# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    metric_op as metric_op,
    nn as nn,
    rnn_impl as rnn_impl,
)
from fluidlite.contrib.layers.text_matching import match_matrix_tensor as match_matrix_tensor, sequence_topk_avg_pooling as sequence_topk_avg_pooling, var_conv_2d as var_conv_2d
from fluidlite.contrib.layers.metric_op import (
    ctr_metric_bundle as ctr_metric_bundle,
)
from fluidlite.contrib.layers.nn import (
    fused_elemwise_activation as fused_elemwise_activation,
    fused_embedding_seq_pool as fused_embedding_seq_pool,
    partial_concat as partial_concat,
    partial_sum as partial_sum,
    shuffle_batch as shuffle_batch,
)
from fluidlite.contrib.layers.text_matching import search_pyramid_hash as search_pyramid_hash
from fluidlite.contrib.layers.nn import rank_attention as rank_attention
from fluidlite.contrib.layers.rnn_impl import (
    BasicGRUUnit as BasicGRUUnit,
    BasicLSTMUnit as BasicLSTMUnit,
    basic_gru as basic_gru,
    basic_lstm as basic_lstm,
)
from fluidlite.contrib.layers.nn import tdm_child as tdm_child, tdm_sampler as tdm_sampler, tree_conv as tree_conv
from fluidlite.layers.detection.suppression import (
    multiclass_nms2 as multiclass_nms2,
)
