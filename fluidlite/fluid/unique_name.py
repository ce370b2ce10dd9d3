"""`fluid.unique_name`: names for variables, parameters and operators that nothing else has."""

from __future__ import annotations

from typing import Any

from ..base import missing
from ..base.unique_name import (
    DygraphParameterNameChecker,
    UniqueNameGenerator,
    current,
    generate,
    guard,
    switch,
)
from ..framework.mode import in_dygraph_mode

__all__ = ["DygraphParameterNameChecker", "UniqueNameGenerator", "generate", "guard", "switch"]


def generate_with_ignorable_key(key: str) -> str:
    """A name for a temporary: `key_N`, or `tmp_N` in dygraph mode (`fluid.unique_name`)."""
    return generate("tmp" if in_dygraph_mode() else key)


_missing = missing.reporter(__name__)


def __getattr__(name: str) -> Any:
    if name == "generator":
        return current()[0]
    if name == "dygraph_parameter_name_checker":
        return current()[1]
    return _missing(name)
