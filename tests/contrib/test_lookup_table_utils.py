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
