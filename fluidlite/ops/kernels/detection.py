"""Kernels on regions of images, and on boxes."""

from __future__ import annotations

from .kernel_def import declare

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
