"""Kernels that move, choose and look up elements."""

from __future__ import annotations

from .kernel_def import BYTES, INTEGER, NUMERIC, REAL, declare
from .layouts import Joined

declare("copy", "X Out", ints="bytes", types=BYTES, alias="Out=X")
declare("choose", "Out Mask x*", "Out", ints="bytes", types=BYTES)
declare("concat", "X* Out", ints="pre bytes*", types=BYTES, images=Joined(-1))
declare("split", "X Out*?", ints="pre bytes*", types=BYTES, images=Joined(0))
declare("transpose", "X Out", ints="itemsize rank shape* perm*", types=BYTES)
declare("slice", "X Out", ints="itemsize rank shape* starts* ends*", types=BYTES)
declare("slice_grad", "DOut DX", ints="itemsize rank shape* starts* ends*", types=BYTES)
declare("slice_find", "Numbers Places", ints="rank shape* numbers*", types=INTEGER)
declare("slice_at", "X Places Out", ints="itemsize rank shape* lengths*", types=BYTES)
declare("slice_at_grad", "DOut Places DX", ints="itemsize rank shape* lengths*", types=BYTES)
declare("expand", "X Out", ints="itemsize rank shape* times*", types=BYTES)
declare("expand_grad", "DOut DX", ints="rank shape* times*")
declare("lookup_table", "W Ids Out", ints="ids height width padding_idx")
declare("lookup_table_grad", "Ids DOut DW", ints="ids height width padding_idx")
declare("one_hot", "X Out", ints="n depth allow_out_of_range")
declare("where", "Condition X Y Out", ints="n itemsize", types=BYTES, alias="Out=X Out=Y")
declare("where_grad", "Condition DOut DX? DY?", "DX DY", ints="n itemsize", types=BYTES)
declare("masked_select_grad", "DY Mask DX", ints="n chosen itemsize", types=BYTES)
declare("gather_nd", "X Index Out", ints="points bytes sizes*", types=INTEGER)
declare(
    "scatter_nd",
    "Base? Index Updates Out",
    ints="points elements index_bytes mode sizes*",
    types=NUMERIC,
    alias="Out=Base",
)
declare("gather_tree", "Ids Parents Out", ints="steps rows width", types=INTEGER)
declare(
    "beam_search",
    "PreIds PreScores Ids? Scores Sources SelectedIds SelectedScores Rows Offsets",
    "SelectedIds SelectedScores Rows Offsets",
    ints="sequences rows candidates width end accumulated",
    types=REAL,
)
declare("where_index", "X Shape Out", ints="n dimensions count", types=BYTES)
declare("first_places", "X First Index Counts Found", "First Index Counts Found", ints="n", types=INTEGER)


declare("stash_push", "TensorArray X", "TensorArray", ints="bytes", types=BYTES)
declare("stash_pop", "TensorArray Out", "TensorArray Out", ints="bytes", types=BYTES)
declare("array_write", "TensorArray Index X", "TensorArray", ints="bytes", types=BYTES)
declare("array_read", "TensorArray Index Out", ints="bytes", types=BYTES)
declare("array_take", "TensorArray Index Out", "TensorArray Out", ints="bytes", types=BYTES)
declare("array_add", "TensorArray Index X", "TensorArray", ints="n")
declare("array_concat", "TensorArray Out", ints="elements blocks bytes", types=BYTES)
declare("array_split_add", "TensorArray X", "TensorArray", ints="elements blocks n")
declare("array_length", "TensorArray Out", types=BYTES)
declare("array_clear", "TensorArray*", types=BYTES)


declare("merge_rows", "Rows Values OutRows OutValues", "OutRows OutValues", ints="n height width")
declare("rows_to_dense", "Rows Values Out", ints="n height width")
declare("merge_rows", "Mask InTrue InFalse Out", ints="rows true_rows false_rows bytes", types=BYTES)
declare("count_rows", "Mask Out", ints="rows", types=BYTES)
declare(
    "split_rows",
    "Mask X OutTrue OutFalse",
    "OutTrue OutFalse",
    ints="rows true_rows false_rows bytes",
    types=BYTES,
)


_MAPS = "images channels height width regions bins_down bins_across"

declare("roi_align", "X ROIs Offsets Out", ints=f"{_MAPS} samples", floats="scale")
declare("roi_align_grad", "DX ROIs Offsets DOut", "DX", ints=f"{_MAPS} samples", floats="scale")
declare("roi_pool", "X ROIs Offsets Out Argmax", "Out Argmax", ints=_MAPS, floats="scale")
declare("roi_pool_grad", "Offsets Argmax DOut DX", ints=_MAPS)
declare(
    "suppress",
    "Boxes Areas Kept Found",
    "Kept Found",
    ints="n coordinates pixels most",
    floats="threshold factor",
)
