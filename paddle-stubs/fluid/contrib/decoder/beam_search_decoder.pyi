# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
    framework as framework,
    layers as layers,
    unique_name as unique_name,
)
from fluidlite.contrib.decoder.beam_search_decoder import (
    BeamSearchDecoder as BeamSearchDecoder,
    InitState as InitState,
    LayerHelper as LayerHelper,
    StateCell as StateCell,
    TrainingDecoder as TrainingDecoder,
    Variable as Variable,
    signature_safe_contextmanager as signature_safe_contextmanager,
)
