# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    framework as framework,
)
from fluidlite.eager.autograd import (
    no_grad as no_grad,
)
from fluidlite.fluid import (
    core as core,
    layers as layers,
    layers as ops,
    unique_name as unique_name,
)
from fluidlite.fluid.clip import (
    GradientClipBase as GradientClipBase,
    GradientClipByNorm as GradientClipByNorm,
    append_gradient_clip_ops as append_gradient_clip_ops,
    error_clip_callback as error_clip_callback,
)
from fluidlite.fluid.dygraph import (
    base as imperative_base,
)
from fluidlite.fluid.initializer import (
    ConstantInitializer as Constant,
)
from fluidlite.fluid.layer_helper import (
    LayerHelper as LayerHelper,
)
from fluidlite.fluid.layers import (
    tensor as tensor,
)
from fluidlite.fluid.optimizer import (
    Adadelta as Adadelta,
    AdadeltaOptimizer as AdadeltaOptimizer,
    Adagrad as Adagrad,
    AdagradOptimizer as AdagradOptimizer,
    Adam as Adam,
    AdamOptimizer as AdamOptimizer,
    Adamax as Adamax,
    AdamaxOptimizer as AdamaxOptimizer,
    DGCMomentumOptimizer as DGCMomentumOptimizer,
    DecayedAdagrad as DecayedAdagrad,
    DecayedAdagradOptimizer as DecayedAdagradOptimizer,
    Dpsgd as Dpsgd,
    DpsgdOptimizer as DpsgdOptimizer,
    ExponentialMovingAverage as ExponentialMovingAverage,
    Ftrl as Ftrl,
    FtrlOptimizer as FtrlOptimizer,
    Lamb as Lamb,
    LambOptimizer as LambOptimizer,
    LarsMomentum as LarsMomentum,
    LarsMomentumOptimizer as LarsMomentumOptimizer,
    LookaheadOptimizer as LookaheadOptimizer,
    ModelAverage as ModelAverage,
    Momentum as Momentum,
    MomentumOptimizer as MomentumOptimizer,
    Optimizer as Optimizer,
    PipelineOptimizer as PipelineOptimizer,
    RMSProp as RMSProp,
    RMSPropOptimizer as RMSPropOptimizer,
    RecomputeOptimizer as RecomputeOptimizer,
    SGD as SGD,
    SGDOptimizer as SGDOptimizer,
    signature_safe_contextmanager as signature_safe_contextmanager,
)
from fluidlite.fluid.optimizer.schedules import (
    LearningRateDecay as LearningRateDecay,
)
from fluidlite.fluid.regularizer import (
    append_regularization_ops as append_regularization_ops,
)
from fluidlite.fluid.small_modules import (
    find_distributed_lookup_table as find_distributed_lookup_table,
)
from fluidlite.framework.common_attrs import (
    device_guard as device_guard,
    name_scope as name_scope,
)
from fluidlite.framework.gradients.backward import (
    append_backward as append_backward,
)
from fluidlite.framework.program import (
    Program as Program,
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
    program_guard as program_guard,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.paddle import (
    compat as cpt,
)
