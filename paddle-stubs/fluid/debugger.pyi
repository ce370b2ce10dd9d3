# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
    io as io,
    unique_name as unique_name,
)
from fluidlite.fluid.debugger import (
    GraphPreviewGenerator as GraphPreviewGenerator,
    Program as Program,
    Variable as Variable,
    default_main_program as default_main_program,
    draw_block_graphviz as draw_block_graphviz,
    op_repr_handlers as op_repr_handlers,
    pprint_block_codes as pprint_block_codes,
    pprint_program_codes as pprint_program_codes,
    prepare_fast_nan_inf_debug as prepare_fast_nan_inf_debug,
    repr_attr as repr_attr,
    repr_data_type as repr_data_type,
    repr_lodtensor as repr_lodtensor,
    repr_op as repr_op,
    repr_selected_rows as repr_selected_rows,
    repr_tensor as repr_tensor,
    repr_tensor_array as repr_tensor_array,
    repr_var as repr_var,
    reprtpl as reprtpl,
    run_fast_nan_inf_debug as run_fast_nan_inf_debug,
    type_handlers as type_handlers,
)
from fluidlite.fluid.layer_helper import (
    LayerHelper as LayerHelper,
)
