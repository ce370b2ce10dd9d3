# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.modes import (
    CPUPlace as CPUPlace,
    CUDAPinnedPlace as CUDAPinnedPlace,
    CUDAPlace as CUDAPlace,
    get_cudnn_version as get_cudnn_version,
    get_device as get_device,
    is_compiled_with_cuda as is_compiled_with_cuda,
    is_compiled_with_npu as is_compiled_with_npu,
    is_compiled_with_xpu as is_compiled_with_xpu,
    set_device as set_device,
)
