"""Writes the stub of the module whose layer classes are made from functions, so that type checkers see their arguments.

python scripts/layer_stubs.py          # write it
python scripts/layer_stubs.py --check  # exit 1 if it is out of date
"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path

import generated

import fluidlite

MODULE = "fluidlite.paddle.nn.layer.of_functions"


def stub() -> str:
    """The stub: public classes with the arguments that they and their `forward` take."""
    found = importlib.import_module(MODULE)
    classes = [getattr(found, name) for name in sorted(found.__all__)]
    lines = [f"# Written by scripts/{Path(__file__).name}.", "from typing import Any", ""]
    lines += ["from ....fluid.dygraph.layers import Layer", "from .base import FunctionLayer", ""]
    lines += [f"__all__ = {sorted(found.__all__)!r}".replace("'", '"') + "", ""]
    for kind in classes:
        function = hasattr(kind, "function")
        lines.append(f"class {kind.__name__}({'FunctionLayer' if function else 'Layer'}):")
        lines.append(f"    def __init__{_typed(kind.__init__)} -> None: ...")
        if not function:
            lines.append(f"    def forward{_typed(kind.forward)} -> Any: ...")
    return "# ruff: noqa\n# fmt: off\n" + "\n".join(lines) + "\n"


def _typed(function: object) -> str:
    shown = []
    for one in inspect.signature(function).parameters.values():  # type: ignore[arg-type]
        kind = "" if one.annotation is one.empty else f": {one.annotation}"
        shown.append(f"{one.name}{kind}" + ("" if one.default is one.empty else f" = {one.default!r}"))
    return f"({', '.join(shown)})"


if __name__ == "__main__":
    path = Path(fluidlite.__file__).parents[1] / MODULE.replace(".", "/")
    sys.exit(generated.write({path.with_suffix(".pyi"): stub()}))
