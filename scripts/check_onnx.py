#!/usr/bin/env python
"""Exports saved models to ONNX and compares what onnxruntime computes with what was recorded for them.

    python scripts/check_onnx.py FOLDER [--only NAME ...]

Each folder in FOLDER with a `separate/`, as save_inference_model wrote it, is a model. Its `io.npz` holds `feed0/NAME`,
`out0/0` and so on, and `__meta__`: JSON of `feeds`, `fetches`, `batches` and `lods`. Tolerance: 1e-4.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

import fluidlite as fluid
from fluidlite.base.errors import NotSupportedError
from fluidlite.onnx import export
from fluidlite.onnx.graph import LENGTHS


def check(folder: Path, made: Path) -> str:
    """What is to be said of one model."""
    recorded = np.load(folder / "io.npz")
    about = json.loads(recorded["__meta__"].tobytes())
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(str(folder / "separate"), exe)
        try:
            export(program, feeds, fetches, made)
        except NotSupportedError as error:
            return f"not exported: {error}"
    running = onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"])
    asked = {needed.name for needed in running.get_inputs()}
    names = [var.name for var in fetches]
    sizes, worst = [], 0.0
    for number in range(about["batches"]):
        given = {}
        for name in feeds:
            given[name] = recorded[f"feed{number}/{name}"]
            lengths = about["lods"].get(f"feed{number}/{name}")
            if lengths:
                given[name + LENGTHS] = np.array(lengths[-1], "int64")
        sizes.append(given[feeds[0]].shape)
        got = running.run(names, {name: array for name, array in given.items() if name in asked})
        for index, found in enumerate(got):
            want = recorded[f"out{number}/{index}"]
            if found.shape != want.shape:
                raise ValueError(f"{names[index]}: shape {found.shape}, recorded {want.shape}")
            if want.size:
                error = np.abs(found.astype("float64") - want)
                worst = max(worst, float((error / np.maximum(np.abs(want), 1)).max()))
    if worst > 1e-4:
        raise ValueError(f"differs by {worst:.1e}")
    return f"{len(sizes)} batches {' '.join(map(str, sizes))}: within {worst:.0e}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as work:
        for folder in sorted(path.parent for path in options.folder.glob("*/separate")):
            if options.only and folder.name not in options.only:
                continue
            try:
                print(f"{folder.name}: {check(folder, Path(work, 'model.onnx'))}")
            except Exception as error:
                wrong += 1
                print(f"{folder.name}: WRONG: {type(error).__name__}: {error}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
