# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.executor import (
    FetchHandler as FetchHandler,
)
from fluidlite.fluid.small_modules import (
    get_logger as get_logger,
)
from fluidlite.fluid.trainer_desc import (
    DistMultiTrainer as DistMultiTrainer,
    DownpourSGD as DownpourSGD,
    DownpourSGDOPT as DownpourSGDOPT,
    FetchHandlerMonitor as FetchHandlerMonitor,
    Hogwild as Hogwild,
    MultiTrainer as MultiTrainer,
    PipelineTrainer as PipelineTrainer,
    Section as Section,
    TrainerFactory as TrainerFactory,
    local_logger as local_logger,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
