"""Images warped by grids."""

from __future__ import annotations

from typing import Any

from ....fluid import layers
from ....fluid.layers.checks import check_choice
from ...modes import by_arguments, run

__all__ = ["affine_grid", "grid_sample"]


def affine_grid(theta: Any, out_shape: Any, align_corners: bool = True, name: str | None = None) -> Any:
    """The places [N, H, W, 2] that affine maps `theta` [N, 2, 3] send the pixels of an image of `out_shape` to
    (`paddle.nn.functional.affine_grid`)."""
    check_choice(align_corners, "align_corners", (True,), "affine_grid")
    return by_arguments(layers.affine_grid)(theta, out_shape, name)


def grid_sample(
    x: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = True,
    name: str | None = None,
) -> Any:
    """The images `x` at the places `grid`, which are in [-1, 1] (`paddle.nn.functional.grid_sample`).

    Only what is the default of `mode`, `padding_mode` and `align_corners` is there.
    """
    check_choice(mode, "mode", ("bilinear",), "grid_sample")
    check_choice(padding_mode, "padding_mode", ("zeros",), "grid_sample")
    check_choice(align_corners, "align_corners", (True,), "grid_sample")
    return run("grid_sampler", {"X": x, "Grid": grid}, ("Output",), name=name)
