"""Layers and what belongs to them (`paddle.nn`)."""

from typing import TYPE_CHECKING

from ...fluid.dygraph.layers import Layer as Layer
from ...framework import mode
from ..optimizer.optimizer import ClipGradByGlobalNorm as ClipGradByGlobalNorm
from ..optimizer.optimizer import ClipGradByNorm as ClipGradByNorm
from ..optimizer.optimizer import ClipGradByValue as ClipGradByValue
from ..small_modules import ParamAttr as ParamAttr
from . import functional as functional
from . import initializer as initializer
from . import layer
from . import utils as utils
from .layer import *  # noqa: F403

if not TYPE_CHECKING:
    __all__ = ["ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "Layer", "ParamAttr"]
    __all__ += ["functional", "initializer", "utils", *layer.__all__]

mode.be_modern()
