"""Writes the stubs of modules whose layer classes are made from functions, so that type checkers see their arguments.

python scripts/layer_stubs.py          # write them
python scripts/layer_stubs.py --check  # exit 1 if one is out of date
"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path

import fluidlite

PACKAGE = "fluidlite.paddle.nn.layer"
MODULES = ("activation", "loss", "pooling")


def stub(module: str) -> str:
    """The stub of one module: its public classes with the arguments that they and their `forward` take."""
    found = importlib.import_module(f"{PACKAGE}.{module}")
    classes = [getattr(found, name) for name in found.__all__]
    lines = [f"# Written by scripts/{Path(__file__).name}.", "from typing import Any", ""]
    lines += ["from ....dygraph.layers import Layer", "from .base import FunctionLayer", ""]
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


def main() -> int:
    late = 0
    for module in MODULES:
        path = Path(fluidlite.__file__).parents[1] / PACKAGE.replace(".", "/") / f"{module}.pyi"
        text = stub(module)
        if not path.exists() or path.read_text() != text:
            if "--check" in sys.argv:
                print(f"{path} is out of date: run scripts/layer_stubs.py", file=sys.stderr)
                late = 1
            else:
                path.write_text(text)
    return late


if __name__ == "__main__":
    sys.exit(main())
