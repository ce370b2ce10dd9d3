# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
    debugger as debugger,
)
from fluidlite.fluid.incubate.fleet.utils.utils import (
    Program as Program,
    all_vars_out_fn as all_vars_out_fn,
    append_load_op as append_load_op,
    append_save_op as append_save_op,
    check_not_expected_ops as check_not_expected_ops,
    check_pruned_program_vars as check_pruned_program_vars,
    check_saved_vars_try_dump as check_saved_vars_try_dump,
    feed_fetch_type_list as feed_fetch_type_list,
    feed_gen as feed_gen,
    get_logger as get_logger,
    graphviz as graphviz,
    load_program as load_program,
    load_program_binary as load_program_binary,
    load_program_text as load_program_text,
    load_var as load_var,
    logger as logger,
    not_expected_op_types as not_expected_op_types,
    ops_out_fn as ops_out_fn,
    parse_program as parse_program,
    persistable_vars_out_fn as persistable_vars_out_fn,
    program_type_trans as program_type_trans,
    reader as reader,
    save_program as save_program,
    save_var as save_var,
    try_load_model_vars as try_load_model_vars,
)
