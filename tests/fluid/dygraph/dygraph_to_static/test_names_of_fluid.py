"""Names of `fluid.dygraph.dygraph_to_static` and `fluid.dygraph.jit` that scripts can import."""

import ast
import inspect

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.errors import NotSupportedError
from fluidlite.dygraph import dygraph_to_static, jit
from fluidlite.dygraph.dygraph_to_static import ast_transformer


def test_steps_of_the_translation_of_fluid_refuse_to_run():
    from fluidlite.dygraph.dygraph_to_static import LoopTransformer, NodeVarType, program_translator, utils

    assert program_translator.ProgramTranslator is fluid.dygraph.ProgramTranslator
    assert utils.ast_to_func is ast_transformer.ast_to_func
    assert dygraph_to_static.loop_transformer.LoopTransformer is LoopTransformer

    class Derived(LoopTransformer):
        pass

    for use in (LoopTransformer, Derived, utils.is_paddle_api, lambda: NodeVarType.TENSOR):
        with pytest.raises(NotSupportedError, match=r"use fluid\.dygraph\.declarative.*get_code"):
            use()


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


def _steps(x):
    """A function of a tensor."""
    total = x
    while total < 20:
        total = total + x if total > 5 else total * 2
    return total


def test_rewritten_trees_build_programs():
    transformer = ast_transformer.DygraphToStaticAst()
    tree = ast.parse(inspect.getsource(_steps))
    wrapper = transformer.get_static_ast(tree)
    assert wrapper.node is tree and transformer.get_module_name() == "_steps"
    assert transformer.get_feed_name_to_idx() == {}
    function, _ = ast_transformer.ast_to_func(wrapper.node, _steps)
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
