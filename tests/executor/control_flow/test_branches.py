"""Programs with branches: values, gradients (against central differences), updates, and what goes wrong in a run."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.errors import EnforceNotMet

layers = fluid.layers
RNG = np.random.default_rng(3)


def flag(name="p"):
    return fluid.data(name, [1], "bool")


def feeds(*names):
    """Every way for these flags."""
    made = [{}]
    for name in names:
        made = [{**feed, name: np.array([value])} for feed in made for value in (True, False)]
    return made


def executor():
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


def two_results(x):
    one, two = layers.cond(flag(), lambda: (layers.square(x), layers.exp(x)), lambda: (x * 3.0, x))
    return one * two


def one_of_two_results(x):
    return layers.cond(flag(), lambda: (layers.square(x), x), lambda: (x * 3.0, x))[0]


def a_constant_branch(x):
    return layers.cond(flag(), lambda: layers.square(x), lambda: layers.fill_constant([2, 3], "float64", 1.0))


def used_outside_as_well(x):
    h = layers.tanh(x)
    return layers.cond(flag(), lambda: h * h, lambda: h) * h


def cases(x):
    pairs = [(flag(), lambda: layers.square(x)), (flag("q"), lambda: layers.exp(x))]
    return layers.case(pairs, default=lambda: x * 5.0)


def a_sparse_lookup(x):
    ids = layers.fill_constant([2, 1], "int64", 2)

    def look_up():
        return layers.embedding(ids, [5, 3], param_attr="w", dtype="float64", is_sparse=True) * x

    return layers.cond(flag(), look_up, lambda: x)


def branches_in_while_loop(x):
    i, n, two = (layers.fill_constant([1], "int64", value) for value in (0, 4, 2))

    def body(i, h):
        early = layers.less_than(i, two)
        h = layers.cond(early, lambda: layers.square(h) + x, lambda: layers.sin(h))
        out = layers.assign(h)
        with layers.Switch() as switch, switch.case(early):
            layers.assign(layers.tanh(out) * x, out)
        return [i + 1, out]

    return layers.while_loop(lambda i, h: layers.less_than(i, n), body, [i, layers.tanh(x)])[1]


def printed(x):
    return layers.cond(flag(), lambda: layers.Print(layers.square(x), message="taken"), lambda: x)


# Variables that branches replace, and branches in branches: tests/framework/test_branch_gradients.py.
PROGRAMS = [
    (two_results, feeds("p")),
    (one_of_two_results, feeds("p")),
    (a_constant_branch, feeds("p")),
    (used_outside_as_well, feeds("p")),
    (cases, feeds("p", "q")),
    (a_sparse_lookup, feeds("p")),
    (branches_in_while_loop, feeds()),
    (printed, feeds("p")),
]


def check_gradients(build, ways):
    x = fluid.data("x", [2, 3], "float64")
    x.stop_gradient = False
    loss = layers.reduce_sum(build(x))
    (dx,) = fluid.gradients([loss], [x])
    exe = executor()
    for feed in ways:
        value = RNG.uniform(-1, 1, (2, 3))
        got = exe.run(feed={**feed, "x": value}, fetch_list=[dx])[0]
        want = np.zeros_like(value)
        for at in np.ndindex(value.shape):
            sides = []
            for step in (1e-5, -1e-5):
                moved = value.copy()
                moved[at] += step
                sides.append(exe.run(feed={**feed, "x": moved}, fetch_list=[loss])[0].sum())
            want[at] = (sides[0] - sides[1]) / 2e-5
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6, err_msg=f"{build.__name__} {feed}")


@pytest.mark.parametrize(("build", "ways"), PROGRAMS, ids=[build.__name__ for build, _ in PROGRAMS])
def test_gradients(build, ways):
    check_gradients(build, ways)


@pytest.mark.parametrize("chosen", [(1, 0), (0, 0), (1, 1)])
def test_gradients_of_rows(chosen):
    def build(x):
        choice = layers.IfElse(fluid.data("m", [2, 1], "bool"))
        h = layers.tanh(x)
        with choice.true_block():
            choice.output(layers.square(choice.input(h)) * layers.scale(choice.input(x), 2.0))
        with choice.false_block():
            choice.output(layers.exp(choice.input(h)))
        return choice()[0] * x

    check_gradients(build, [{"m": np.array(chosen, bool).reshape(2, 1)}])


def test_sequences_go_through_if_else():
    x = fluid.data("x", [None, 1], "float32", lod_level=1)
    x.stop_gradient = False
    choice = layers.IfElse(fluid.data("m", [None, 1], "bool"))
    with choice.true_block():
        choice.output(layers.scale(choice.input(x), 2.0))
    with choice.false_block():
        choice.output(layers.scale(choice.input(x), -1.0))
    (out,) = choice()
    (dx,) = fluid.gradients([layers.reduce_sum(out)], [x])
    rows = fluid.create_lod_tensor(
        np.arange(6, dtype="float32").reshape(6, 1), [[1, 2, 0, 3]], fluid.CPUPlace()
    )
    exe = executor()
    for chosen in ([1, 0, 0, 1], [0, 0, 1, 0], [1, 1, 1, 1]):
        feed = {"x": rows, "m": np.array(chosen, bool).reshape(-1, 1)}
        value, gradient = exe.run(feed=feed, fetch_list=[out, dx], return_numpy=False)
        factor = np.repeat(np.where(chosen, 2.0, -1.0), [1, 2, 0, 3]).reshape(6, 1)
        np.testing.assert_array_equal(np.asarray(value), factor * np.asarray(rows))
        np.testing.assert_array_equal(np.asarray(gradient), factor)
        assert value.lod() == gradient.lod() == [[0, 1, 3, 3, 6]]


def test_shapes_and_types_are_those_of_the_branch():
    ones = [layers.fill_constant([2, 2], "int64", 1), layers.fill_constant([1], "float32", 2.0)]
    made = layers.cond(flag(), lambda: ones[0], lambda: ones[1])
    exe = executor()
    yes, no = (exe.run(feed=feed, fetch_list=[made])[0] for feed in feeds("p"))
    assert yes.dtype == np.int64 and yes.tolist() == [[1, 1], [1, 1]]
    assert no.dtype == np.float32 and no.tolist() == [2.0]


def test_what_lasts_stays_as_it_was_without_a_default():
    out = layers.create_global_var([1], 7.0, "float32", persistable=True)
    with layers.Switch() as switch:
        for name, value in (("p", 1.0), ("q", 2.0)):
            with switch.case(flag(name)):
                layers.fill_constant([1], "float32", value, out=out)
    exe = executor()
    found = [exe.run(feed=feed, fetch_list=[out])[0].item() for feed in reversed(feeds("p", "q"))]
    assert found == [7.0, 2.0, 1.0, 1.0]


def test_prints_of_the_branch_that_is_taken(capfd):
    x = fluid.data("x", [1], "float32")
    layers.cond(flag(), lambda: layers.Print(x, message="yes") and None, lambda: None)
    exe = executor()
    for feed in feeds("p"):
        exe.run(feed={**feed, "x": np.ones(1, "float32")}, fetch_list=[])
    shown = capfd.readouterr()
    assert (shown.out + shown.err).count("yes") == 1


def test_select_input_takes_a_number_that_there_is():
    made = layers.select_input([flag("p"), flag("q")], fluid.data("n", [1], "int32"))
    exe = executor()
    feed = {"p": np.array([True]), "q": np.array([False])}
    assert exe.run(feed={**feed, "n": np.array([1], "int32")}, fetch_list=[made])[0].tolist() == [False]
    with pytest.raises(EnforceNotMet, match=r"select_input: .* must be in \[0, 2\); got 2 .*Mask=\['n'\]"):
        exe.run(feed={**feed, "n": np.array([2], "int32")}, fetch_list=[made])


def test_select_output_leaves_the_others_alone():
    """`select_output`, the gradient of `select_input`."""
    x = fluid.data("x", [1], "float32")
    x.stop_gradient = False
    outs = [layers.fill_constant([1], "float32", value) for value in (5.0, 6.0)]
    layers.select_output(x, outs, fluid.data("n", [1], "int32"))
    assert fluid.default_main_program().global_block().ops[-1].type == "select_output"
    feed = {"x": np.array([1.0], "float32"), "n": np.array([1], "int32")}
    assert [value.item() for value in executor().run(feed=feed, fetch_list=outs)] == [5.0, 1.0]


def test_operators_of_inference_programs():
    """Real Paddle's predictor has other types for the same operators, without gradients."""
    block = fluid.default_main_program().global_block()
    x, out = fluid.data("x", [2, 1], "float32"), layers.fill_constant([2, 1], "float32", 0.0)
    mask = fluid.data("m", [2, 1], "bool")
    with layers.ConditionalBlock([flag()], is_scalar_condition=True).block():
        layers.assign(x, out)
    yes, no = layers.split_lod_tensor(out, mask)
    merged = layers.merge_lod_tensor(no, yes, x=out, mask=mask)
    for at, op in enumerate(block.ops):
        if op.type in ("conditional_block", "merge_lod_tensor"):
            block._remove_op(at)
            block._insert_op(at, op.type + "_infer", op.inputs, op.outputs, op.attrs)
    assert {"conditional_block_infer", "merge_lod_tensor_infer"} < {op.type for op in block.ops}
    exe = executor()
    for feed, expected in zip(feeds("p"), ([[2.0], [1.0]], [[0.0], [0.0]]), strict=True):
        feed = {**feed, "x": np.array([[1.0], [2.0]], "float32"), "m": np.array([[True], [False]])}
        assert exe.run(feed=feed, fetch_list=[merged])[0].tolist() == expected


def test_blocks_that_two_operators_run_are_looked_at_once():
    """30 nested levels: visiting a block once per operator that runs it would take exponential time."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        condition = fluid.layers.fill_constant([1], "bool", False)
        x = fluid.layers.fill_constant([1], "float32", 2.0)
    blocks = [program.global_block(), *(program._create_block() for _ in range(30))]
    for block, inner in zip(blocks, blocks[1:], strict=False):
        for _ in range(2):
            block.append_op(
                type="conditional_block",
                inputs={"Cond": [condition], "Input": []},
                outputs={
                    "Out": [x],
                    "Scope": [block.create_var(type=fluid.core.VarDesc.VarType.STEP_SCOPES)],
                },
                attrs={"sub_block": inner, "is_scalar_condition": True},
            )
    blocks[-1].append_op(type="scale", inputs={"X": [x]}, outputs={"Out": [x]}, attrs={"scale": 3.0})
    program.current_block_idx = 0
    (found,) = fluid.Executor(fluid.CPUPlace()).run(program, fetch_list=[x])
    assert found == 2
