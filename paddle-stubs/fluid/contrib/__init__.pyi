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
from fluidlite.contrib.decoder.beam_search_decoder import (
    BeamSearchDecoder as BeamSearchDecoder,
    TrainingDecoder as TrainingDecoder,
)
from fluidlite.contrib.decoder.state_cell import (
    InitState as InitState,
    StateCell as StateCell,
)
from fluidlite.contrib.extend_optimizer.extend_optimizer_with_weight_decay import (
    extend_with_decoupled_weight_decay as extend_with_decoupled_weight_decay,
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
from fluidlite.contrib.memory_usage_calc import (
    memory_usage as memory_usage,
)
from fluidlite.contrib.mixed_precision.decorator import (
    decorate as decorate,
)
from fluidlite.contrib.mixed_precision.fp16_lists import (
    AutoMixedPrecisionLists as AutoMixedPrecisionLists,
)
from fluidlite.contrib.model_stat import (
    summary as summary,
)
from fluidlite.contrib.op_frequence import (
    op_freq_statistic as op_freq_statistic,
)
from fluidlite.contrib.quantize.quantize_transpiler import (
    QuantizeTranspiler as QuantizeTranspiler,
)
from fluidlite.contrib.reader.distributed_reader import (
    distributed_batch_reader as distributed_batch_reader,
)
from fluidlite.contrib.slim.core.compressor import (
    Compressor as Compressor,
)
from fluidlite.contrib.utils.hdfs_utils import (
    HDFSClient as HDFSClient,
    multi_download as multi_download,
    multi_upload as multi_upload,
)
from fluidlite.contrib.utils.lookup_table_utils import (
    load_persistables_for_increment as load_persistables_for_increment,
)
from fluidlite.layers.detection.suppression import (
    multiclass_nms2 as multiclass_nms2,
)
