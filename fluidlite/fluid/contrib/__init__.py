"""`fluid.contrib`: extensions of Fluid's core."""

from . import (
    decoder,
    extend_optimizer,
    layers,
    mixed_precision,
    model_stat,
    quantize,
    slim,
    utils,
)
from .decoder import BeamSearchDecoder, InitState, StateCell, TrainingDecoder
from .extend_optimizer import extend_with_decoupled_weight_decay
from .layers import BasicGRUUnit, BasicLSTMUnit, basic_gru, basic_lstm, ctr_metric_bundle
from .layers.nn import *  # noqa: F403
from .mixed_precision import AutoMixedPrecisionLists, decorate
from .model_stat import memory_usage, op_freq_statistic, summary
from .quantize import QuantizeTranspiler
from .utils import HDFSClient, distributed_batch_reader, multi_download, multi_upload

__all__ = [
    "AutoMixedPrecisionLists",
    "BasicGRUUnit",
    "BasicLSTMUnit",
    "BeamSearchDecoder",
    "HDFSClient",
    "InitState",
    "QuantizeTranspiler",
    "StateCell",
    "TrainingDecoder",
    "basic_gru",
    "basic_lstm",
    "ctr_metric_bundle",
    "decoder",
    "decorate",
    "distributed_batch_reader",
    "extend_optimizer",
    "extend_with_decoupled_weight_decay",
    "layers",
    "memory_usage",
    "mixed_precision",
    "model_stat",
    "multi_download",
    "multi_upload",
    "op_freq_statistic",
    "quantize",
    "reader",  # noqa: F405 - a view (base/names/views.py)
    "slim",
    "summary",
    "utils",
]
__all__ += layers.nn.__all__
