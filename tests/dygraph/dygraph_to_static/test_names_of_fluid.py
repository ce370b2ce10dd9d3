"""Names of `fluid.dygraph.dygraph_to_static` and `fluid.dygraph.jit` that tools use: kinds of values, small trees."""

import ast
import inspect
import threading
import time

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.dygraph import jit
from fluidlite.dygraph.dygraph_to_static import (
    fluid_modules,
    ifelse_transformer,
    loop_transformer,
    program_translator,
    static_analysis,
    utils,
)

Kinds = static_analysis.NodeVarType


def expression(text):
    return ast.parse(text).body[0].value


@pytest.mark.parametrize(
    "text, paddle, dygraph, numpy, to_variable",
    [
        ("fluid.layers.fc(x)", True, False, False, False),
        ("fluid.dygraph.Linear(2, 3)", True, True, False, False),
        ("paddle.fluid.layers.fc(x)", True, False, False, False),
        ("to_variable(x)", True, False, False, True),
        ("np.ones(2)", False, False, True, False),
        ("x.numpy()", False, False, False, False),
        ("foo(x)", False, False, False, False),
    ],
)
def test_whose_function_is_called(text, paddle, dygraph, numpy, to_variable):
    node = expression(text)
    found = [
        ask(node)
        for ask in (utils.is_paddle_api, utils.is_dygraph_api, utils.is_numpy_api, utils.is_to_variable)
    ]
    assert found == [paddle, dygraph, numpy, to_variable]
    with pytest.raises(AssertionError):
        utils.is_paddle_api(expression("a"))


def test_small_trees():
    text = utils.ast_to_source_code
    assert text(ast.parse("x=1+2")) == "x = 1 + 2\n"
    assert (
        text(utils.generate_name_node(["a", "b"])) == "(a, b)\n"
        and text(utils.generate_name_node("a")) == "a\n"
    )
    assert (
        text(utils.get_constant_variable_node("a", 3)) == "a = fluid.layers.fill_constant([1], 'int64', 3)\n"
    )
    arguments = ast.parse("def g(a, b): pass").body[0].args
    made = utils.create_funcDef_node(ast.parse("x = a + b").body, "f", arguments, ["x", "a"])
    assert text(made) == "def f(a, b):\n    x = a + b\n    return (x, a)\n"

    def f(a, b):
        return None

    function, _ = utils.ast_to_func(made, f)
    assert function(1, 2) == (3, 1)
    assign, name = utils.create_assign_node("y", expression("1"))
    assert text(assign) == "y = 1\n" and text(name) == "y\n"
    assert [utils.compare_with_none(expression(one)) for one in ("x is None", "None != x", "x == 1")] == [
        True,
        True,
        False,
    ]
    assert utils.get_attribute_full_name(expression("a.b.c")) == "a.b.c"
    assert (utils.index_in_list([1, 2], 2), utils.index_in_list([1, 2], 5)) == (1, -1)
    assert utils.to_static_api("NoamDecay") == "noam_decay"
    tree = ast.parse("x = a.b + c")
    utils.RenameTransformer(tree).rename("a.b", "d.e")
    utils.RenameTransformer(tree).rename("c", "f")
    assert text(tree) == "x = d.e + f\n"
    for wrong, error in (
        (lambda: text(3), TypeError),
        (lambda: utils.to_static_api("X"), NotImplementedError),
    ):
        with pytest.raises(error):
            wrong()


def test_kinds_of_sums():
    """As Paddle 1.8.5 has them."""
    kinds = (0, 100, 101, 102, 103, 104, 105, 106, 200, 304)
    rows = {
        101: [101, 0, 101, 102, 103, 0, 105, 106, 0, 0],
        103: [103, 0, 103, 103, 103, 0, 105, 106, 0, 0],
        105: [105, 0, 105, 105, 105, 0, 105, 0, 0, 0],
        200: [200, 0, 0, 0, 0, 0, 0, 0, 200, 0],
        304: [304, 0, 0, 0, 0, 0, 0, 0, 0, 304],
    }
    for left, wanted in rows.items():
        assert [Kinds.binary_op_output_type(left, right) for right in kinds] == wanted


SOURCE = """
def f(x):
    a = 1
    b = a + 2.5
    c = fluid.layers.fc(x, 3)
    d = c + a
    h = [1]
    i = a < c
    k = -a
    o = fluid.dygraph.Linear(2, 3)
    p = o(x)
    q = a and b
    r = None
    s = 's'
    t = x
"""


def test_kinds_of_variables():
    tree = ast.parse(SOURCE)
    visitor = static_analysis.StaticAnalysisVisitor(tree)
    nodes = visitor.get_node_to_wrapper_map()
    found = {line.targets[0].id: nodes[line.targets[0]].node_var_type for line in tree.body[0].body}
    wanted = {"a": 102, "b": 103, "c": 304, "d": 0, "h": 1, "i": 101, "k": 102, "o": 304, "p": 304}
    wanted |= {"q": 101, "r": 100, "s": 104, "t": 0}
    assert found == {name: {kind} for name, kind in wanted.items()}
    assert visitor.get_var_env().get_scope_var_type() == {"f": {0}}
    assert visitor.get_node_wrapper_root().children[0].node is tree.body[0]
    env = static_analysis.AstVarEnv()
    env.set_var_type("a", Kinds.INT)
    env.enter_scope("g", static_analysis.AstVarScope.SCOPE_TYPE_FUNCTION)
    env.add_var_type("b", {Kinds.FLOAT, Kinds.INT})
    assert env.get_var_type("a") == {Kinds.INT} and env.get_var_type("c") == {Kinds.UNKNOWN}
    assert env.get_parent_scope().sub_scopes == [env.cur_scope]
    env.exit_scope()
    with pytest.raises(AssertionError):
        env.exit_scope()


def test_functions_of_modules(programs):
    assert fluid_modules.is_builtin(len) and not fluid_modules.is_builtin(test_kinds_of_sums)
    assert fluid_modules.is_paddle_func(fluid.layers.fc) and not fluid_modules.is_paddle_func(np.ones)
    made = [fluid_modules.to_static_variable(value) for value in (True, 3, 2.5)]
    kinds = fluid.core.VarDesc.VarType
    assert [(var.shape, var.dtype) for var in made] == [
        ((1,), kinds.BOOL),
        ((1,), kinds.INT64),
        ((1,), kinds.FP64),
    ]
    assert fluid_modules.to_static_variable("s") == "s"
    var = fluid_modules.data_layer_not_check("z", [None, 3])
    assert (var.name, var.shape, var.stop_gradient) == ("z", (-1, 3), True)
    text = utils.ast_to_source_code
    wanted = "a = fluid.layers.fill_constant(shape=[1], dtype='float64', value=1.5)\n"
    assert text(fluid_modules.create_fill_constant_node("a", 1.5)) == wanted
    assert fluid_modules.create_fill_constant_node("a", "s") is None
    assert "data_layer_not_check(name='a'" in text(fluid_modules.create_static_variable_gast_node("a"))
    assert text(fluid_modules.to_static_variable_gast_node("a")).endswith("to_static_variable(a)\n")


def test_layers_of_programs_only(programs):
    rows = fluid.data("rows", [None, 3], lod_level=1)
    conv, row = fluid.dygraph.nn.SequenceConv("sc", 4), fluid.dygraph.nn.RowConv("rc", 2, act="relu")
    outs = [conv(rows), row(rows)]
    assert [out.shape for out in outs] == [(-1, 4), (-1, 3)]
    found = {param.name: param.shape for param in fluid.default_main_program().all_parameters()}
    assert found == {"sc_0.w_0": (9, 4), "sc_0.b_0": (4,), "rc_0.w_0": (3, 3)}
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    data = fluid.create_lod_tensor(np.ones((3, 3), "float32"), [[1, 2]], fluid.CPUPlace())
    got = exe.run(feed={"rows": data}, fetch_list=outs, return_numpy=False)
    assert [one.lod() for one in got] == [[[0, 1, 3]]] * 2
    with fluid.dygraph.guard(), pytest.raises(AssertionError, match="not supported by dynamic graph"):
        fluid.dygraph.nn.RowConv("rc", 2)


def test_helpers_of_jit(programs):
    fluid.layers.fc(fluid.data("x", [None, 3]), 2)
    program = jit.create_program_from_desc(fluid.default_main_program().desc)
    assert program.to_string(True) == fluid.default_main_program().to_string(True)
    with fluid.dygraph.guard():
        tensor = fluid.dygraph.to_variable(np.ones(2, "float32"))
        assert [
            len(jit.extract_vars(given)) for given in (tensor, [tensor], (tensor, 3), {"b": [tensor]})
        ] == [1, 1, 1, 0]


def test_batches_of_tensors(programs):
    given = [fluid.data("a", [None, 2]), fluid.data("b", [None, 1], "int64")]

    def samples():
        return ((np.full([2], k, "float32"), [k]) for k in range(5))

    for drop_last, sizes in ((False, [2, 2, 1]), (True, [2, 2])):
        provider = fluid.data_feeder.BatchedTensorProvider(given, fluid.CPUPlace(), 2, samples, drop_last)
        batches = [[np.array(tensor) for tensor in batch] for batch in provider()]
        assert [len(one) for one, _ in batches] == sizes and batches[1][1].tolist() == [[2], [3]]
    with pytest.raises(AssertionError, match="3 fields"):
        next(fluid.data_feeder.BatchedTensorProvider(given, None, 2, lambda: [(1, 2, 3)], False)())


def test_conditions_and_shapes_as_trees():
    """What Paddle 1.8.5 makes of the same texts."""
    candidates = ["a < b", "a and b", "not a", "-x", "x", "x.y", "f(x)", "a + b", "a if b else c"]
    assert [utils.is_candidate_node(expression(text)) for text in candidates] == [True] * 4 + [False] * 5
    shapes = {
        "x.shape": "fluid.layers.shape(x)",
        "a.b.shape[0]": "fluid.layers.shape(a.b)[0]",
        "f(x).shape[1:]": "fluid.layers.shape(f(x))[1:]",
    }
    for text, made in shapes.items():
        assert ast.unparse(utils.create_api_shape_node(expression(text))) == made
    with pytest.raises(AssertionError, match=r"such as x\.shape, got x"):
        utils.create_api_shape_node(expression("x"))
    assigned = {
        "to_variable(x)": "fluid.layers.assign(x)",
        "fluid.dygraph.to_variable(value=x, name='y')": "fluid.layers.assign(input=x)",
        "to_variable(x + 1)": "fluid.layers.assign(x + 1)",
    }
    for text, made in assigned.items():
        assert ast.unparse(utils.to_assign_node(expression(text))) == made
    with pytest.raises(AssertionError, match="got f"):
        utils.to_assign_node(expression("f(x)"))


def test_calls_of_layers_as_trees():
    one, other = ast.parse("def yes(x, y): pass\ndef no(x): pass").body
    test = expression("p > 3")

    def is_made(node, text):
        return ast.dump(ast.parse(ast.unparse(ast.fix_missing_locations(node)))) == ast.dump(ast.parse(text))

    called = "fluid.layers.cond(p > 3, lambda: yes(x, y), lambda: no(x))"
    for names, text in (([], called), (["a"], f"a = {called}"), (["a", "b"], f"a, b = {called}")):
        assert is_made(ifelse_transformer.create_cond_node(names, test, one, other), text)
    node = ifelse_transformer.create_cond_node(["a"], test, expression("x + 1"), expression("y"), True)
    assert is_made(node, "a = fluid.layers.cond(p > 3, lambda: x + 1, lambda: y)")
    for names, text in ((["i", "a.b"], "i, a.b"), (["i"], "i,"), ([], "()")):
        loop = loop_transformer.create_while_node("test", "body", names)
        assert is_made(loop, f"{text} = fluid.layers.while_loop(test, body, [{', '.join(names)}])")


def _steps(x):
    """A function of a tensor."""
    total = x
    while total < 20:
        total = total + x if total > 5 else total * 2
    return total


def test_rewritten_trees_build_programs():
    transformer = fluid_modules.DygraphToStaticAst()
    tree = ast.parse(inspect.getsource(_steps))
    wrapper = transformer.get_static_ast(tree)
    assert wrapper.node is tree and transformer.get_module_name() == "_steps"
    assert transformer.get_feed_name_to_idx() == {}
    function, _ = utils.ast_to_func(wrapper.node, _steps)
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        out = function(fluid.data("x", [1]))
    exe = fluid.Executor(fluid.CPUPlace())
    for start in (1.0, 3.0, 7.0):
        (found,) = exe.run(main, feed={"x": np.array([start], "float32")}, fetch_list=[out])
        assert found == [_steps(start)]
    with pytest.raises(ValueError, match="holds no function"):
        transformer.get_static_ast(ast.parse("x = 1"))
    with pytest.raises(ValueError, match="g is not rewritten: it is a generator"):
        transformer.get_static_ast(ast.parse("def g(): yield 1"))


def test_functions_are_kept():
    cache = program_translator.FunctionCache()
    made = cache.get_or_cache_func(_steps)
    assert cache.exist(_steps) and not cache.exist(made) and cache.get_or_cache_func(_steps) is made
    held = []

    @program_translator.synchronized
    def alone():
        held.append(1)
        time.sleep(0.001)
        assert len(held) == 1
        held.pop()

    threads = [threading.Thread(target=alone) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert held == []
