# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.incubate.fleet.parameter_server import (
    version as version,
)
from fluidlite.fluid.trainer_desc import (
    DeviceWorker as DeviceWorker,
    DeviceWorkerFactory as DeviceWorkerFactory,
    DownpourSGD as DownpourSGD,
    DownpourSGDOPT as DownpourSGDOPT,
    Hogwild as Hogwild,
    Section as Section,
)
