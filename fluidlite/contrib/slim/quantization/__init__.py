"""`fluid.contrib.slim.quantization`: training and inference with integers of few bits."""

from ....base import missing
from . import post_training_quantization, quantization_pass, quantization_strategy
from .post_training_quantization import PostTrainingQuantization, WeightQuantization
from .quantization_pass import *  # noqa: F403
from .quantization_strategy import QuantizationStrategy

__all__ = [
    "PostTrainingQuantization",
    "QuantizationStrategy",
    "WeightQuantization",
    "post_training_quantization",
    "quantization_pass",
    "quantization_strategy",
]
__all__ += quantization_pass.__all__

__getattr__ = missing.reporter(__name__)
