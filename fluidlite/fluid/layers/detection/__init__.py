"""Object detection (`fluid.layers.detection`)."""

from typing import TYPE_CHECKING

from ....base import missing

if TYPE_CHECKING:
    from .anchors import *  # noqa: F403
    from .one_stage import *  # noqa: F403  # noqa: F403
    from .one_stage import detection_map as detection_map
    from .proposals import *  # noqa: F403
    from .regions import *  # noqa: F403
    from .ssd import *  # noqa: F403
else:
    __all__ = missing.public(__name__)

__getattr__, __dir__ = missing.lazy(__name__)
