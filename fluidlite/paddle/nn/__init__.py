"""Layers and what belongs to them (`paddle.nn`)."""

from ...base import missing
from ...dygraph.layers import Layer
from ...framework import mode
from ..optimizer.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from ..param_attr import ParamAttr
from . import functional, initializer, layer, utils
from .layer import *  # noqa: F403

__all__ = [
    "ClipGradByGlobalNorm",
    "ClipGradByNorm",
    "ClipGradByValue",
    "Layer",
    "ParamAttr",
    "functional",
    "initializer",
    "utils",
]
__all__ += layer.__all__

mode.be_modern()

__getattr__ = missing.reporter(__name__)
