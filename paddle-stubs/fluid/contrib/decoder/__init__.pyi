# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    beam_search_decoder as beam_search_decoder,
)
from fluidlite.fluid.contrib.decoder import (
    BeamSearchDecoder as BeamSearchDecoder,
    InitState as InitState,
    StateCell as StateCell,
    TrainingDecoder as TrainingDecoder,
)
