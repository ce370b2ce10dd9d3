# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
    framework as framework,
    layers as layers,
)
from fluidlite.clip import (
    BaseErrorClipAttr as BaseErrorClipAttr,
    GradientClipByGlobalNorm as ClipByGlobalNorm,
    GradientClipByNorm as ClipByNorm,
    GradientClipByValue as ClipByValue,
    ErrorClipByValue as ErrorClipByValue,
    GradientClipBase as GradientClipBase,
    GradientClipByGlobalNorm as GradientClipByGlobalNorm,
    GradientClipByNorm as GradientClipByNorm,
    GradientClipByValue as GradientClipByValue,
    append_gradient_clip_ops as append_gradient_clip_ops,
    error_clip_callback as error_clip_callback,
    set_gradient_clip as set_gradient_clip,
)
from fluidlite.dygraph import (
    base as imperative_base,
)
from fluidlite.framework.name_scopes import (
    name_scope as name_scope,
)
