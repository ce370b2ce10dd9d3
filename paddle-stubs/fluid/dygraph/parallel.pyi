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
)
from fluidlite.fluid.dygraph import (
    layers as layers,
    parallel_helper as parallel_helper,
)
from fluidlite.fluid.dygraph.base import (
    to_variable as to_variable,
)
from fluidlite.fluid.dygraph.parallel import (
    DataParallel as DataParallel,
    Env as Env,
    ParallelEnv as ParallelEnv,
    ParallelStrategy as ParallelStrategy,
    prepare_context as prepare_context,
)
from fluidlite.fluid.layers import (
    collective as collective,
)
