"""Object detection: boxes, anchors, proposals, regions of feature maps."""

from . import (  # noqa: F401
    anchors,
    boxes,
    mask_targets,
    matching,
    nms,
    polygons,
    proposal_targets,
    proposals,
    retinanet,
    roi,
    roi_deformable,
    roi_perspective,
    roi_precise,
    suppression,
    yolo,
)
