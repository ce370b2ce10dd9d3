"""The `paddle` namespace: the names of Fluid 1.8 (`paddle.fluid`, `paddle.reader`, ...) and those of Paddle 2.0.

Scripts get it by `import paddle` once the import hook is installed (`python -m fluidlite SCRIPT`, or
`import fluidlite.as_paddle`). Names of 2.0 run eagerly unless `enable_static()` was called; names of `paddle.fluid`
build programs outside of dygraph mode; calls with tensors follow the mode of these. Rarely used modules are loaded on
first use.
"""

from typing import TYPE_CHECKING

import fluidlite as fluid

# Not `from .. import`: until this module is loaded, the attribute `dataset` is another one, `fluid.dataset`.
import fluidlite.dataset as dataset

from .. import __version__ as fluidlite_version
from ..base import missing
from ..eager import Parameter, Tensor, grad, no_grad
from ..eager import is_recording as is_grad_enabled
from ..eager import recording as set_grad_enabled
from ..reader import batch
from . import compat, dtypes, modes, tensor
from .dtypes import *  # noqa: F403
from .modes import *  # noqa: F403
from .small_modules import check_import_scipy  # noqa: F401 - a function, whoever imports the module
from .small_modules import full_version as __version__
from .tensor import methods

if TYPE_CHECKING:
    from ..fluid.dygraph import DataParallel
    from . import (  # noqa: F401
        autograd,
        complex,
        hapi,
        io,
        jit,
        metric,
        nn,
        optimizer,
        static,
        utils,
        vision,
    )
    from .hapi import Model  # noqa: F401
    from .hapi.summary import summary  # noqa: F401
    from .saving import load, save
    from .small_modules import ParamAttr  # noqa: F401
    from .tensor import *  # noqa: F403

methods.attach()

__all__ = [
    "DataParallel",
    "Parameter",
    "Tensor",
    "__version__",
    "batch",
    "compat",
    "dataset",
    "device",  # noqa: F405 - a view (base/names/views.py)
    "fluid",
    "fluidlite_version",
    "grad",
    "is_grad_enabled",
    "load",
    "no_grad",
    "reader",  # noqa: F405 - a view
    "save",
    "set_grad_enabled",
    "tensor",
    "version",  # noqa: F405 - a view
]
__all__ += dtypes.__all__
__all__ += modes.__all__
__all__ += missing.public(__name__)

__getattr__, __dir__ = missing.lazy(__name__)
