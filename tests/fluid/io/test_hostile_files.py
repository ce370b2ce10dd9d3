"""Damaged and malicious files: an error that says what is wrong, or results; never a crash. See `hostile.py`."""

import random
import warnings

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import unique_name
from fluidlite.base.storage.messages import messages

from ...engines import run_by
from . import hostile
from .hostile_formats import onnx_model

COPIES = 20
"""Damaged copies of each kind of file here; `python tests/fluid/io/hostile.py` tries more."""


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    return hostile.Samples(tmp_path_factory.mktemp("samples"))


KINDS = [
    "model", "program", "tensor", "combined", "pickle", "blocks", "slots", "dygraph", "safetensors",
    "events", "onnx", "onnx blocks", "onnx places", "onnx steps",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_give_an_error_or_results(samples, kind):
    if kind not in samples.files:
        pytest.skip("the package that reads these files is not installed")
    found = [
        hostile.trial(samples, kind, number) for number in range(COPIES // 4 if kind == "blocks" else COPIES)
    ]
    unclear = {number: what for number, (what, clear) in enumerate(found) if not clear}
    assert not unclear
    # Some are refused, and some still mean something. Of damaged event files what comes before is read.
    assert {"result"} < {what for what, _ in found} or kind == "events"


def test_the_good_files_are_good(samples):
    for kind, data in samples.files.items():
        samples.attempt(kind, data)


def test_damage_is_the_same_for_the_same_number(samples):
    for kind in samples.files:
        first, second = (hostile.mutant(samples, kind, random.Random(7)) for _ in range(2))
        assert first == second


def nested(depth):
    """The saved program of a branch in a branch and so on, with that many blocks on top of each other."""
    main, L = fluid.Program(), fluid.layers

    def branch(value, depth):
        inside = lambda: branch(value + 2.0, depth - 1)  # noqa: E731
        return value if depth == 0 else L.cond(L.less_than(value, value + 1.0), inside, lambda: value)

    with fluid.program_guard(main, fluid.Program()), unique_name.guard():
        out = branch(fluid.data("x", [1], "float32"), depth)
    message = messages().ProgramDesc()
    message.ParseFromString(main.desc.serialize_to_string())
    return message, out.name


def runs_block(message, block, number):
    """Have an operator of `block` run the block `number`."""
    ops = message.blocks[block].ops
    op = next((op for op in ops if op.type == "conditional_block"), None)
    if op is None:
        op = ops.add()
        op.CopyFrom(next(op for op in message.blocks[0].ops if op.type == "conditional_block"))
    next(attr for attr in op.attrs if attr.name == "sub_block").block_idx = number


@pytest.mark.parametrize("number", [-1, 0, 1, 2, 5, 2**31 - 1])
def test_a_block_that_runs_itself_is_an_error(number):
    """At once, and by way of another."""
    message, _ = nested(2)
    runs_block(message, 2, number)
    with pytest.raises(fluid.core.EnforceNotMet, match="damaged program"):
        fluid.Program.parse_from_string(message.SerializeToString())


def test_blocks_are_nested_as_deep_as_they_can_be_run():
    message, out = nested(60)
    program = fluid.Program.parse_from_string(message.SerializeToString())
    feed = {"x": np.array([1.0], "float32")}
    assert fluid.Executor(fluid.CPUPlace()).run(program, feed=feed, fetch_list=[out])[0] == 121
    message, _ = nested(65)
    with pytest.raises(ValueError, match="nested more than 64 deep"):
        fluid.Program.parse_from_string(message.SerializeToString())


def test_a_branch_without_its_block_or_without_outputs_is_an_error():
    message, _ = nested(1)
    branch = next(op for op in message.blocks[0].ops if op.type == "conditional_block")
    kept = [attr for attr in branch.attrs if attr.name != "sub_block"]
    del branch.attrs[:]
    branch.attrs.extend(kept)
    with pytest.raises(ValueError, match="conditional_block: attribute sub_block should be a block"):
        fluid.Program.parse_from_string(message.SerializeToString())
    message, _ = nested(1)
    del next(op for op in message.blocks[0].ops if op.type == "select_input").outputs[:]
    with pytest.raises(ValueError, match="select_input: output Out is missing"):
        fluid.Program.parse_from_string(message.SerializeToString())


def test_what_a_branch_keeps_is_for_its_gradient_alone():
    message, _ = nested(1)
    branch = next(op for op in message.blocks[0].ops if op.type == "conditional_block")
    (scope,) = next(slot for slot in branch.outputs if slot.parameter == "Scope").arguments
    message.blocks[0].ops[0].outputs[0].arguments[:] = [scope]
    with pytest.raises(ValueError, match=f"cannot be variable {scope!r}, which is a .*STEP_SCOPES"):
        fluid.Program.parse_from_string(message.SerializeToString())
    message, _ = nested(1)
    branch = next(op for op in message.blocks[0].ops if op.type == "conditional_block")
    next(slot for slot in branch.outputs if slot.parameter == "Scope").arguments[:] = ["x"]
    with pytest.raises(
        ValueError, match="conditional_block: Scope cannot be variable 'x', which is a .*LOD_TENSOR"
    ):
        fluid.Program.parse_from_string(message.SerializeToString())


def test_a_block_of_gradients_belongs_to_a_block_that_is_there():
    message, _ = nested(1)
    message.blocks[1].forward_block_idx = 64
    with pytest.raises(ValueError, match="block 1 of 3 has .*forward_block_idx 64"):
        fluid.Program.parse_from_string(message.SerializeToString())


@pytest.mark.parametrize("where", ["../w.bin", "/etc/hostname", "a/../../w.bin", "none.bin", "w.bin\0"])
def test_weights_of_onnx_models_are_read_from_their_folder_alone(tmp_path, where):
    onnx = pytest.importorskip("onnx")
    from fluidlite.onnx import load

    model = onnx.ModelProto.FromString(onnx_model())
    folder = tmp_path / "model"
    folder.mkdir()
    onnx.save_model(
        model, folder / "good.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
    )
    program, feeds, fetches = load(folder / "good.onnx")
    assert (feeds, [var.name for var in fetches]) == (["x"], ["y"])
    (folder / "w.bin").rename(tmp_path / "w.bin")
    model = onnx.load(folder / "good.onnx", load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        entry.value = where if entry.key == "location" else entry.value
    (folder / "bad.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match=r"bad.onnx is not an ONNX model, or a damaged one: .*filter"):
        load(folder / "bad.onnx")


IDS = (-(2**63), -(2**31), -5, -1, 0, 2, 5, 6, 2**31, 2**32 + 1, 2**62, 2**63 - 1)


READERS = {
    "embedding": lambda ids: fluid.layers.embedding(ids, [6, 4]),
    "gather": lambda ids: fluid.layers.gather(fluid.layers.fill_constant([6, 4], "float32", 1.0), ids),
    "one_hot": lambda ids: fluid.layers.one_hot(ids, 6),
    "scatter": lambda ids: fluid.layers.scatter(
        fluid.layers.fill_constant([6, 1], "float32", 1.0), ids, fluid.layers.cast(ids, "float32")
    ),
    "cross_entropy": lambda ids: fluid.layers.cross_entropy(
        fluid.layers.fill_constant_batch_size_like(ids, [-1, 6], "float32", 0.2), ids
    ),
    "softmax_with_cross_entropy": lambda ids: fluid.layers.softmax_with_cross_entropy(
        fluid.layers.fill_constant_batch_size_like(ids, [-1, 6], "float32", 0.2), ids
    ),
}


@pytest.mark.parametrize("engine", ["plan", "interpret"])
@pytest.mark.parametrize("reader", READERS)
def test_ids_out_of_range_are_errors(reader, engine):
    """Wherever they come from, and whatever they are."""
    main = fluid.Program()
    with run_by(engine):
        with (
            fluid.program_guard(main, fluid.Program()),
            unique_name.guard(),
            fluid.scope_guard(fluid.Scope()),
            warnings.catch_warnings(),
        ):
            ids = fluid.data("ids", [None, 1], "int64")
            out = READERS[reader](ids)
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(fluid.default_startup_program())
            for value in IDS:
                feed = {"ids": np.array([[1], [value], [3]], "int64")}
                if 0 <= value < 6:
                    assert np.isfinite(exe.run(main, feed=feed, fetch_list=[out])[0]).all()
                    continue
                with pytest.raises(fluid.core.EnforceNotMet, match=str(value)):
                    exe.run(main, feed=feed, fetch_list=[out])


WRONG_OPERATORS = {
    "a type that there is none of": lambda op: setattr(op, "type", "rolu"),
    "an input that is missing": lambda op: op.inputs.pop(),
    "a variable that is missing": lambda op: op.inputs[0].arguments.__setitem__(0, "nobody"),
}


@pytest.mark.parametrize("case", WRONG_OPERATORS)
def test_errors_about_operators_name_the_file_of_the_program(samples, case):
    path, whole = samples.folder / "model" / "__model__", samples.files["model"]
    message = messages().ProgramDesc.FromString(whole)
    WRONG_OPERATORS[case](next(op for op in message.blocks[0].ops if op.type == "relu"))
    path.write_bytes(message.SerializeToString())
    try:
        with pytest.raises((fluid.core.EnforceNotMet, NotImplementedError), match=f"^{path}: "):
            fluid.io.load_inference_model(str(path.parent), None)
    finally:
        path.write_bytes(whole)
