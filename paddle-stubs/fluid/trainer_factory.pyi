# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.log_helper import (
    get_logger as get_logger,
)
from fluidlite.fluid.trainer_desc import (
    DistMultiTrainer as DistMultiTrainer,
    DownpourSGD as DownpourSGD,
    DownpourSGDOPT as DownpourSGDOPT,
    Hogwild as Hogwild,
    MultiTrainer as MultiTrainer,
    PipelineTrainer as PipelineTrainer,
    Section as Section,
)
from fluidlite.fluid.trainer_factory import (
    FetchHandler as FetchHandler,
    FetchHandlerMonitor as FetchHandlerMonitor,
    TrainerFactory as TrainerFactory,
    local_logger as local_logger,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
