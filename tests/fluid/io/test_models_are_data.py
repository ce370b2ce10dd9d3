"""Models that are loaded only compute: what would reach out of the program is refused, unless the user trusts them."""

import os
from types import SimpleNamespace

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import inference
from fluidlite.base.errors import NotSupportedError
from fluidlite.dygraph.jit.models import load as load_layer
from fluidlite.incubate.fleet.utils.utils import check_saved_vars_try_dump
from fluidlite.ops import registry
from fluidlite.ops.places import PLACES

X = np.array([[1, 2]], "float32")
ADDRESS = "127.0.0.1:1"

OUTSIDE = {
    "writes files": {"save": {"file_path": "FILE"}, "save_combine": {"file_path": "FILE"}},
    "reads files": {"load": {"file_path": "FILE"}, "load_combine": {"file_path": "FILE"}},
    "opens connections": {
        "send": {"epmap": [ADDRESS]},
        "recv": {"epmap": [ADDRESS]},
        "send_barrier": {"endpoints": [ADDRESS]},
        "fetch_barrier": {"endpoints": [ADDRESS]},
        "listen_and_serv": {"endpoint": ADDRESS},
        "checkpoint_notify": {"epmap": [ADDRESS], "dir": "FILE"},
        "recv_save": {"endpoints": [ADDRESS], "file_path": "FILE"},
        "distributed_lookup_table": {"endpoints": [ADDRESS], "table_names": ["w"]},
    },
    "calls Python functions": {"py_func": {}},
}
KINDS = {op: (reach, attrs) for reach, ops in OUTSIDE.items() for op, attrs in ops.items()}

INSIDE = """assert feed fetch get_places print delete_var read create_py_reader create_double_buffer_reader
    allreduce begin_gradient_sums broadcast c_allgather c_allreduce_max c_allreduce_min c_allreduce_prod
    c_allreduce_sum c_broadcast c_comm_init c_comm_init_all c_gen_nccl_id c_reducescatter c_sync_calc_stream
    c_sync_comm_stream gen_nccl_id gradient_sums""".split()
"""Operators that do more than compute, but nothing that a model could name: they print, or talk with the processes with
which the user has started this one.
"""


def test_every_operator_says_whether_it_reaches_out():
    """`host` operators do more than compute; of each the tables above say what."""
    definitions = [registry.find(name) for names in PLACES.values() for name in names.split()]
    assert {d.type: d.effects.external for d in definitions if d.effects.external} == {
        op: reach for op, (reach, _) in KINDS.items()
    }
    assert {d.type for d in definitions if d.effects.host} <= {*KINDS, *INSIDE}


@pytest.fixture
def model(alone, tmp_path):
    """A function that saves a model with one more operator, in the global block or in a branch; returns its folder."""

    def saved(op, attrs, inside=False):
        x = fluid.data("x", [None, 2])
        y = fluid.layers.scale(x, 2.0)
        exe = fluid.Executor(fluid.CPUPlace())
        fluid.io.save_inference_model(str(tmp_path / "model"), ["x"], [y], exe)
        path = tmp_path / "model" / "__model__"
        program = fluid.Program.parse_from_string(path.read_bytes())
        block = program.global_block()
        if inside:
            block = program._create_block()
            program._rollback()
            scopes = program.global_block().create_var(
                name="scopes", type=fluid.core.VarDesc.VarType.STEP_SCOPES
            )
            condition = program.global_block().create_var(name="condition", shape=[1], dtype="bool")
            program.global_block().append_op(
                type="conditional_block",
                inputs={"Cond": [condition], "Input": []},
                outputs={"Out": [], "Scope": [scopes]},
                attrs={"sub_block": block, "is_scalar_condition": True},
            )
        definition = registry.find(op)
        block.create_var(name="ids", shape=[-1, 1], dtype="int64")
        var = {"X": ["x"], "Ids": ["ids"], "W": ["x"]}
        out = block.create_var(name="read", shape=[1, 2], dtype="float32")
        slots = [slot for slot in definition.input_slots if slot.name in var and not slot.optional]
        block.append_op(
            type=op,
            inputs={slot.name: var[slot.name] for slot in slots},
            outputs={slot.name: [out] for slot in definition.output_slots if not slot.optional},
            attrs={
                name: str(tmp_path / "file") if value == "FILE" else value for name, value in attrs.items()
            },
        )
        path.write_bytes(program.desc.serialize_to_string())
        return str(tmp_path / "model")

    return saved


@pytest.mark.parametrize("inside", [False, True], ids=["outermost", "in a branch"])
@pytest.mark.parametrize("op", KINDS)
def test_a_loaded_model_with_an_operator_that_reaches_out_is_refused(
    model, tmp_path, monkeypatch, op, inside
):
    reach, attrs = KINDS[op]
    os.mkfifo(tmp_path / "file")  # whoever opened it would wait
    folder = model(op, attrs, inside)
    message = f"{folder}/__model__ has an operator {op}, which {reach}; .*FLUIDLITE_TRUST_MODELS=1"
    with pytest.raises(NotSupportedError, match=message):
        fluid.io.load_inference_model(folder, None)
    for config in (inference.AnalysisConfig(folder), inference.NativeConfig()):
        if isinstance(config, inference.NativeConfig):
            config.model_dir = folder
        with pytest.raises(NotSupportedError, match=message):
            inference.create_paddle_predictor(config)
    data = (tmp_path / "model" / "__model__").read_bytes()
    with pytest.raises(NotSupportedError, match=f"given as bytes has an operator {op}"):
        fluid.io.load_inference_model(None, None, data, b"")
    monkeypatch.setenv("FLUIDLITE_TRUST_MODELS", "1")
    assert fluid.io.load_inference_model(folder, None)[1] == ["x"]


def test_a_dumped_program_is_data_as_well(model):
    folder = model("save", {"file_path": "FILE"})
    feed = SimpleNamespace(feeded_vars_names=["x"], feeded_vars_dims=[2], feeded_vars_types=["float32"])
    fetch = SimpleNamespace(fetch_vars_names=[])
    with pytest.raises(NotSupportedError, match=f"{folder}/__model__ has an operator save"):
        check_saved_vars_try_dump(folder, "__model__", False, feed, fetch)


def test_layers_made_of_models_are_data_as_well(model, tmp_path):
    folder = model("save", {"file_path": "FILE"})
    with fluid.dygraph.guard(), pytest.raises(NotSupportedError, match="operator save"):
        fluid.dygraph.StaticModelRunner(folder)
    os.rename(f"{folder}/__model__", f"{folder}/net.pdmodel")
    with pytest.raises(NotSupportedError, match="operator save"):
        load_layer(f"{folder}/net")


def test_a_trusted_model_and_the_users_own_programs_do_what_they_say(model, tmp_path, monkeypatch):
    exe = fluid.Executor(fluid.CPUPlace())
    folder = model("save", {"file_path": "FILE"})
    monkeypatch.setenv("FLUIDLITE_TRUST_MODELS", "1")
    program, _, fetches = fluid.io.load_inference_model(folder, exe)
    exe.run(program, feed={"x": X}, fetch_list=fetches)
    assert (tmp_path / "file").stat().st_size > X.nbytes
    (tmp_path / "file").unlink()
    monkeypatch.delenv("FLUIDLITE_TRUST_MODELS")
    parsed = fluid.Program.parse_from_string((tmp_path / "model" / "__model__").read_bytes())
    exe.run(parsed, feed={"x": X}, fetch_list=[parsed.global_block().var(fetches[0].name)])
    assert (tmp_path / "file").stat().st_size > X.nbytes
