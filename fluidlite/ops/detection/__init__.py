"""Object detection: boxes, anchors, proposals, regions of feature maps."""
