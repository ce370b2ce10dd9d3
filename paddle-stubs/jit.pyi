# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.jit import (
    ProgramTranslator as ProgramTranslator,
    TracedLayer as TracedLayer,
    TranslatedLayer as TranslatedLayer,
    load as load,
    not_to_static as not_to_static,
    save as save,
    to_static as to_static,
)
