# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    beam_search_decoder as beam_search_decoder,
)
from fluidlite.contrib.decoder.beam_search_decoder import (
    BeamSearchDecoder as BeamSearchDecoder,
    TrainingDecoder as TrainingDecoder,
)
from fluidlite.contrib.decoder.state_cell import (
    InitState as InitState,
    StateCell as StateCell,
)
