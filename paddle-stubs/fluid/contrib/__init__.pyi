# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    decoder as decoder,
    extend_optimizer as extend_optimizer,
    layers as layers,
    memory_usage_calc as memory_usage_calc,
    mixed_precision as mixed_precision,
    model_stat as model_stat,
    op_frequence as op_frequence,
    quantize as quantize,
    reader as reader,
    slim as slim,
    utils as utils,
)
from fluidlite.fluid.contrib import (
    AutoMixedPrecisionLists as AutoMixedPrecisionLists,
    BasicGRUUnit as BasicGRUUnit,
    BasicLSTMUnit as BasicLSTMUnit,
    BeamSearchDecoder as BeamSearchDecoder,
    HDFSClient as HDFSClient,
    InitState as InitState,
    QuantizeTranspiler as QuantizeTranspiler,
    StateCell as StateCell,
    TrainingDecoder as TrainingDecoder,
    basic_gru as basic_gru,
    basic_lstm as basic_lstm,
    ctr_metric_bundle as ctr_metric_bundle,
    decorate as decorate,
    distributed_batch_reader as distributed_batch_reader,
    extend_with_decoupled_weight_decay as extend_with_decoupled_weight_decay,
    fused_elemwise_activation as fused_elemwise_activation,
    fused_embedding_seq_pool as fused_embedding_seq_pool,
    match_matrix_tensor as match_matrix_tensor,
    memory_usage as memory_usage,
    multi_download as multi_download,
    multi_upload as multi_upload,
    multiclass_nms2 as multiclass_nms2,
    op_freq_statistic as op_freq_statistic,
    partial_concat as partial_concat,
    partial_sum as partial_sum,
    rank_attention as rank_attention,
    search_pyramid_hash as search_pyramid_hash,
    sequence_topk_avg_pooling as sequence_topk_avg_pooling,
    shuffle_batch as shuffle_batch,
    summary as summary,
    tdm_child as tdm_child,
    tdm_sampler as tdm_sampler,
    tree_conv as tree_conv,
    var_conv_2d as var_conv_2d,
)
from fluidlite.fluid.contrib.slim.core import (
    Compressor as Compressor,
)
from fluidlite.fluid.contrib.utils import (
    load_persistables_for_increment as load_persistables_for_increment,
)
