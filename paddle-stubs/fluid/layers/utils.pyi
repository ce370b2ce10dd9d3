# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.data_feeder import (
    check_dtype as check_dtype,
    check_type as check_type,
    check_variable_and_dtype as check_variable_and_dtype,
    convert_dtype as convert_dtype,
)
from fluidlite.fluid.layers.utils import (
    LayerHelper as LayerHelper,
    Variable as Variable,
    assert_same_structure as assert_same_structure,
    convert_to_list as convert_to_list,
    copy_mutable_vars as copy_mutable_vars,
    flatten as flatten,
    hold_mutable_vars as hold_mutable_vars,
    is_sequence as is_sequence,
    map_structure as map_structure,
    pack_sequence_as as pack_sequence_as,
)
