# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
    framework as framework,
    layers as layers,
    unique_name as unique_name,
)
from fluidlite.contrib.decoder import (
    BeamSearchDecoder as BeamSearchDecoder,
    InitState as InitState,
    StateCell as StateCell,
    TrainingDecoder as TrainingDecoder,
)
from fluidlite.contrib.decoder.beam_search_decoder import (
    signature_safe_contextmanager as signature_safe_contextmanager,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.layer_helper import (
    LayerHelper as LayerHelper,
)
