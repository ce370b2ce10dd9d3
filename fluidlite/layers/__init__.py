"""The layers: functions that append operators to the main program (`fluid.layers`)."""

from ..base import missing
from . import (
    activations,
    arithmetic,
    arranging,
    comparison,
    constants,
    convolution,
    counter,
    dense,
    inputs,
    io,
    joining,
    learning_rate_scheduler,
    limits,
    loss,
    matrix,
    metric_op,
    normalization,
    ops,
    parts,
    pooling,
    printing,
    probability,
    random,
    reductions,
    regression,
    search,
    sequence_lod,
    shapes,
    variables,
)
from .activations import *  # noqa: F403
from .arithmetic import *  # noqa: F403
from .arranging import *  # noqa: F403
from .comparison import *  # noqa: F403
from .constants import *  # noqa: F403
from .convolution import *  # noqa: F403
from .counter import *  # noqa: F403
from .dense import *  # noqa: F403
from .inputs import *  # noqa: F403
from .io import *  # noqa: F403
from .joining import *  # noqa: F403
from .learning_rate_scheduler import *  # noqa: F403
from .limits import *  # noqa: F403
from .loss import *  # noqa: F403
from .matrix import *  # noqa: F403
from .metric_op import *  # noqa: F403
from .normalization import *  # noqa: F403
from .ops import *  # noqa: F403
from .parts import *  # noqa: F403
from .pooling import *  # noqa: F403
from .printing import *  # noqa: F403
from .probability import *  # noqa: F403
from .random import *  # noqa: F403
from .reductions import *  # noqa: F403
from .regression import *  # noqa: F403
from .search import *  # noqa: F403
from .sequence_lod import *  # noqa: F403
from .shapes import *  # noqa: F403
from .variables import *  # noqa: F403

__all__ = []
__all__ += activations.__all__
__all__ += arithmetic.__all__
__all__ += arranging.__all__
__all__ += comparison.__all__
__all__ += constants.__all__
__all__ += convolution.__all__
__all__ += counter.__all__
__all__ += dense.__all__
__all__ += inputs.__all__
__all__ += io.__all__
__all__ += joining.__all__
__all__ += learning_rate_scheduler.__all__
__all__ += limits.__all__
__all__ += loss.__all__
__all__ += matrix.__all__
__all__ += metric_op.__all__
__all__ += normalization.__all__
__all__ += ops.__all__
__all__ += parts.__all__
__all__ += pooling.__all__
__all__ += printing.__all__
__all__ += probability.__all__
__all__ += random.__all__
__all__ += reductions.__all__
__all__ += regression.__all__
__all__ += search.__all__
__all__ += sequence_lod.__all__
__all__ += shapes.__all__
__all__ += variables.__all__

__getattr__ = missing.reporter(__name__)
