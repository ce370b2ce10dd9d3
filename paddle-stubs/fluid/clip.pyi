# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    framework as framework,
)
from fluidlite.fluid import (
    core as core,
    layers as layers,
)
from fluidlite.fluid.clip import (
    BaseErrorClipAttr as BaseErrorClipAttr,
    ClipByGlobalNorm as ClipByGlobalNorm,
    ClipByNorm as ClipByNorm,
    ClipByValue as ClipByValue,
    ErrorClipByValue as ErrorClipByValue,
    GradientClipBase as GradientClipBase,
    GradientClipByGlobalNorm as GradientClipByGlobalNorm,
    GradientClipByNorm as GradientClipByNorm,
    GradientClipByValue as GradientClipByValue,
    append_gradient_clip_ops as append_gradient_clip_ops,
    error_clip_callback as error_clip_callback,
    name_scope as name_scope,
    set_gradient_clip as set_gradient_clip,
)
from fluidlite.fluid.dygraph import (
    base as imperative_base,
)
