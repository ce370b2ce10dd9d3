"""Small names of fluid.framework, executor, layers and their like; answers are those of Paddle 1.8.5."""

import inspect
import logging

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import backward, core, dygraph_utils, executor, framework, install_check, layers, log_helper
from fluidlite.annotations import deprecated
from fluidlite.layer_helper import LayerHelper
from fluidlite.layer_helper_base import LayerHelperBase
from fluidlite.layers import layer_function_generator as generator

from .refusals import refuses

CPU = fluid.CPUPlace()


def test_protos_of_operators():
    holder = framework.OpProtoHolder.instance()
    assert holder is framework.OpProtoHolder.instance()
    proto = holder.get_op_proto("mul")
    assert [(slot.name, slot.duplicable, slot.dispensable) for slot in proto.inputs] == [
        ("X", False, False),
        ("Y", False, False),
    ]
    assert [slot.name for slot in proto.outputs] == ["Out"]
    types = {attr.name: attr.type for attr in proto.attrs}
    assert types["x_num_col_dims"] == 0 and types["op_role_var"] == 5 and types["op_namescope"] == 2
    refuses(lambda: holder.get_op_proto("nope"), ValueError, "nope")
    assert holder.generated_op_attr_names() == {
        "op_callstack",
        "op_namescope",
        "op_role",
        "op_role_var",
        "op_device",
    }
    assert {"mul", "relu"} < {proto.type for proto in framework.get_all_op_protos()}


def test_devices_are_noted(programs):
    with fluid.device_guard("gpu"):
        inside = layers.fill_constant([1], "float32", 1.0)
    outside = layers.fill_constant([1], "float32", 1.0)
    assert inside.op.attr("op_device") == "gpu" and outside.op.attr("op_device") == ""
    read = fluid.Program.parse_from_string(programs[0].desc.serialize_to_string())
    assert read.global_block().ops[0].attr("op_device") == "gpu"
    with pytest.raises(ValueError, match="xpu"), fluid.device_guard("xpu"):
        pass
    assert framework.switch_device("cpu") is None and framework.switch_device(None) == "cpu"


def test_scopes_of_names(programs):
    assert framework._full_name_scope() == "/"
    with fluid.name_scope("seen once"):
        for inner in ("b", "b_1"):
            with fluid.name_scope("b"):
                assert framework._full_name_scope() == f"/seen once/{inner}/"
                assert (
                    layers.fill_constant([1], "float32", 1.0).op.attr("op_namescope")
                    == f"/seen once/{inner}/"
                )
    with fluid.name_scope("seen once"):
        assert framework._full_name_scope() == "/seen once_1/"
    with pytest.raises(AssertionError, match="can not be empty"), fluid.name_scope():
        pass
    with fluid.dygraph.guard(), fluid.name_scope("a"):
        assert framework._full_name_scope() == "/"
    scope = framework.NameScope()
    assert [scope.child("a").name(), scope.child("a").name()] == ["a", "a_1"]
    assert scope.child("b").parent() is scope and scope.parent() is None


def test_questions_of_the_framework(programs):
    x = layers.fill_constant([1], "float32", 1.0)
    assert framework._get_var(x.name) is x
    refuses(lambda: framework._get_var("zz"), ValueError, "zz")
    assert framework.dtype_is_floating("float32") and not framework.dtype_is_floating(
        core.VarDesc.VarType.INT64
    )
    assert framework.generate_control_dev_var_name().startswith(framework.CONTROL_DEP_VAR_PREFIX + "@")
    assert (framework.GRAD_VAR_SUFFIX, framework.EMPTY_VAR_NAME) == ("@GRAD", "@EMPTY@")


def test_questions_of_the_executor(programs):
    assert executor.dimension_is_compatible_with([2, 3], [-1, 3])
    assert not executor.dimension_is_compatible_with([2], [2, 3])
    assert executor.dtype_is_compatible_with("float32", core.VarDesc.VarType.FP32)
    x = layers.fill_constant([1], "float32", 1.0)
    assert (executor._to_name_str(x), executor._to_name_str("a"), executor._to_name_str([x])) == (
        x.name,
        "a",
        x.name,
    )
    refuses(lambda: executor._to_name_str(3), TypeError, "3 should be")
    scope = fluid.Scope()
    scope.var("v").get_tensor().set(np.ones(2, "float32"), CPU)
    assert executor._fetch_var("v", scope).tolist() == [1, 1]
    refuses(lambda: executor._fetch_var("nope", scope), AssertionError, "Cannot find nope in scope")
    before = executor._switch_scope(scope)
    assert fluid.global_scope() is scope and executor._switch_scope(before) is scope
    assert fluid.CompiledProgram(programs[0])._compile(scope, CPU) is not None


def test_tensors_as_arrays():
    tensor = fluid.create_lod_tensor(np.ones((2, 1)), [[2]], CPU)
    refuses(lambda: executor.as_numpy(tensor), RuntimeError, "return_numpy")
    tensor.set_lod([])
    assert executor.as_numpy([tensor])[0].tolist() == [[1], [1]]
    refuses(lambda: executor.as_numpy(np.ones(2)), AssertionError)


def test_the_counter_of_schedules(programs):
    step = layers.learning_rate_scheduler._decay_step_counter()
    repeated = layers._decay_step_counter(1)
    assert (step.shape, step.dtype) == ((1,), core.VarDesc.VarType.FP32)
    assert [op.type for op in step.block.ops] == ["increment", "cast", "cast"]
    exe = fluid.Executor(CPU)
    exe.run(programs[1])
    assert [exe.run(fetch_list=[repeated])[0].tolist() for _ in range(2)] == [[0.0], [1.0]]


def test_places_of_old_programs(programs, capsys):
    places = layers.device.get_places(2, "CPU")
    assert (places.name, places.type) == ("get_places_0.out_0", core.VarDesc.VarType.PLACE_LIST)
    assert "get_places is deprecated since 0.15.0" in capsys.readouterr().err
    assert programs[0].global_block().ops[-1].type == "get_places"
    one = layers.fill_constant([1], "float32", 2.0)
    assert fluid.Executor(CPU).run(fetch_list=[one])[0].tolist() == [2]


def test_layers_made_from_operators(programs):
    x = fluid.data("x", [2, 2], "float32")
    relu, mul, scale = (
        generator.generate_activation_fn("relu"),
        generator.generate_layer_fn("mul"),
        generator.generate_layer_fn("scale"),
    )
    assert (relu.__name__, mul.__name__) == ("relu", "mul") and "product" in mul.__doc__
    results = [relu(x), mul(x=x, y=x), mul(x, x), scale(x=x, scale=3.0, act="relu")]
    assert [result.op.type for result in results] == ["relu", "mul", "mul", "relu"]
    out = x.block.create_var(name="mine", dtype="float32")
    assert scale(x=x, scale=2.0, out=out) is out
    given = np.array([[1, -2], [3, 4]], "float32")
    values = fluid.Executor(CPU).run(feed={"x": given}, fetch_list=[*results, out])
    assert values[0].tolist() == [[1, 0], [3, 4]] and values[4].tolist() == (2 * given).tolist()
    assert values[1].tolist() == values[2].tolist() == (given @ given).tolist()
    assert values[3].tolist() == [[3, 0], [9, 12]]
    for op_type in ("nope", "top_k"):
        with pytest.raises(ValueError, match=op_type):
            generator.generate_layer_fn(op_type)
    refuses(mul, IndexError)


def test_documentation_of_operators():
    @generator.templatedoc("mul")
    def product(x):
        """${comment} Takes ${x_comment}."""

    @generator.autodoc(" Seen.")
    def relu(x):
        pass

    @generator.deprecated
    def old(x):
        return x

    assert "product" in product.__doc__ and product.__doc__.endswith("Takes x.")
    assert relu.__doc__.endswith("Seen.")
    with pytest.warns(DeprecationWarning, match="old"):
        assert old(3) == 3


def test_deprecated_functions_say_so(capsys):
    @deprecated(since="1.2", instead="new", extra_message="Soon.")
    def old(x):
        return x

    assert old(3) == 3 and list(inspect.signature(old).parameters) == ["x"]
    assert capsys.readouterr().err == "API old is deprecated since 1.2. Please use new instead.\nSoon.\n"


def test_loggers_are_set_up_once():
    one = log_helper.get_logger("fluidlite.tests.once", logging.INFO, fmt="%(message)s")
    assert log_helper.get_logger("fluidlite.tests.once", logging.INFO) is one
    assert (len(one.handlers), one.level, one.propagate) == (1, logging.INFO, False)


def test_the_installation_is_checked(capsys):
    names = fluid.default_main_program().global_block().vars.copy()
    install_check.run_check()
    assert "works" in capsys.readouterr().out
    assert fluid.default_main_program().global_block().vars == names and not fluid.in_dygraph_mode()


def test_the_base_of_layer_helpers(programs):
    base = LayerHelperBase("mine", "fc")
    assert (base.name, base.layer_type) == ("mine", "fc") and issubclass(LayerHelper, LayerHelperBase)
    assert base.create_parameter(fluid.ParamAttr(), [2, 3], "float32").name == "mine.w_0"
    x = fluid.data("x", [2])
    assert base.to_variable(x) is x and base.to_variable(np.ones(2, "float32")).numpy().tolist() == [1, 1]
    refuses(lambda: base.to_variable([1]), TypeError, "list")


def test_inputs_with_their_parameters(programs):
    x, y = fluid.data("x", [2, 3], "float32"), fluid.data("y", [2, 4], "float32")
    helper = LayerHelper("fc", input=[x, y], param_attr=fluid.ParamAttr(learning_rate=0.5))
    pairs = list(helper.iter_inputs_and_params())
    assert [var.name for var, _ in pairs] == ["x", "y"] and {attr.learning_rate for _, attr in pairs} == {0.5}


def test_names_of_gradients(programs):
    x = fluid.data("x", [2])
    assert [backward._strip_grad_suffix_(name) for name in ("a@GRAD", "a", "a@GRAD@RENAME@block0@1")] == [
        "a"
    ] * 3
    assert backward._append_grad_suffix_("a") == "a@GRAD" and backward._is_grad_var_("a@GRAD")
    assert (
        backward._get_no_grad_set_name([x, "y"]) == {"x", "y"}
        and backward._get_no_grad_set_name(None) == set()
    )
    for wrong in ("x", {3}):
        with pytest.raises(TypeError, match="no_grad_set"):
            backward._get_no_grad_set_name(wrong)
    assert (backward._as_list(None), backward._as_list((1,)), backward._as_list(3)) == ([], [1], [3])
    assert backward._some_in_set_(["a", "b"], {"a"}) and not backward._all_in_set_(["a", "b"], {"a"})
    assert not backward._all_in_set_([], {"a"})


def test_parts_of_programs(programs):
    main = programs[0]
    x = fluid.data("x", [2, 2], "float32")
    hidden = layers.fc(x, 2)
    loss = layers.mean(layers.dropout(hidden, 0.5))

    def types(program):
        return [op.type for op in program.global_block().ops]

    assert types(main._prune_with_input([hidden.name], [loss])) == ["dropout", "mean"]
    assert types(main._prune(hidden)) == types(main._prune([hidden.name])) == ["mul", "elementwise_add"]
    assert types(main._prune([main.global_block().ops[0]])) == ["mul"]
    for wrong in (lambda: main._prune(None), lambda: main._prune_with_input([hidden], [loss])):
        with pytest.raises(ValueError, match="names"):
            wrong()
    test = main._inference_optimize()
    assert test.global_block().ops[2].attr("is_test") and not main.global_block().ops[2].attr("is_test")
    assert main._op_role_var == [] and main._copy_dist_param_info_from(test) is None


def test_values_of_samples_become_a_tensor():
    converter = fluid.data_feeder.DataToLoDTensorConverter(CPU, 1, [-1, 1], "int64")
    converter.feed([1, 2, 3])
    converter.feed([4])
    tensor = converter.done()
    assert np.array(tensor).tolist() == [[1], [2], [3], [4]] and tensor.lod() == [[0, 3, 4]]
    refuses(converter.done, ValueError, "nothing")
    converter = fluid.data_feeder.DataToLoDTensorConverter(CPU, 0, [-1, 2], "float32")
    converter.feed([1, 2])
    assert np.array(converter.done()).tolist() == [[1, 2]]
    converter.feed([1, 2, 3])
    assert np.array(converter.done()).tolist() == [[1, 2, 3]]


def test_bias_and_activation_of_eager_layers():
    with fluid.dygraph.guard():
        x = fluid.dygraph.to_variable(np.array([[1.0, -2.0]], "float32"))
        bias = fluid.dygraph.to_variable(np.ones(2, "float32"))
        assert dygraph_utils._append_activation_in_dygraph(x, "relu").numpy().tolist() == [[1, 0]]
        assert dygraph_utils._append_bias_in_dygraph(x, bias).numpy().tolist() == [[2, -1]]
        assert dygraph_utils._append_activation_in_dygraph(x) is x is dygraph_utils._append_bias_in_dygraph(x)


def test_what_does_nothing_any_more(programs, caplog):
    fluid.memory_optimize(programs[0])
    fluid.release_memory(programs[0])
    assert [record.message.split("()")[0] for record in caplog.records] == [
        "paddle.fluid.memory_optimize",
        "paddle.fluid.release_memory",
    ]
    assert fluid.monkey_patch_variable() is None and layers.math_op_patch.monkey_patch_variable() is None


def test_default_initializers():
    attr = fluid.ParamAttr()
    attr._set_default_param_initializer()
    assert isinstance(attr.initializer, fluid.initializer.XavierInitializer)
    attr._set_default_bias_initializer()
    assert isinstance(attr.initializer, fluid.initializer.XavierInitializer)


@pytest.mark.parametrize(
    "op, name", [("fused_elemwise_activation", "functor_list"), ("py_func", "backward_skip_vars")]
)
def test_lists_of_names_are_declared_as_such_where_they_are_empty(op, name):
    proto = fluid.framework.OpProtoHolder.instance().get_op_proto(op)
    (kind,) = (attr.type for attr in proto.attrs if attr.name == name)
    assert kind == fluid.core.AttrType.STRINGS


@pytest.mark.parametrize("module", ["fluidlite", "fluidlite.fluid.layers", "fluidlite.paddle"])
def test_modules_may_be_imported_by_name_whatever_they_are_asked_for(module):
    """As Python does: names that a module does not have matter to the statement `from`, not to `__import__`."""
    assert __import__(module, fromlist=["x"]).__name__ == module
    refuses(lambda: exec(f"from {module} import zzz"), ImportError, r"has no attribute 'zzz'")
