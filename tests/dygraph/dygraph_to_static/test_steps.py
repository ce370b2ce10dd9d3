"""Single steps of Fluid's rewriting: trees as Paddle 1.8.5 makes them (`steps.json`), and what they compute."""

import ast
import inspect
import json
import textwrap
from pathlib import Path

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.dygraph.dygraph_to_static import (
    LoopTransformer,
    StaticAnalysisVisitor,
    basic_api_transformer,
    break_continue_transformer,
    call_transformer,
    ifelse_transformer,
    list_transformer,
    loop_transformer,
    print_transformer,
    program_translator,
    tensor_shape_transformer,
    utils,
)

STEPS = {
    "BasicApiTransformer": basic_api_transformer.BasicApiTransformer,
    "BreakContinueTransformer": break_continue_transformer.BreakContinueTransformer,
    "CallTransformer": call_transformer.CallTransformer,
    "IfElseTransformer": ifelse_transformer.IfElseTransformer,
    "ListTransformer": list_transformer.ListTransformer,
    "LoopTransformer": LoopTransformer,
    "PrintTransformer": print_transformer.PrintTransformer,
    "TensorShapeTransformer": tensor_shape_transformer.TensorShapeTransformer,
}
RECORDED = json.loads((Path(__file__).parent / "steps.json").read_text())


def after(tree, *steps):
    """A tree after some steps; those of loops take their variables in the order of the alphabet."""
    for step in steps:
        step(StaticAnalysisVisitor(tree).get_node_wrapper_root()).transform()
    return ast.fix_missing_locations(tree)


@pytest.mark.parametrize("source", RECORDED, ids=lambda text: text.split("\n")[2].strip())
def test_trees_are_those_of_fluid(source):
    for name, expected in RECORDED[source].items():
        with fluid.unique_name.guard():
            if expected.endswith("Error"):
                with pytest.raises((TypeError, AssertionError, NotImplementedError, AttributeError)):
                    after(ast.parse(source), STEPS[name])
                continue
            made = utils.ast_to_source_code(after(ast.parse(source), STEPS[name]))
        # Loop variables beforehand have no order in Fluid.
        assert ordered(made) == ordered(expected), name


def ordered(text):
    """Lines of code with runs of those that make loop variables sorted."""
    lines, run = [], []
    for line in [*ast.unparse(ast.parse(text)).split("\n"), ""]:
        if ".to_static_variable(" in line or ".data_layer_not_check(" in line:
            run.append(line)
        else:
            lines += [*sorted(run), line]
            run = []
    return lines


def left_early(x):
    for i in range(10):
        if i > 5:
            break
        x = x + i
    return x


def turns_left(x):
    i = fluid.layers.fill_constant([1], "int64", 0)
    while i < 8:
        i = i + 1
        if fluid.layers.reduce_sum(x) > 20:
            continue
        x = x + 1
    return x


def branches(x):
    if fluid.layers.reduce_sum(x) > 3 and fluid.layers.reduce_sum(x) < 100:
        y = x + 1
        x = x * 3
    else:
        y = x - 1
    return x + y


def both(x):
    total = fluid.layers.fill_constant([1], "float32", 0)
    while fluid.layers.reduce_sum(x) < 50:
        if fluid.layers.reduce_max(x) > 4:
            total = total + 1
        else:
            total = total + 0.25
        x = x * 1.5
    return total


LOOPS = (break_continue_transformer.BreakContinueTransformer, ifelse_transformer.IfElseTransformer)


@pytest.mark.parametrize("function", [left_early, turns_left, branches, both])
def test_what_is_rewritten_computes_the_same(function):
    value = np.array([1.0, 2.0, 3.5], "float32")
    with fluid.dygraph.guard():
        expected = function(fluid.dygraph.to_variable(value)).numpy()
    source = textwrap.dedent(inspect.getsource(function))
    tree = ast.parse(source.replace("):\n", "):\n    x = fluid.layers.assign(x)\n", 1))
    after(tree, LOOPS[0], LoopTransformer, LOOPS[1], call_transformer.CallTransformer)
    rewritten, _ = utils.ast_to_func(tree, function)
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        out = rewritten(fluid.data("x", [3]))
    assert any(op.type in ("while", "conditional_block") for op in main.global_block().ops)
    (found,) = fluid.Executor().run(main, feed={"x": value}, fetch_list=[out])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "text, branch, turns",
    [
        ("x > 1", True, True),
        ("i > 1", False, False),
        ("x is None", False, True),
        ("x is not None and x > 1", True, True),
        ("i > 1 or not x", True, True),
        ("foo(x) > 1", False, False),
        ("fluid.layers.mean(i)", True, False),
        ("i.numpy() > 1", True, True),
        ("np.max(x) > 1", False, False),
        ("x.shape[0] > 1", True, True),
    ],
)
def test_conditions_of_tensors(text, branch, turns):
    for keyword, expected in (("if", branch), ("while", turns)):
        tree = ast.parse(f"x = fluid.layers.relu(x)\n{keyword} {text}:\n    q = 1\n")
        found = utils.is_control_flow_to_transform(tree.body[1], StaticAnalysisVisitor(tree))
        assert found is expected
    node = ast.parse(text, mode="eval").body
    kinds = {"x": {105}}
    assert ifelse_transformer.IfConditionVisitor(node, None, kinds).is_control_flow() is branch


def test_names_before_a_statement():
    tree = ast.parse("a = 1\nif a:\n    b = 2\n    c = b\nelse:\n    b = 3\nself.d = b\nfoo(e)\nlast = 1")
    kinds = {
        name: [type(one).__name__ for one in uses]
        for name, uses in ifelse_transformer.get_name_ids([tree], tree.body[-1]).items()
    }
    assert kinds == {"a": ["Store"], "b": ["Store", "Load"], "self": ["Load"], "e": ["Load"]}
    S, L = ast.Store(), ast.Load()
    args = ifelse_transformer.parse_cond_args({"x": [L, S], "y": [S], "z": [L]}, ["y", "q"])
    assert [one.id for one in args.args] == ["q", "x", "y", "z"]
    assert ifelse_transformer.parse_cond_return({"x": [L]}, {"x": [S], "w": [S]}, {"w": [S], "v": [S]}) == (
        ["w", "x"],
        ["x"],
    )
    visitor = loop_transformer.NameVisitor(
        loop := ast.parse("i = 0\nwhile i < n:\n    i += 1\n    t = i\n    u = t\nprint(u)")
    )
    assert visitor.get_loop_var_names(loop.body[1]) == ({"i", "n", "u"}, {"u"})


def test_exits_outside_of_loops_are_refused():
    with pytest.raises(ValueError, match="outside of loops"):
        after(ast.parse("if x:\n    break\n"), LOOPS[0])


def test_calls_of_schedules():
    call, made = (ast.parse(text, mode="eval").body for text in ("lr()", "fluid.dygraph.NoamDecay(10, 20)"))
    assert utils.ast_to_source_code(utils.to_static_ast(call, made)) == "fluid.layers.noam_decay(10, 20)\n"
    call = ast.parse("lr(3, 4)", mode="eval").body
    utils.update_args_of_func(call, made, "__init__")
    assert ast.unparse(call) == "lr(d_model=3, warmup_steps=4)"
    with pytest.raises(ValueError, match="'__init__' or 'forward'"):
        utils.update_args_of_func(call, made, "build")
    with pytest.raises(NotImplementedError, match="Linear"):
        utils.to_static_ast(call, ast.parse("fluid.dygraph.Linear(2, 3)", mode="eval").body)


def test_function_spec():
    class Net(fluid.dygraph.Layer):
        def __init__(self):
            super().__init__()
            self.inner = fluid.dygraph.Linear(2, 3)

        def forward(self, x):
            return self.inner(x)

    Spec = program_translator.FunctionSpec
    with fluid.dygraph.guard():
        net, x = Net(), fluid.dygraph.to_variable(np.ones([2, 2], "float32"))
        spec = Spec(Net.forward, (net, x), {})
        assert spec.is_method() and list(spec.parameters()) == [one.name for one in net.parameters()]
        assert not spec.parameters(include_sublayer=False)
        assert spec == Spec(Net.forward, (net, x + 1), {}) and spec != Spec(both, (x,), {})
        main = fluid.Program()
        array = np.ones([2, 3], "int64")
        first, number, second = Spec(both, (array, 3, x), {}).to_static_inputs(main)
    assert (first.name, first.shape, first.is_data, number) == ("feed_0", (2, 3), True, 3)
    assert (second.name, second.shape, second.stop_gradient) == (x.name, (2, 2), True)
    assert not Spec(both, (x,), {}).is_method() and not Spec(both, (x,), {}).parameters()
