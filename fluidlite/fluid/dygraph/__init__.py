"""Computing at once: layers, their parameters, and what trains and saves them (`fluid.dygraph`)."""

from typing import TYPE_CHECKING

from ...base import missing

if TYPE_CHECKING:
    from ...eager.tracer import BackwardStrategy
    from ..optimizer.epoch_schedules import LambdaDecay, MultiStepDecay, ReduceLROnPlateau, StepDecay
    from ..optimizer.schedules import (
        CosineDecay,
        ExponentialDecay,
        InverseTimeDecay,
        LinearLrWarmup,
        NaturalExpDecay,
        NoamDecay,
        PiecewiseDecay,
        PolynomialDecay,
    )
    from .base import (
        Tracer,
        disable_dygraph,
        disable_imperative,
        enable_dygraph,
        enable_imperative,
        enabled,
        grad,
        guard,
        no_grad,
        to_variable,
    )
    from .checkpoint import load_dygraph, save_dygraph
    from .container import LayerList, ParameterList, Sequential
    from .jit import ProgramTranslator, TracedLayer, declarative, dygraph_to_static_func
    from .jit.models import StaticModelRunner
    from .layers import Layer
    from .nn import (
        NCE,
        BatchNorm,
        BCELoss,
        BilinearTensorProduct,
        Conv2D,
        Conv2DTranspose,
        Conv3D,
        Conv3DTranspose,
        Dropout,
        Embedding,
        GroupNorm,
        GRUUnit,
        InstanceNorm,
        L1Loss,
        LayerNorm,
        Linear,
        MSELoss,
        NLLLoss,
        Pool2D,
        PRelu,
        SpectralNorm,
        TreeConv,
    )
    from .parallel import DataParallel, ParallelEnv, prepare_context

__all__ = [
    "BCELoss",
    "BackwardStrategy",
    "BatchNorm",
    "BilinearTensorProduct",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "CosineDecay",
    "DataParallel",
    "Dropout",
    "Embedding",
    "ExponentialDecay",
    "GRUUnit",
    "GroupNorm",
    "InstanceNorm",
    "InverseTimeDecay",
    "L1Loss",
    "LambdaDecay",
    "Layer",
    "LayerList",
    "LayerNorm",
    "Linear",
    "LinearLrWarmup",
    "MSELoss",
    "MultiStepDecay",
    "NCE",
    "NLLLoss",
    "NaturalExpDecay",
    "NoamDecay",
    "PRelu",
    "ParallelEnv",
    "ParameterList",
    "PiecewiseDecay",
    "PolynomialDecay",
    "Pool2D",
    "ProgramTranslator",
    "ReduceLROnPlateau",
    "Sequential",
    "SpectralNorm",
    "StaticModelRunner",
    "StepDecay",
    "TracedLayer",
    "Tracer",
    "TreeConv",
    "declarative",
    "disable_dygraph",
    "disable_imperative",
    "dygraph_to_static_func",
    "enable_dygraph",
    "enable_imperative",
    "enabled",
    "grad",
    "guard",
    "load_dygraph",
    "no_grad",
    "prepare_context",
    "save_dygraph",
    "to_variable",
]

__getattr__, __dir__ = missing.lazy(__name__)
