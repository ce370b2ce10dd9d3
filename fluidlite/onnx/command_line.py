"""`fluidlite export`: a saved inference model as an ONNX file."""

from __future__ import annotations

import sys
from argparse import Namespace

from ..base.errors import NotSupportedError
from ..base.place import CPUPlace
from ..executor import Executor, Scope, scope_guard
from ..io import load_inference_model


def export_model(given: Namespace) -> int:
    """Run `fluidlite export`; returns the exit status."""
    try:
        from . import export

        with scope_guard(Scope()):
            executor = Executor(CPUPlace())
            program, feeds, fetches = load_inference_model(given.folder, executor, given.model, given.params)
            made = export(program, feeds, fetches, given.path)
    except (NotSupportedError, OSError, ValueError) as error:
        print(f"fluidlite export: {error}", file=sys.stderr)
        if isinstance(error, FileNotFoundError) and str(error.filename).startswith(given.folder):
            print(
                "MODEL_DIR is a folder that save_inference_model wrote; --model names the file of the program if that "
                "is not __model__, --params that of the parameters if they are in one",
                file=sys.stderr,
            )
        return 1 if isinstance(error, NotSupportedError) else 2
    ends = [", ".join(info.name for info in infos) for infos in (made.graph.input, made.graph.output)]
    print(f"{given.path}: opset {made.opset_import[0].version}, from {ends[0]} to {ends[1]}")
    return 0
