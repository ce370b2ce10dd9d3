# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.dygraph.jit.models import (
    TranslatedLayer as TranslatedLayer,
)
from fluidlite.dygraph.jit.traced_layer import (
    TracedLayer as TracedLayer,
)
from fluidlite.dygraph.jit.translator import (
    ProgramTranslator as ProgramTranslator,
)
from fluidlite.paddle.jit import (
    load as load,
    not_to_static as not_to_static,
    save as save,
    to_static as to_static,
)
