# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
    io as io,
    paddle as paddle,
)
from fluidlite.contrib.utils import (
    get_inference_model as get_inference_model,
    load_persistables_for_increment as load_persistables_for_increment,
    lookup_table_dir as lookup_table_dir,
)
from fluidlite.framework import (
    Program as Program,
)
from fluidlite.io.inference import (
    MODEL as model_filename,
)
from fluidlite.log_helper import (
    get_logger as get_logger,
)
