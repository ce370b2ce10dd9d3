"""Object detection (`fluid.layers.detection`)."""

from ...base import missing
from . import anchors, boxes, matching, proposals, regions, retinanet, ssd, suppression, yolo
from .anchors import *  # noqa: F403
from .boxes import *  # noqa: F403
from .matching import *  # noqa: F403
from .precision import detection_map as detection_map
from .proposals import *  # noqa: F403
from .regions import *  # noqa: F403
from .retinanet import *  # noqa: F403
from .ssd import *  # noqa: F403
from .suppression import *  # noqa: F403
from .yolo import *  # noqa: F403

__all__ = []
__all__ += anchors.__all__
__all__ += boxes.__all__
__all__ += matching.__all__
__all__ += proposals.__all__
__all__ += regions.__all__
__all__ += retinanet.__all__
__all__ += ssd.__all__
__all__ += suppression.__all__
__all__ += yolo.__all__

__getattr__ = missing.reporter(__name__)
