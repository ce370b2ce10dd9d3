# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    paddle as paddle,
)
from fluidlite.base.dtypes import (
    to_vartype as convert_np_dtype_to_dtype_,
)
from fluidlite.fluid import (
    core as core,
    dygraph_utils as dygraph_utils,
    unique_name as unique_name,
)
from fluidlite.fluid.data_feeder import (
    check_dtype as check_dtype,
    check_type as check_type,
    check_variable_and_dtype as check_variable_and_dtype,
    convert_dtype as convert_dtype,
)
from fluidlite.fluid.initializer import (
    ConstantInitializer as Constant,
    NormalInitializer as Normal,
    NumpyArrayInitializer as NumpyArrayInitializer,
)
from fluidlite.fluid.layer_helper import (
    LayerHelper as LayerHelper,
)
from fluidlite.fluid.layers import (
    utils as utils,
)
from fluidlite.fluid.layers.control_flow.arrays import (
    autoincreased_step_counter as autoincreased_step_counter,
    tensor_array_to_tensor as tensor_array_to_tensor,
)
from fluidlite.fluid.layers.detection.regions import (
    deformable_conv as deformable_conv,
    deformable_roi_pooling as deformable_roi_pooling,
    prroi_pool as prroi_pool,
    psroi_pool as psroi_pool,
    roi_align as roi_align,
    roi_pool as roi_pool,
)
from fluidlite.fluid.layers.layer_function_generator import (
    autodoc as autodoc,
    templatedoc as templatedoc,
)
from fluidlite.fluid.layers.loss.classification import (
    dice_loss as dice_loss,
    label_smooth as label_smooth,
    log_loss as log_loss,
    smooth_l1 as smooth_l1,
)
from fluidlite.fluid.layers.loss.sequences import (
    chunk_eval as chunk_eval,
    crf_decoding as crf_decoding,
    ctc_greedy_decoder as ctc_greedy_decoder,
    linear_chain_crf as linear_chain_crf,
)
from fluidlite.fluid.layers.nn import (
    PyFuncRegistry as PyFuncRegistry,
    adaptive_pool2d as adaptive_pool2d,
    adaptive_pool3d as adaptive_pool3d,
    add_position_encoding as add_position_encoding,
    affine_channel as affine_channel,
    affine_grid as affine_grid,
    batch_norm as batch_norm,
    brelu as brelu,
    clip as clip,
    clip_by_norm as clip_by_norm,
    continuous_value_model as continuous_value_model,
    conv2d as conv2d,
    conv2d_transpose as conv2d_transpose,
    conv3d as conv3d,
    conv3d_transpose as conv3d_transpose,
    data_norm as data_norm,
    dropout as dropout,
    elu as elu,
    embedding as embedding,
    fc as fc,
    filter_by_instag as filter_by_instag,
    grid_sampler as grid_sampler,
    group_norm as group_norm,
    hard_sigmoid as hard_sigmoid,
    hard_swish as hard_swish,
    hash as hash,
    im2sequence as im2sequence,
    image_resize as image_resize,
    image_resize_short as image_resize_short,
    inplace_abn as inplace_abn,
    instance_norm as instance_norm,
    interpolate as interpolate,
    l2_normalize as l2_normalize,
    layer_norm as layer_norm,
    leaky_relu as leaky_relu,
    log as log,
    log1p as log1p,
    log_softmax as log_softmax,
    lrn as lrn,
    maxout as maxout,
    mean_iou as mean_iou,
    mish as mish,
    one_hot as one_hot,
    pixel_shuffle as pixel_shuffle,
    pool2d as pool2d,
    pool3d as pool3d,
    pow as pow,
    prelu as prelu,
    py_func as py_func,
    relu as relu,
    relu6 as relu6,
    resize_bilinear as resize_bilinear,
    resize_nearest as resize_nearest,
    resize_trilinear as resize_trilinear,
    selu as selu,
    shuffle_channel as shuffle_channel,
    sign as sign,
    similarity_focus as similarity_focus,
    soft_relu as soft_relu,
    softmax as softmax,
    space_to_depth as space_to_depth,
    spectral_norm as spectral_norm,
    stanh as stanh,
    swish as swish,
    temporal_shift as temporal_shift,
    topk as topk,
    unfold as unfold,
)
from fluidlite.fluid.layers.ops import (
    exp as exp,
)
from fluidlite.fluid.layers.recurrent.beams import (
    gather_tree as gather_tree,
)
from fluidlite.fluid.layers.recurrent.sequences import (
    row_conv as row_conv,
)
from fluidlite.fluid.layers.tensor.arithmetic import (
    elementwise_add as elementwise_add,
    elementwise_div as elementwise_div,
    elementwise_equal as elementwise_equal,
    elementwise_floordiv as elementwise_floordiv,
    elementwise_max as elementwise_max,
    elementwise_min as elementwise_min,
    elementwise_mod as elementwise_mod,
    elementwise_mul as elementwise_mul,
    elementwise_pow as elementwise_pow,
    elementwise_sub as elementwise_sub,
    elementwise_floordiv as func,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    logsumexp as logsumexp,
    mean as mean,
    reduce_all as reduce_all,
    reduce_any as reduce_any,
    reduce_max as reduce_max,
    reduce_mean as reduce_mean,
    reduce_min as reduce_min,
    reduce_prod as reduce_prod,
    reduce_sum as reduce_sum,
    scale as scale,
    sum as sum,
    where as where,
)
from fluidlite.fluid.layers.tensor.constants import (
    fill_constant as fill_constant,
    zeros as zeros,
)
from fluidlite.fluid.layers.tensor.indexing import (
    crop as crop,
    crop_tensor as crop_tensor,
    diag_embed as diag_embed,
    gather as gather,
    gather_nd as gather_nd,
    index_sample as index_sample,
    index_select as index_select,
    meshgrid as meshgrid,
    nonzero as nonzero,
    randperm as randperm,
    roll as roll,
    sampling_id as sampling_id,
    scatter as scatter,
    scatter_nd as scatter_nd,
    scatter_nd_add as scatter_nd_add,
    shard_index as shard_index,
    slice as slice,
    strided_slice as strided_slice,
    t as t,
    unique as unique,
    unique_with_counts as unique_with_counts,
)
from fluidlite.fluid.layers.tensor.joining import (
    concat as concat,
    expand as expand,
    expand_as as expand_as,
    flip as flip,
    multiplex as multiplex,
    pad as pad,
    pad2d as pad2d,
    pad_constant_like as pad_constant_like,
    split as split,
    stack as stack,
    unstack as unstack,
)
from fluidlite.fluid.layers.tensor.matrix import (
    addcmul as addcmul,
    addmm as addmm,
    allclose as allclose,
    bilinear_tensor_product as bilinear_tensor_product,
    bmm as bmm,
    clamp as clamp,
    cos_sim as cos_sim,
    cross as cross,
    dist as dist,
    dot as dot,
    fsp_matrix as fsp_matrix,
    matmul as matmul,
    mul as mul,
)
from fluidlite.fluid.layers.tensor.random import (
    gaussian_random as gaussian_random,
    gaussian_random_batch_size_like as gaussian_random_batch_size_like,
    randint as randint,
    randn as randn,
    random_crop as random_crop,
    uniform_random as uniform_random,
    uniform_random_batch_size_like as uniform_random_batch_size_like,
)
from fluidlite.fluid.layers.tensor.shapes import (
    flatten as flatten,
    rank as rank,
    reshape as reshape,
    shape as shape,
    size as size,
    squeeze as squeeze,
    transpose as transpose,
    unsqueeze as unsqueeze,
)
from fluidlite.fluid.layers.tensor.variables import (
    assign as assign,
    cast as cast,
    get_tensor_from_selected_rows as get_tensor_from_selected_rows,
    lod_append as lod_append,
    lod_reset as lod_reset,
    merge_selected_rows as merge_selected_rows,
)
from fluidlite.fluid.param_attr import (
    ParamAttr as ParamAttr,
)
from fluidlite.framework.common_attrs import (
    device_guard as device_guard,
)
from fluidlite.framework.mode import (
    dygraph_only as dygraph_only,
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.framework.program import (
    default_main_program as default_main_program,
)
from fluidlite.framework.serialization.op_protos import (
    OpProtoHolder as OpProtoHolder,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
