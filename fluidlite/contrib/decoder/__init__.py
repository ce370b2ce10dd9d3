"""`fluid.contrib.decoder`: one description of a decoder's step for training and for beam search."""

from ...base import missing
from . import beam_search_decoder
from .beam_search_decoder import BeamSearchDecoder, InitState, StateCell, TrainingDecoder

__all__ = ["BeamSearchDecoder", "InitState", "StateCell", "TrainingDecoder", "beam_search_decoder"]

__getattr__ = missing.reporter(__name__)
