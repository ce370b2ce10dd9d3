"""Every exported operator by onnxruntime, against our executor."""

import subprocess
import sys

import numpy as np
import onnx
import pytest

import fluidlite as fluid
from fluidlite.base.errors import NotSupportedError
from fluidlite.onnx import export, missing_operators
from fluidlite.onnx.graph import EXPORTERS
from tests.onnx.cases import CASES
from tests.onnx.running import PLACE, check

L = fluid.layers


pytestmark = pytest.mark.usefixtures("alone")


def batch(feeds, size, random):
    """Arrays for feeds: open dimensions are `size`, or the sum of the lengths of as many sequences."""
    given = {}
    for name, shape, dtype, level in feeds:
        lengths = random.integers(1, 5, size).tolist()
        if size == 4 and level:
            lengths[2] = max(lengths) + 1
        open_size = sum(lengths) if level else size
        sizes = [open_size if n is None else n for n in shape]
        array = random.integers(1, 7, sizes) if dtype == "int64" else random.uniform(-1, 1, sizes)
        given[name] = array.astype(dtype)
        if level:
            given[name] = fluid.create_lod_tensor(given[name], [lengths], PLACE)
    return given


def built(name):
    """Program, feeds, fetches and executor of a case, with parameters that all differ."""
    feeds, build = CASES[name]
    variables = [fluid.data(n, list(shape), dtype, lod_level=level) for n, shape, dtype, level in feeds]
    fetches = build(*variables)
    exe, random = fluid.Executor(PLACE), np.random.default_rng(3)
    exe.run(fluid.default_startup_program())
    for parameter in fluid.default_main_program().all_parameters():
        low = 0.5 if "batch_norm" in parameter.name else -0.5
        values = random.uniform(low, 1, parameter.shape).astype("float32")
        fluid.global_scope().find_var(parameter.name).get_tensor().set(values, PLACE)
    program = fluid.default_main_program().clone(for_test=True)
    chosen = list(fetches) if isinstance(fetches, (list, tuple)) else [fetches]
    return program, feeds, [program.global_block().var(var.name) for var in chosen], exe


@pytest.mark.parametrize("name", CASES)
def test_onnxruntime_computes_what_we_do(name, tmp_path):
    program, feeds, fetches, exe = built(name)
    random = np.random.default_rng(7)
    batches = [batch(feeds, size, random) for size in (4, 2)]
    check(program, [feed[0] for feed in feeds], fetches, tmp_path / "model.onnx", batches, exe)


def test_every_operator_of_the_table_is_tried():
    tried = set()
    for name in CASES:
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
            program = built(name)[0]
        tried |= {op.type for block in program.blocks for op in block.ops}
    aliases = {
        "flatten", "reshape", "squeeze", "transpose", "unsqueeze", "fill_zeros_like2", "multiclass_nms2",
    }  # fmt: skip
    assert EXPORTERS.keys() - tried - aliases == set()


def test_opset_and_open_dimensions_are_in_the_model(tmp_path):
    program, feeds, fetches, _ = built("pooled_sequences")
    model = export(program, ["x"], fetches[:1], tmp_path / "model.onnx")
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [("", 17)]
    assert sizes(model.graph.input) == {"x": ["x.rows", 5], "x.lengths": ["x.sequences"]}
    assert onnx.load(tmp_path / "model.onnx") == model


def sizes(infos):
    return {
        info.name: [dim.dim_param or dim.dim_value for dim in info.type.tensor_type.shape.dim]
        for info in infos
    }


def test_open_sizes_of_outputs_have_the_names_of_those_of_inputs(tmp_path):
    x, words = fluid.data("x", [None, None, 4]), fluid.data("words", [None, 4], lod_level=1)
    outs = [L.relu(x), L.reduce_sum(x, 1), L.reshape(x, [0, -1]), L.where(x > 0), L.fc(words, 3)]
    fluid.Executor(PLACE).run(fluid.default_startup_program())
    model = export(fluid.default_main_program(), [x, words], outs, tmp_path / "model.onnx")
    named, summed, shaped, found, rows = outs
    assert sizes(model.graph.input) == {
        "x": ["batch", "x.1", 4],
        "words": ["words.rows", 4],
        "words.lengths": ["words.sequences"],
    }
    assert sizes(model.graph.output) == {
        named.name: ["batch", "x.1", 4],
        summed.name: ["batch", 4],
        shaped.name: ["batch", f"{shaped.name}.1"],
        found.name: [f"{found.name}.0", 3],
        rows.name: ["words.rows", 3],
        f"{rows.name}.lengths": ["words.sequences"],
    }


def test_operators_without_counterpart_are_all_named(tmp_path):
    x = fluid.data("x", [None, 4], "float32")
    out = L.similarity_focus(
        L.reshape(L.cast(L.hash(L.cast(x, "int64"), 5, 2), "float32"), [-1, 2, 1, 1]), 1, [0]
    )
    main = fluid.default_main_program()
    assert missing_operators(main) == ["hash", "similarity_focus"]
    with pytest.raises(NotSupportedError, match="no counterpart in ONNX: hash, similarity_focus"):
        export(main, ["x"], [out], tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


def test_what_of_an_operator_has_no_counterpart_is_said(tmp_path):
    x = fluid.data("x", [None, 4, 5, 5], "float32")
    out = L.adaptive_pool2d(x, 3, "avg")
    with pytest.raises(NotSupportedError, match=r"pool2d .*pools \[5, 5\] elements into \[3, 3\] windows"):
        export(fluid.default_main_program(), [x], [out], tmp_path / "model.onnx")


def test_wrong_names_and_missing_values_are_errors(tmp_path):
    x = fluid.data("x", [None, 4], "float32")
    out = L.fc(x, 2)
    main = fluid.default_main_program()
    with pytest.raises(ValueError, match="no variable 'y'"):
        export(main, ["y"], [out], tmp_path / "model.onnx")
    with pytest.raises(ValueError, match="run the startup program"):
        export(main, ["x"], [out], tmp_path / "model.onnx")


def test_the_command_writes_a_saved_model(tmp_path):
    program, _, fetches, exe = built("fc")
    fluid.io.save_inference_model(str(tmp_path / "net"), ["x"], fetches, exe, program)
    command = [sys.executable, "-m", "fluidlite", "export", tmp_path / "net", tmp_path / "net.onnx"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and "opset 17, from x to save_infer_model" in done.stdout
    assert onnx.load(tmp_path / "net.onnx").graph.input[0].name == "x"
    command[-2] = tmp_path / "nothing"
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "There is no directory" in done.stderr
    command[-2] = tmp_path
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "MODEL_DIR is a folder that save_inference_model wrote" in done.stderr
