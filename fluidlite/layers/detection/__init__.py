"""Object detection (`fluid.layers.detection`)."""

from typing import TYPE_CHECKING

from ...base import missing
from ...base.public_names import public_names
from .anchors import *  # noqa: F403
from .boxes import *  # noqa: F403
from .masks import *  # noqa: F403
from .matching import *  # noqa: F403
from .precision import detection_map as detection_map
from .proposals import *  # noqa: F403
from .regions import *  # noqa: F403
from .retinanet import *  # noqa: F403
from .ssd import *  # noqa: F403
from .suppression import *  # noqa: F403
from .yolo import *  # noqa: F403

if not TYPE_CHECKING:
    __all__ = public_names(__name__, hidden=("detection_map",))

__getattr__ = missing.reporter(__name__)
