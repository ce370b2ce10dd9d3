"""Programs run by our executor and, as ONNX models, by onnxruntime."""

import numpy as np
import onnxruntime

import fluidlite as fluid
from fluidlite.onnx import export
from fluidlite.onnx.graph import LENGTHS

PLACE = fluid.CPUPlace()


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def fed(feed):
    """The feed for onnxruntime: rows, and lengths of sequences as a separate input."""
    given = {}
    for name, value in feed.items():
        given[name] = np.array(value)
        if hasattr(value, "recursive_sequence_lengths") and value.recursive_sequence_lengths():
            given[name + LENGTHS] = np.array(value.recursive_sequence_lengths()[-1], "int64")
    return given


def check(program, feeds, fetches, path, batches, exe):
    """Export, run every batch on both sides, compare elements, shapes, types and lengths."""
    export(program, feeds, fetches, path)
    running = session(path)
    names = [output.name for output in running.get_outputs()]
    for batch in batches:
        wanted = exe.run(program, feed=batch, fetch_list=fetches, return_numpy=False)
        given = fed(batch)
        asked = {needed.name: given[needed.name] for needed in running.get_inputs()}
        got = dict(zip(names, running.run(None, asked), strict=True))
        for var, want in zip(fetches, wanted, strict=True):
            found, array = got.pop(var.name), np.array(want)
            assert (found.shape, found.dtype) == (array.shape, array.dtype), var.name
            np.testing.assert_allclose(found, array, 1e-4, 1e-5, err_msg=var.name)
            lengths = want.recursive_sequence_lengths()
            if lengths:
                assert got.pop(var.name + LENGTHS).tolist() == lengths[-1]
        assert not got, got.keys()
