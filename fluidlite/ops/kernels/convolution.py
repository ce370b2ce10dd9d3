"""Kernels of convolutions, pooling, normalisations, dropout and resized images."""

from __future__ import annotations

from .fusion import Epilogue
from .kernel_def import declare
from .layouts import EachLayout, SameLayout, norm_in_blocks, pool_in_blocks

_PLAIN = "n c h w filters kh kw stride_h stride_w pad_top pad_bottom pad_left pad_right dilation_h dilation_w"
_CONV = f"{_PLAIN} groups"
_BLOCKS = f"{_CONV} block in_blocks out_blocks"
_CONV3D = (
    "n c d h w filters kd kh kw stride_d stride_h stride_w pad_front pad_back pad_top pad_bottom pad_left pad_right "
    "dilation_d dilation_h dilation_w groups"
)
_POOL = "n c h w kh kw stride_h stride_w pad_top pad_left out_h out_w exclusive"
_POOL3D = "n d h w c kd kh kw stride_d stride_h stride_w pad_front pad_top pad_left out_d out_h out_w share"
_FORWARD, _NORMALIZED = "Input Filter Bias? Output", "Input Filter Bias? Output Scale Shift Mean Variance"
_INPUT_GRAD, _FILTER_GRAD = "Filter DOutput DInput", "Input DOutput DFilter"

for _name, _ints, _act in (("conv2d", _CONV, False), ("conv2d_plain", f"{_PLAIN} act?", True)):
    _images = {"Input": True, "Output": False}
    _end = "act" if _act else ""
    declare(
        _name,
        _FORWARD,
        ints=_ints,
        types="f32",
        epilogue=Epilogue("Bias", ("n", "filters"), activation=_end, normalized=f"{_name}_norm"),
        images=EachLayout(_images, "conv2d_blocks", _act),
    )
    declare(
        f"{_name}_norm",
        _NORMALIZED,
        "Output",
        ints=_ints,
        floats="epsilon",
        types="f32",
        epilogue=Epilogue(activation="act") if _act else None,
        images=EachLayout(_images, "conv2d_blocks_norm", _act),
    )
    declare(
        f"{_name}_grad_input",
        _INPUT_GRAD,
        ints=_PLAIN if _act else _CONV,
        types="f32",
        images=EachLayout({"DInput": True, "DOutput": False}, "conv2d_blocks_grad_input", _act),
    )
    declare(
        f"{_name}_grad_filter",
        _FILTER_GRAD,
        ints=_PLAIN if _act else _CONV,
        types="f32",
        images=EachLayout({"Input": True, "DOutput": False}, "conv2d_blocks_grad_filter", _act),
    )
declare("conv2d_blocks", _FORWARD, ints=f"{_BLOCKS} act?", types="f32")
declare("conv2d_blocks_norm", _NORMALIZED, "Output", ints=f"{_BLOCKS} act?", floats="epsilon", types="f32")
declare("conv2d_blocks_grad_input", _INPUT_GRAD, ints=_BLOCKS, types="f32")
declare("conv2d_blocks_grad_filter", _FILTER_GRAD, ints=_BLOCKS, types="f32")
for _name, _ints in (("conv2d_last", _CONV), ("conv3d", _CONV3D), ("conv3d_last", _CONV3D)):
    declare(_name, _FORWARD, ints=_ints, types="f32")
    declare(f"{_name}_grad_input", _INPUT_GRAD, ints=_ints, types="f32")
    declare(f"{_name}_grad_filter", _FILTER_GRAD, ints=_ints, types="f32")

for _kind in ("max", "avg"):
    _name, _volumes = f"pool2d_{_kind}", f"pool3d_{_kind}"
    _grad, _pooled = ("X Out DOut DX", "Out DOut") if _kind == "max" else ("DOut DX", "DOut")
    declare(_name, "X Out", ints=_POOL, images=SameLayout("X Out", pool_in_blocks(_volumes), pooled="Out"))
    declare(
        f"{_name}_grad",
        _grad,
        ints=_POOL,
        images=SameLayout(_grad, pool_in_blocks(f"{_volumes}_grad"), pooled=_pooled),
    )
    declare(_volumes, "X Out", ints=_POOL3D)
    declare(f"{_volumes}_grad", _grad, ints=_POOL3D)

_RESIZED = "method corners centers images inner axes old_sizes* new_sizes*"
declare("resize", "X Out", ints=_RESIZED)
declare("resize_grad", "DOut DX", ints=_RESIZED)
_PATCHES = "n c h w kh kw stride_h stride_w pad_top pad_left patches_down patches_across"
declare("im2sequence", "X Out Offsets", "Out Offsets", ints=_PATCHES)
declare("im2sequence_grad", "DOut DX", ints=_PATCHES)

_STATISTICS = "X Scale Bias Mean Variance Y MeanOut VarianceOut SavedMean SavedVariance"
_MADE = "Y MeanOut VarianceOut SavedMean SavedVariance"
_NORM_ALIAS = "Y=X MeanOut=Mean VarianceOut=Variance"
_NORM_GRAD, _NORM_GRADS = "X Scale SavedMean SavedVariance DY DX? DScale? DBias?", "DX DScale DBias"
declare(
    "batch_norm",
    _STATISTICS,
    _MADE,
    ints="n c hw act?",
    floats="epsilon momentum",
    alias=_NORM_ALIAS,
    epilogue=Epilogue(activation="act"),
    images=SameLayout("X Y", norm_in_blocks("batch_norm_blocks"), last_act=1),
)
declare(
    "batch_norm_infer",
    "X Scale Bias Mean Variance Y",
    ints="n c hw act?",
    floats="epsilon",
    alias="Y=X",
    epilogue=Epilogue(activation="act"),
    images=SameLayout("X Y", norm_in_blocks("batch_norm_blocks_infer"), last_act=1),
)
declare(
    "batch_norm_grad",
    _NORM_GRAD,
    _NORM_GRADS,
    ints="n c hw",
    floats="epsilon",
    alias="DX=DY",
    images=SameLayout("X DY DX", norm_in_blocks("batch_norm_blocks_grad", act=False)),
)
declare(
    "batch_norm_infer_grad",
    "X Scale Mean Variance DY DX? DScale? DBias?",
    _NORM_GRADS,
    ints="n c hw",
    floats="epsilon",
    alias="DX=DY",
)
declare(
    "batch_norm_blocks",
    _STATISTICS,
    _MADE,
    ints="n c hw act block",
    floats="epsilon momentum",
    types="f32",
    alias=_NORM_ALIAS,
)
declare(
    "batch_norm_blocks_infer",
    "X Scale Bias Mean Variance Y",
    ints="n c hw act block",
    floats="epsilon",
    types="f32",
    alias="Y=X",
)
declare(
    "batch_norm_blocks_grad",
    _NORM_GRAD,
    _NORM_GRADS,
    ints="n c hw block",
    floats="epsilon",
    types="f32",
    alias="DX=DY",
)
declare("bias_blocks_grad", "DOut DBias", ints="n c hw block", types="f32")
declare(
    "layer_norm",
    "X Scale? Bias? Y Mean Variance",
    "Y Mean Variance",
    ints="rows channels elements period inverted",
    floats="epsilon",
    alias="Y=X",
)
declare(
    "layer_norm_grad",
    "X Scale? Mean Variance DY DX? DScale? DBias?",
    _NORM_GRADS,
    ints="rows channels elements period inverted whole",
    floats="epsilon",
    alias="DX=DY",
)
declare("dropout", "X Out Mask", "Out Mask", ints="n upscale seed", floats="prob", alias="Out=X")
declare("dropout_mask", "Mask", ints="n seed", floats="prob", types="")
declare("dropout_grad", "DOut Mask DX", ints="n upscale", floats="prob", alias="DX=DOut")
