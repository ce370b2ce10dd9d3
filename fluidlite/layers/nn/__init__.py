"""What networks are made of: activations, convolutions, pooling, normalisation, fully connected layers, images."""

from ...base import missing
from . import (
    activations,
    click_values,
    clipping,
    convolution,
    dense,
    normalization,
    pooling,
    position_encoding,
    probability,
    resizing,
    similarity,
    user_functions,
    vision,
)
from .activations import *  # noqa: F403
from .click_values import *  # noqa: F403
from .clipping import *  # noqa: F403
from .convolution import *  # noqa: F403
from .dense import *  # noqa: F403
from .normalization import *  # noqa: F403
from .pooling import *  # noqa: F403
from .position_encoding import *  # noqa: F403
from .probability import *  # noqa: F403
from .resizing import *  # noqa: F403
from .similarity import *  # noqa: F403
from .user_functions import *  # noqa: F403
from .vision import *  # noqa: F403

__all__ = []
__all__ += activations.__all__
__all__ += click_values.__all__
__all__ += clipping.__all__
__all__ += convolution.__all__
__all__ += dense.__all__
__all__ += normalization.__all__
__all__ += pooling.__all__
__all__ += position_encoding.__all__
__all__ += probability.__all__
__all__ += resizing.__all__
__all__ += similarity.__all__
__all__ += user_functions.__all__
__all__ += vision.__all__

__getattr__ = missing.reporter(__name__)
