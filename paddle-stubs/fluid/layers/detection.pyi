# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    layers as ops,
)
from fluidlite.fluid.data_feeder import (
    check_dtype as check_dtype,
    check_type as check_type,
    check_variable_and_dtype as check_variable_and_dtype,
    convert_dtype as convert_dtype,
)
from fluidlite.fluid.layer_helper import (
    LayerHelper as LayerHelper,
)
from fluidlite.fluid.layers import (
    nn as nn,
    tensor as tensor,
)
from fluidlite.fluid.layers.detection import (
    anchor_generator as anchor_generator,
    bipartite_match as bipartite_match,
    box_clip as box_clip,
    box_coder as box_coder,
    box_decoder_and_assign as box_decoder_and_assign,
    collect_fpn_proposals as collect_fpn_proposals,
    deformable_conv as deformable_conv,
    deformable_roi_pooling as deformable_roi_pooling,
    density_prior_box as density_prior_box,
    detection_map as detection_map,
    detection_output as detection_output,
    distribute_fpn_proposals as distribute_fpn_proposals,
    generate_mask_labels as generate_mask_labels,
    generate_proposal_labels as generate_proposal_labels,
    generate_proposals as generate_proposals,
    iou_similarity as iou_similarity,
    locality_aware_nms as locality_aware_nms,
    matrix_nms as matrix_nms,
    multi_box_head as multi_box_head,
    multiclass_nms as multiclass_nms,
    polygon_box_transform as polygon_box_transform,
    prior_box as prior_box,
    prroi_pool as prroi_pool,
    psroi_pool as psroi_pool,
    retinanet_detection_output as retinanet_detection_output,
    retinanet_target_assign as retinanet_target_assign,
    roi_align as roi_align,
    roi_perspective_transform as roi_perspective_transform,
    roi_pool as roi_pool,
    rpn_target_assign as rpn_target_assign,
    sigmoid_focal_loss as sigmoid_focal_loss,
    ssd_loss as ssd_loss,
    target_assign as target_assign,
    yolo_box as yolo_box,
    yolov3_loss as yolov3_loss,
)
from fluidlite.fluid.layers.layer_function_generator import (
    autodoc as autodoc,
    generate_layer_fn as generate_layer_fn,
    templatedoc as templatedoc,
)
from fluidlite.fluid.layers.loss.classification import (
    softmax_with_cross_entropy as softmax_with_cross_entropy,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.paddle import (
    compat as cpt,
)
