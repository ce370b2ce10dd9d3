# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    framework as framework,
)
from fluidlite.fluid import (
    core as core,
    layers as layers,
    unique_name as unique_name,
)
from fluidlite.fluid.contrib.decoder import (
    BeamSearchDecoder as BeamSearchDecoder,
    InitState as InitState,
    StateCell as StateCell,
    TrainingDecoder as TrainingDecoder,
)
from fluidlite.fluid.contrib.decoder.beam_search_decoder import (
    signature_safe_contextmanager as signature_safe_contextmanager,
)
from fluidlite.fluid.layer_helper import (
    LayerHelper as LayerHelper,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
