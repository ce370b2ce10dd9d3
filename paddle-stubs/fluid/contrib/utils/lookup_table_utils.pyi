# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    paddle as paddle,
)
from fluidlite.fluid import (
    core as core,
    io as io,
)
from fluidlite.fluid.contrib.utils import (
    get_inference_model as get_inference_model,
    load_persistables_for_increment as load_persistables_for_increment,
    lookup_table_dir as lookup_table_dir,
)
from fluidlite.fluid.io.inference import (
    MODEL as model_filename,
)
from fluidlite.fluid.small_modules import (
    get_logger as get_logger,
)
from fluidlite.framework import (
    Program as Program,
)
