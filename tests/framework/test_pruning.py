"""Pruning of a training program, as in real Paddle 1.8.5: it keeps updates only if they are asked for."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import io
from fluidlite import layers as L

pytestmark = pytest.mark.usefixtures("alone")

FEED = {"x": np.ones((2, 4), "float32"), "label": np.zeros((2, 1), "int64")}
HEAD = ["mul", "elementwise_add", "softmax"]
NET = ["mul", "elementwise_add", "batch_norm", *HEAD]
BACKWARD = ["mean_grad", "cross_entropy_grad2", "softmax_grad", "elementwise_add_grad", "mul_grad"]


@pytest.fixture
def net():
    x, label = fluid.data("x", [None, 4]), fluid.data("label", [None, 1], "int64")
    hidden = L.batch_norm(L.fc(x, 3, name="h"), name="bn")
    prediction = L.fc(hidden, 2, act="softmax", name="p")
    loss = L.mean(L.cross_entropy(prediction, label))
    updates = fluid.optimizer.Adam(L.exponential_decay(0.1, 10, 0.5)).minimize(loss)[0]
    return {"h": hidden.name, "pred": prediction.name, "loss": loss.name, "updates": updates}


def types(program):
    return [op.type for op in program.global_block().ops]


@pytest.mark.parametrize(
    "fed, target, kept",
    [
        ("x", "h.w_0", []),
        ("x", "p.b_0_moment1_0", []),
        ("x", "bn.w_1", NET[:3]),
        ("x", "@LR_DECAY_COUNTER@", ["increment"]),
        ("x", "h", NET[:3]),
        ("h", "h", []),
        ("h", "pred", HEAD),
        ("x", "p.b_0@GRAD", [*NET, "cross_entropy2", "fill_constant", *BACKWARD[:4]]),
    ],
)
def test_what_is_kept_for_a_variable(net, fed, target, kept):
    program = fluid.default_main_program()
    fed, target = net.get(fed, fed), net.get(target, target)
    assert types(program._prune_with_input([fed], [target])) == kept
    expected = HEAD if fed == net["h"] else NET
    if not kept:
        assert types(program._prune_with_input([fed], [net["pred"], target])) == expected


def test_an_update_that_is_a_target_is_kept(net):
    program = fluid.default_main_program()
    one = next(op for op in net["updates"] if op.type == "adam" and op.input("Param") == ["p.b_0"])
    kept = types(program._prune([one]))
    assert kept.count("adam") == 1 and kept[-1] == "adam" and "batch_norm" in kept and "mul_grad" not in kept


def test_names_that_are_not_declared_are_refused(net):
    with pytest.raises(ValueError, match="'nobody'"):
        fluid.default_main_program()._prune(["nobody"])


def test_a_program_for_inference_keeps_what_trains_and_tests(net):
    program = fluid.default_main_program()
    copy = program._inference_optimize()
    assert types(copy) == types(program)
    assert [op.attr("is_test") for op in copy.global_block().ops if op.type.startswith("batch_norm")] == [
        True,
        True,
    ]
    assert types(program.clone(for_test=True)) == [*NET, "cross_entropy2", "mean"]


@pytest.mark.parametrize("name", ["h.w_0", "p.b_0_moment1_0", "bn.w_2", "@LR_DECAY_COUNTER@"])
def test_a_prediction_is_exported_with_a_variable(net, name, tmp_path):
    exe, main = fluid.Executor(), fluid.default_main_program()
    exe.run(fluid.default_startup_program())
    exe.run(feed=FEED)
    block = main.global_block()
    held = np.array(fluid.global_scope().find_var(name).get_tensor())
    test = main.clone(for_test=True)
    (prediction,) = exe.run(test, feed=FEED, fetch_list=[net["pred"]])
    targets = [block.var(net["pred"]), block.var(name)]
    io.save_inference_model(str(tmp_path), ["x"], targets, exe, main)
    with fluid.scope_guard(fluid.Scope()):
        program, fed, fetched = io.load_inference_model(str(tmp_path), exe)
        assert not {"adam", "mul_grad"}.intersection(types(program))
        found = exe.run(program, feed={"x": FEED["x"]}, fetch_list=fetched)
    assert fed == ["x"]
    assert np.array_equal(found[0], prediction)
    assert np.array_equal(found[1], held + (name == "@LR_DECAY_COUNTER@"))


@pytest.mark.parametrize("name, kept", [("h.w_0", []), ("p.b_0_moment1_0", []), ("bn.w_1", NET[:3])])
def test_a_description_is_pruned_to_an_operator_that_reads_a_variable(net, name, kept):
    program = fluid.default_main_program()
    L.scale(program.global_block().var(name), 2.0)
    last = len(program.global_block().ops) - 1
    pruned, _ = fluid.core.prune(program.desc, {"x"}, [[0, last]])
    assert [pruned.block(0).op(k).type() for k in range(pruned.block(0).op_size())] == [*kept, "scale"]


def test_operands_of_two_types_may_be_pruned():
    """Fluid appends an operator whatever the types of its operands are, and refuses them when it runs."""
    x, y = fluid.data("x", [None, 1]), fluid.data("y", [None, 1], "int32")
    out = L.fc(x, 1)
    fluid.contrib.layers.ctr_metric_bundle(out, y)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((2, 1), "float32"), "y": np.ones((2, 1), "int32")}
    with pytest.raises(fluid.core.EnforceNotMet, match="elementwise_sub.*Y must have the dtype of X"):
        exe.run(feed=feed, fetch_list=["_generated_var_0"])
    pruned = fluid.default_main_program()._prune([out])
    (got,) = exe.run(pruned, feed={"x": feed["x"]}, fetch_list=[out])
    assert got.shape == (2, 1)
