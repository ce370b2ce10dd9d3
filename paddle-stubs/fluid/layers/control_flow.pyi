# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
    unique_name as unique_name,
)
from fluidlite.fluid.data_feeder import (
    check_dtype as check_dtype,
    check_type as check_type,
    check_variable_and_dtype as check_variable_and_dtype,
    convert_dtype as convert_dtype,
)
from fluidlite.fluid.layer_helper import (
    LayerHelper as LayerHelper,
)
from fluidlite.fluid.layers.control_flow import (
    BlockGuard as BlockGuard,
    BlockGuardWithCompletion as BlockGuardWithCompletion,
    ConditionalBlock as ConditionalBlock,
    ConditionalBlockGuard as ConditionalBlockGuard,
    DynamicRNN as DynamicRNN,
    IfElse as IfElse,
    IfElseBlockGuard as IfElseBlockGuard,
    Print as Print,
    StaticRNN as StaticRNN,
    StaticRNNMemoryLink as StaticRNNMemoryLink,
    Switch as Switch,
    While as While,
    WhileGuard as WhileGuard,
    array_length as array_length,
    array_read as array_read,
    array_to_lod_tensor as array_to_lod_tensor,
    array_write as array_write,
    autoincreased_step_counter as autoincreased_step_counter,
    case as case,
    cond as cond,
    copy_var_to_parent_block as copy_var_to_parent_block,
    create_array as create_array,
    increment as increment,
    lod_rank_table as lod_rank_table,
    lod_tensor_to_array as lod_tensor_to_array,
    max_sequence_len as max_sequence_len,
    merge_lod_tensor as merge_lod_tensor,
    reorder_lod_tensor_by_rank as reorder_lod_tensor_by_rank,
    select_input as select_input,
    select_output as select_output,
    shrink_memory as shrink_memory,
    signature_safe_contextmanager as signature_safe_contextmanager,
    split_lod_tensor as split_lod_tensor,
    switch_case as switch_case,
    tensor_array_to_tensor as tensor_array_to_tensor,
    while_loop as while_loop,
)
from fluidlite.fluid.layers.layer_function_generator import (
    autodoc as autodoc,
    templatedoc as templatedoc,
)
from fluidlite.fluid.layers.tensor.arithmetic import (
    equal as equal,
    greater_equal as greater_equal,
    greater_than as greater_than,
    is_empty as is_empty,
    less_equal as less_equal,
    less_than as less_than,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    not_equal as not_equal,
)
from fluidlite.fluid.layers.tensor.constants import (
    fill_constant as fill_constant,
)
from fluidlite.fluid.layers.tensor.variables import (
    assign as assign,
    cast as cast,
)
from fluidlite.fluid.layers.utils import (
    assert_same_structure as assert_same_structure,
    copy_mutable_vars as copy_mutable_vars,
    hold_mutable_vars as hold_mutable_vars,
    map_structure as map_structure,
)
from fluidlite.framework.mode import (
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.framework.operator import (
    Operator as Operator,
)
from fluidlite.framework.program import (
    Program as Program,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.paddle import (
    compat as cpt,
)
