# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    op_proto_and_checker_maker as op_proto_and_checker_maker,
    ops as ops,
    var_names as var_names,
)
from fluidlite.base.fluid_flags import (
    Globals as GlobalVarGetterSetterRegistry,
    all_flags as globals,
)
from fluidlite.base.place import (
    CPUPlace as CPUPlace,
    CUDAPinnedPlace as CUDAPinnedPlace,
    CUDAPlace as CUDAPlace,
    Place as Place,
    cuda_device_count as get_cuda_device_count,
    is_compiled_with_cuda as is_compiled_with_cuda,
)
from fluidlite.base.rank_table import (
    RankTable as LodRankTable,
)
from fluidlite.base.reports.profile_report import (
    EventSortingKey as EventSortingKey,
)
from fluidlite.base.reports.profiling import (
    ProfilerState as ProfilerState,
)
from fluidlite.core import (
    AnalysisConfig as AnalysisConfig,
    AnalysisPredictor as AnalysisPredictor,
    CpuPassStrategy as CpuPassStrategy,
    EOFException as EOFException,
    EnforceNotMet as EnforceNotMet,
    Gloo as Gloo,
    GpuPassStrategy as GpuPassStrategy,
    Layer as Layer,
    MkldnnQuantizerConfig as MkldnnQuantizerConfig,
    NativeConfig as NativeConfig,
    NativePaddlePredictor as NativePaddlePredictor,
    PaddleBuf as PaddleBuf,
    PaddleDType as PaddleDType,
    PaddlePassBuilder as PaddlePassBuilder,
    PaddlePlace as PaddlePlace,
    PaddlePredictor as PaddlePredictor,
    PaddleTensor as PaddleTensor,
    PassStrategy as PassStrategy,
    VarBase as VarBase,
    ZeroCopyTensor as ZeroCopyTensor,
    core_suffix as core_suffix,
    create_paddle_predictor as create_paddle_predictor,
    current_path as current_path,
    dygraph_partial_grad as dygraph_partial_grad,
    has_avx_core as has_avx_core,
    has_noavx_core as has_noavx_core,
    kAll as kAll,
    kAllOpDetail as kAllOpDetail,
    kAve as kAve,
    kCPU as kCPU,
    kCUDA as kCUDA,
    kCalls as kCalls,
    kDefault as kDefault,
    kDisabled as kDisabled,
    kMax as kMax,
    kMin as kMin,
    kOpDetail as kOpDetail,
    kTotal as kTotal,
    load_noavx as load_noavx,
    paddle_dtype_size as paddle_dtype_size,
    paddle_tensor_to_bytes as paddle_tensor_to_bytes,
)
from fluidlite.core.system import avx_supported as avx_supported, empty_var_name as empty_var_name, get_glibc_ver as get_glibc_ver, grad_var_suffix as grad_var_suffix, is_compiled_with_brpc as is_compiled_with_brpc, is_compiled_with_dist as is_compiled_with_dist, is_compiled_with_mkldnn as is_compiled_with_mkldnn, kControlDepVarName as kControlDepVarName, empty_var_name as kEmptyVarName, grad_var_suffix as kGradVarSuffix, kNewGradSuffix as kNewGradSuffix, kTempVarName as kTempVarName, kZeroVarSuffix as kZeroVarSuffix, less_than_ver as less_than_ver, loaded_var_suffix as loaded_var_suffix, size_of_dtype as size_of_dtype
from fluidlite.core.programs import build_adjacency_list as build_adjacency_list, graph_num as graph_num, graph_safe_remove_nodes as graph_safe_remove_nodes, has_circle as has_circle, topology_sort as topology_sort
from fluidlite.core.native_executor import (
    DeviceContext as DeviceContext,
    Executor as Executor,
    ExecutorPrepareContext as ExecutorPrepareContext,
    FetchList as FetchList,
    diff_tensor_shape as diff_tensor_shape,
    get_fetch_variable as get_fetch_variable,
    set_feed_variable as set_feed_variable,
)
from fluidlite.core.programs import get_grad_op_desc as get_grad_op_desc, get_op_attrs_default_value as get_op_attrs_default_value, get_variable_tensor as get_variable_tensor, has_grad_op_maker as has_grad_op_maker, has_infer_inplace as has_infer_inplace, has_grad_op_maker as has_non_empty_grad_op_maker, op_support_gpu as op_support_gpu
from fluidlite.core.system import TracerOption as TracerOption, disable_profiler as disable_profiler, enable_profiler as enable_profiler, is_profiler_enabled as is_profiler_enabled, reset_profiler as reset_profiler, set_tracer_option as set_tracer_option
from fluidlite.core.programs import (
    get_all_op_protos as get_all_op_protos,
    infer_no_need_buffer_slots as infer_no_need_buffer_slots,
    prune as prune,
    prune_backward as prune_backward,
    save_op_compatible_info as save_op_compatible_info,
)
from fluidlite.core.system import init_devices as init_devices, init_gflags as init_gflags, init_glog as init_glog, set_num_threads as set_num_threads
from fluidlite.core.system import (
    get_dso_path as get_dso_path,
    load_dso as load_dso,
    pre_load as pre_load,
    run_cmd as run_cmd,
    run_shell_command as run_shell_command,
    set_paddle_lib_path as set_paddle_lib_path,
    start_imperative_gperf_profiler as start_imperative_gperf_profiler,
    stop_imperative_gperf_profiler as stop_imperative_gperf_profiler,
)
from fluidlite.dygraph.parallel import (
    ParallelStrategy as ParallelStrategy,
)
from fluidlite.eager.tracer import BackwardStrategy as BackwardStrategy
from fluidlite.eager.tracer import (
    Tracer as Tracer,
)
from fluidlite.executor.running.op_on_scope import (
    BoundOperator as Operator,
)
from fluidlite.executor.tensors.lod_tensor import (
    LoDTensor as LoDTensor,
    LoDTensorArray as LoDTensorArray,
    LoDTensor as Tensor,
    from_dlpack as from_dlpack,
)
from fluidlite.executor.tensors.rows_in_scope import (
    RowsInScope as SelectedRows,
)
from fluidlite.executor.tensors.scope import (
    Scope as Scope,
    ScopeVariable as Variable,
)
from fluidlite.framework.serialization.descs import (
    AttrType as AttrType,
    BlockDesc as BlockDesc,
    OpDesc as OpDesc,
    ProgramDesc as ProgramDesc,
    VarDesc as VarDesc,
)
from fluidlite.framework.serialization.ir_graph import (
    Graph as Graph,
    IrNode as Node,
)
from fluidlite.framework.serialization.passes import (
    Pass as Pass,
    PassBuilder as PassBuilder,
    get_pass as get_pass,
)
from fluidlite.reader.loader.tensor_queue import (
    LoDTensorBlockingQueue as LoDTensorBlockingQueue,
    MultiDeviceFeedReader as MultiDeviceFeedReader,
    OrderedMultiDeviceFeedReader as OrderedMultiDeviceFeedReader,
    OrderedMultiDeviceLoDTensorBlockingQueue as OrderedMultiDeviceLoDTensorBlockingQueue,
    create_py_reader as create_py_reader,
    init_lod_tensor_blocking_queue as init_lod_tensor_blocking_queue,
)
