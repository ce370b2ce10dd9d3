# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.modes import (
    CPUPlace as CPUPlace,
    CUDAPinnedPlace as CUDAPinnedPlace,
    CUDAPlace as CUDAPlace,
    disable_dygraph as disable_dygraph,
    disable_static as disable_static,
    enable_dygraph as enable_dygraph,
    enable_static as enable_static,
    get_cudnn_version as get_cudnn_version,
    get_device as get_device,
    in_dygraph_mode as in_dygraph_mode,
    in_dynamic_mode as in_dynamic_mode,
    is_compiled_with_cuda as is_compiled_with_cuda,
    is_compiled_with_npu as is_compiled_with_npu,
    is_compiled_with_xpu as is_compiled_with_xpu,
    set_device as set_device,
)
