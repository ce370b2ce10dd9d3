"""`fluidlite export`: a saved inference model as an ONNX file."""

from __future__ import annotations

import argparse
import sys

from ..base.errors import NotSupportedError
from ..base.place import CPUPlace
from ..executor import Executor, Scope, scope_guard
from ..io import load_inference_model


def main(arguments: list[str]) -> int:
    """Run `fluidlite export` with these arguments; returns the exit status."""
    parser = argparse.ArgumentParser(
        "fluidlite export", description="Write a saved inference model as an ONNX model."
    )
    parser.add_argument(
        "folder", metavar="MODEL_DIR", help="what save_inference_model wrote, here or by Paddle"
    )
    parser.add_argument("path", metavar="MODEL.onnx", help="the file to write")
    parser.add_argument("--model", help="the file of the program in MODEL_DIR (__model__)")
    parser.add_argument("--params", help="the file of the parameters, if they are in one")
    given = parser.parse_args(arguments)
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
        return 1
    ends = [", ".join(info.name for info in infos) for infos in (made.graph.input, made.graph.output)]
    print(f"{given.path}: opset {made.opset_import[0].version}, from {ends[0]} to {ends[1]}")
    return 0
