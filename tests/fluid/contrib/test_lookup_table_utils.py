"""`fluid.contrib.utils.lookup_table_utils`: programs for inference, with their ends."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.contrib.utils import lookup_table_utils as tables


@pytest.fixture
def program():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [-1, 4])
        y = fluid.layers.dropout(fluid.layers.fc(x, 3), 0.5)
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(y))
        fluid.Executor().run(startup)
        yield main, y


def test_get_inference_model(program):
    main, y = program
    before = len(main.global_block().ops)
    model = tables.get_inference_model(main, ["x"], [y])
    ops = model.global_block().ops
    assert [op.type for op in ops] == ["feed", "mul", "elementwise_add", "dropout", "fetch"]
    assert ops[0].output("Out") == ["x"] and ops[-1].input("X") == [y.name] and ops[3].attr("is_test")
    assert len(main.global_block().ops) == before
    x = np.ones([2, 4], "float32")
    (out,) = fluid.Executor().run(model, feed={"x": x}, fetch_list=[y.name])
    weight = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    np.testing.assert_allclose(out, 0.5 * x @ weight, rtol=1e-5)


def test_what_is_no_name_or_target_is_refused(program):
    main, y = program
    for feeds, targets in [
        ([3], [y]),
        ([], [y]),
        (["x"], []),
        (["x"], ["y"]),
        (["nothing"], [y]),
        (["x"], [y, 3]),
    ]:
        with pytest.raises(ValueError):
            tables.get_inference_model(main, feeds, targets)


def test_names_of_files():
    assert [tables.lookup_table_dir, tables.model_filename] == ["__lookup_table__", "__model__"]


def test_a_server_loads_its_parts_and_its_table(tmp_path):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        y = fluid.layers.fc(fluid.data("x", [-1, 1000]), 30, name="f")
        table = fluid.embedding(fluid.data("i", [-1], "int64"), [50, 4], param_attr="emb")
        loss = fluid.layers.mean(y) + fluid.layers.mean(table)
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    transpiler = fluid.DistributeTranspiler()
    endpoints = ["127.0.0.1:6001", "127.0.0.1:6002"]
    transpiler.transpile(0, main, ",".join(endpoints), 1, startup_program=startup)
    programs = [transpiler.get_pserver_program(endpoint) for endpoint in endpoints]
    program = next(one for one in programs if "emb" in one.global_block().vars)
    parts = program._parameters_on_pservers.get_distributed_vars_by_ep(program._ps_endpoint)
    assert any(part.is_slice for part in parts)
    exe, saving, values = fluid.Executor(), fluid.Program(), {}
    with fluid.scope_guard(fluid.Scope()):
        for var in {part.origin.name: part.origin for part in parts}.values():
            value = np.arange(np.prod(var.shape), dtype="float32").reshape(var.shape)
            values[var.name] = value
            fluid.global_scope().var(var.name).get_tensor().set(value, fluid.CPUPlace())
            saving.global_block().create_var(
                name=var.name, shape=var.shape, dtype=var.dtype, persistable=True
            )
        fluid.io.save_vars(exe, str(tmp_path), saving, vars=list(saving.global_block().vars.values()))
        fluid.global_scope().var("emb").get_tensor().set(np.full([50, 4], 7, "float32"), fluid.CPUPlace())
        fluid.io.save_vars(exe, str(tmp_path), saving, vars=[saving.global_block().var("emb")], filename="t")
    with fluid.scope_guard(fluid.Scope()):
        tables.load_persistables_for_increment(tmp_path, exe, program, "emb", tmp_path / "t")
        held = {part.slice.name: fluid.global_scope().find_var(part.slice.name) for part in parts}
        found = {name: np.array(var.get_tensor()) for name, var in held.items()}
    values["emb"][:] = 7  # the table is the one that was named
    for part in parts:
        row = part.offset // 30 if part.is_slice else 0
        whole = values[part.origin.name]
        np.testing.assert_array_equal(found[part.slice.name], whole[row : row + part.slice.shape[0]])
    for folder, file, given in (
        ("none", "t", program),
        (tmp_path, "none", program),
        (tmp_path, tmp_path / "t", fluid.Program()),
    ):
        with pytest.raises(ValueError, match="no directory|no file|get_pserver_program"):
            tables.load_persistables_for_increment(folder, exe, given, "emb", file)
