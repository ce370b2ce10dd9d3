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
    TrainingDecoder as TrainingDecoder,
    signature_safe_contextmanager as signature_safe_contextmanager,
)
from fluidlite.contrib.decoder.state_cell import (
    InitState as InitState,
    StateCell as StateCell,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.layer_helper import (
    LayerHelper as LayerHelper,
)
