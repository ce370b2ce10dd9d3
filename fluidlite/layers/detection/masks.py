"""Masks of the objects that detectors find (He et al. 2017)."""

from __future__ import annotations

from ...framework import Variable
from ...op_functions import run_layer

__all__ = ["generate_mask_labels"]


def generate_mask_labels(
    im_info: Variable,
    gt_classes: Variable,
    is_crowd: Variable,
    gt_segms: Variable,
    rois: Variable,
    labels_int32: Variable,
    num_classes: int,
    resolution: int,
) -> tuple[Variable, Variable, Variable]:
    """Target masks for a mask branch: the part of an object in each region (`fluid.layers.generate_mask_labels`).

    Args:
        im_info: floats [N, 3]: height, width and scale of each image.
        gt_classes: int32 [objects, 1] with sequences: the classes, from 1 on.
        is_crowd: int32 [objects, 1] with sequences: 1 for objects that do not count.
        gt_segms: floats [points, 2] with three levels of sequences, those of images, objects and outlines: the corners
            of the outlines, in pixels of the image before it was scaled.
        rois: floats [regions, 4] with sequences, of images as scaled.
        labels_int32: int32 [regions, 1] with sequences: the class of each region, 0 for none.
        num_classes: how many classes there are, with that of no object.
        resolution: the side of the square masks in pixels.

    Returns:
        The regions with an object [M, 4], their places among the regions of their image, int32 [M, 1], and their masks,
        int32 [M, num_classes resolution resolution]: 1 inside of the object that overlaps the region most, 0 outside,
        and -1 for all classes but that of the region. All have sequences. An image without any gives its first region
        without an object, and -1 alone.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    return run_layer("generate_mask_labels", locals(), stop_gradient=True)
