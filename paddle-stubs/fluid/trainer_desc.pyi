# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.trainer_desc import (
    DistMultiTrainer as DistMultiTrainer,
    MultiTrainer as MultiTrainer,
    PipelineTrainer as PipelineTrainer,
    TrainerDesc as TrainerDesc,
)
