"""Kernels on sequences that are stored one after the other, with offsets."""

from __future__ import annotations

from .kernel_def import BYTES, INTEGER, NUMERIC, declare

_WIDE = "sequences rows width"

declare("sequence_pool_sum", "X Offsets Out", ints=f"{_WIDE} divide", floats="pad")
declare("sequence_pool_sum_grad", "Offsets DOut DX", ints=f"{_WIDE} divide")
declare("sequence_pool_max", "X Offsets Out MaxIndex", "Out MaxIndex", ints=_WIDE, floats="pad")
declare("sequence_pool_max_grad", "Offsets MaxIndex DOut DX", ints=_WIDE)
declare("sequence_pool_end", "X Offsets Out", ints=f"{_WIDE} last", floats="pad")
declare("sequence_pool_end_grad", "Offsets DOut DX", ints=f"{_WIDE} last")
declare("sequence_softmax", "X Offsets Out", ints="sequences rows", alias="Out=X")
declare("sequence_softmax_grad", "Offsets Out DOut DX", ints="sequences rows", alias="DX=DOut")
declare("sequence_reverse", "X Offsets Y", ints="sequences rows bytes", types=BYTES)
declare(
    "sequence_concat",
    "(X Offsets)* Out OutOffsets",
    "Out OutOffsets",
    ints="sequences bytes rows*",
    types=BYTES,
)
declare("sequence_concat_grad", "DOut (Offsets DX?)*", "DX", ints="sequences bytes rows*", types=BYTES)
declare("sequence_enumerate", "X Offsets Out", ints="sequences rows window pad", types=INTEGER)
declare("sequence_conv", "X Offsets Filter Out", ints=f"{_WIDE} columns start length")
declare(
    "sequence_conv_grad",
    "X Offsets Filter DOut DX? DFilter?",
    "DX DFilter",
    ints=f"{_WIDE} columns start length",
)
declare("row_conv", "X Offsets? Filter Out", ints=f"{_WIDE} steps")
declare("row_conv_grad", "X Offsets? Filter DOut DX? DFilter?", "DX DFilter", ints=f"{_WIDE} steps")
declare("sequence_expand", "X Times Out", ints="sequences out_rows bytes", types=BYTES)
declare("sequence_expand_grad", "DOut Offsets? Times DX", ints="sequences out_rows rows width")
declare(
    "sequence_slice_grad",
    "DOut Offsets Offset Length DX",
    ints="sequences out_rows rows bytes",
    types=BYTES,
)
declare(
    "sequence_pad",
    "X Offsets PadValue Out Length",
    "Out Length",
    ints="sequences rows padded width itemsize pad_elements",
    types=BYTES,
)
declare("sequence_pad_grad", "DOut Offsets DX", ints="sequences rows padded bytes", types=BYTES)
declare("sequence_unpad_grad", "DOut Length DX", ints="sequences out_rows padded bytes", types=BYTES)
declare("sequence_mask", "X Y", ints="n maxlen itemsize", types=f"{NUMERIC} u8")
declare(
    "sequence_scatter",
    "X Ids Offsets Updates Out",
    ints="sequences ids rows width",
    types=NUMERIC,
    alias="Out=X",
)
declare(
    "sequence_scatter_grad",
    "Ids Offsets DOut DX? DUpdates?",
    "DX DUpdates",
    ints="sequences ids rows width",
    alias="DX=DOut",
)
declare("sequence_reshape", "Offsets OutOffsets", ints="sequences width new_width", types=BYTES)
declare("lod_reset", "Y OutOffsets", ints="sequences rows", types=INTEGER)
declare("set_offsets", "OutOffsets", ints="sequences offsets*", types=BYTES)
