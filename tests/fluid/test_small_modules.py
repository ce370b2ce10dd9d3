"""`paddle.compat`, `fluid.average`, `fluid.wrapped_decorator`, `fluid.unique_name`, `fluid.core`'s facts and places."""

import inspect
import queue

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import core, unique_name, wrapped_decorator
from fluidlite.base.errors import EnforceNotMet
from fluidlite.paddle import compat

from ..refusals import refuses

VarType = core.VarDesc.VarType


@pytest.mark.parametrize(
    "given, text",
    [
        (b"abc", "abc"), (None, None), ({b"a": b"c"}, {"a": "c"}), ([b"a", 3], ["a", 3]), ({b"q"}, {"q"}),
        ((b"a",), (b"a",)),
    ],
)  # fmt: skip
def test_text(given, text):
    assert compat.to_text(given) == text
    if isinstance(given, (list, set, dict)):
        assert compat.to_text(given, inplace=True) is given and given == text


def test_bytes():
    assert compat.to_bytes(["a", "b"]) == [b"a", b"b"] and compat.to_bytes({"a"}) == {b"a"}
    assert compat.to_bytes(None) is None and compat.to_text(b"\xe9", "latin-1") == "é"
    refuses(lambda: compat.to_bytes(3), AttributeError)


@pytest.mark.parametrize(
    "number, decimals, rounded",
    [
        (0.5, 0, 1.0), (-0.5, 0, -1.0), (2.5, 0, 3.0), (2.675, 2, 2.68), (1250.0, -2, 1300.0), (5, 1, 5.0),
        (np.nan, 0, 0.0),
    ],
)  # fmt: skip
def test_rounding_away_from_zero(number, decimals, rounded):
    assert compat.round(number, decimals) == rounded and isinstance(compat.round(number, decimals), float)


def test_messages_and_division():
    assert compat.get_exception_message(ValueError("what")) == "what" and compat.floor_division(-7, 2) == -4
    refuses(lambda: compat.get_exception_message(None), AssertionError)


def test_average():
    with pytest.warns(Warning, match="deprecated"):
        average = fluid.average.WeightedAverage()
    refuses(average.eval, ValueError, "no data")
    average.add(np.array([2.0, 4.0]), 1)
    average.add(np.array([5.0, 1.0]), np.array([3]))
    assert average.eval().tolist() == [4.25, 1.75]
    average.reset()
    average.add(0.5, 2)
    assert average.eval() == 0.5
    for value, weight in (("a", 1), ([1.0], 1), (1.0, "a"), (np.ones(2), np.ones(2))):
        with pytest.raises(ValueError, match="must be a number"):
            average.add(value, weight)


def test_decorators_keep_signatures():
    @wrapped_decorator.signature_safe_contextmanager
    def held(a, b=2):
        """Doc."""
        yield a + b

    @wrapped_decorator.wrap_decorator(
        lambda function: lambda *args, **kwargs: ("wrapped", function(*args, **kwargs))
    )
    def add(x, y=1):
        """Doc."""
        return x + y

    with held(1) as total:
        assert total == 3
    assert add(1, y=3) == ("wrapped", 4)
    assert str(inspect.signature(held)) == "(a, b=2)" and str(inspect.signature(add)) == "(x, y=1)"
    assert add.__name__ == "add" and held.__doc__ == add.__doc__ == "Doc."


def test_names_are_switched_and_put_back():
    with unique_name.guard():
        assert unique_name.generate("k") == "k_0"
        old = unique_name.switch()
        assert [type(part).__name__ for part in old] == ["UniqueNameGenerator", "DygraphParameterNameChecker"]
        assert unique_name.generate("k") == "k_0" and unique_name.generator is not old[0]
        unique_name.switch(*old)
        assert unique_name.generator is old[0] and unique_name.dygraph_parameter_name_checker is old[1]
        assert unique_name.generate_with_ignorable_key("k") == "k_1"
        unique_name.switch(unique_name.UniqueNameGenerator("p_"))
        assert unique_name.generate("k") == "p_k_0"
        with fluid.dygraph.guard():
            assert unique_name.generate_with_ignorable_key("k").startswith("tmp_")


def test_a_checker_stores_its_arguments():
    taken = unique_name.DygraphParameterNameChecker()
    assert [taken("a"), taken("a"), taken("b")] == [False, True, False]


def test_facts_of_the_native_module():
    assert [core.size_of_dtype(t) for t in (VarType.FP32, VarType.INT64, VarType.BOOL, VarType.FP16)] == [
        4,
        8,
        1,
        2,
    ]
    refuses(lambda: core.size_of_dtype(VarType.READER), EnforceNotMet)
    assert (core.grad_var_suffix(), core.kEmptyVarName(), core.kTempVarName()) == (
        "@GRAD",
        "@EMPTY@",
        "@TEMP@",
    )
    roles = core.op_proto_and_checker_maker
    assert roles.kOpRoleVarAttrName() == "op_role_var" and str(roles.OpRole.Loss) == "OpRole.Loss"
    assert roles.OpRole.Backward | roles.OpRole.Loss == 257
    assert (
        core.has_grad_op_maker("relu")
        and core.has_infer_inplace("relu")
        and not core.has_infer_inplace("mul")
    )
    refuses(lambda: core.has_grad_op_maker("nope"), EnforceNotMet, "nope")
    assert (
        core.get_op_attrs_default_value(b"mul")["x_num_col_dims"] == 1
        and core.get_op_attrs_default_value("no") == {}
    )
    assert not core.has_grad_op_maker("addmm_grad")
    kernels = core._get_all_register_op_kernels()
    assert len(kernels["relu"]) == 2 and "softmax_grad" in kernels and "while" not in kernels
    assert core.less_than_ver("2.9", "2.23") and core._set_eager_deletion_mode(0.0, 1.0, True) is None
    scope = core.Scope()
    assert core.get_variable_tensor(scope, scope.var("a").name) is scope.var("a").get_tensor()
    refuses(lambda: core.get_variable_tensor(scope, "b"), EnforceNotMet, "'b'")


def test_places_stand_for_others():
    cpu, place = core.CPUPlace(), core.Place()
    assert cpu._type() == 1 and place._type() == 0 and cpu._equals(core.CPUPlace()) and not cpu._equals(place)
    place.set_place(cpu)
    assert place.is_cpu_place() and not place.is_gpu_place() and not place.is_cuda_pinned_place()
    assert place._equals(cpu) and cpu._equals(place) and hash(place) == hash(cpu) and str(place) == "CPUPlace"
    refuses(place.gpu_device_id, RuntimeError)
    refuses(lambda: cpu._equals(3), TypeError)
    place.set_place(core.CUDAPlace(1))
    assert place.gpu_device_id() == 1 and place == core.CUDAPlace(1) != core.CUDAPlace(0)


def test_a_program_runs_at_a_place_that_stands_for_another(programs):
    place = core.Place()
    place.set_place(core.CPUPlace())
    out = fluid.layers.fill_constant([2], "float32", 3.0)
    assert fluid.Executor(place).run(fetch_list=[out])[0].tolist() == [3, 3]


def test_private_functions_that_scripts_use(programs, caplog):
    """Their results are those of Paddle 1.8.5."""
    place, lengths = fluid.CPUPlace(), fluid.create_lod_tensor(np.ones((3, 1)), [[1, 2]], fluid.CPUPlace())
    as_tensor = fluid.executor._as_lodtensor
    for given, dtype, made in (
        (np.ones((2, 2)), "float32", ("float64", [2, 2])),  # an array keeps its type
        (3, VarType.FP32, ("float32", [1])),
        (3.5, "int64", ("int64", [1])),
        ((1, 2), VarType.INT64, ("int64", [2])),
        (lengths, None, ("float64", [3, 1])),
    ):
        tensor = as_tensor(given, place, dtype)
        assert (str(np.array(tensor).dtype), tensor.shape()) == made and tensor.lod() == []
    for given, dtype, error in (
        (3, None, AssertionError),
        ([1, 2], "int64", RuntimeError),
        ("abc", "float32", ValueError),
        (None, None, EnforceNotMet),
        (np.array([None]), "float32", EnforceNotMet),
    ):
        with pytest.raises(error):
            as_tensor(given, place, dtype)

    check = fluid.reader.GeneratorLoader._check_input_array
    assert check([1, 2]).dtype == np.int64 and check(lengths).shape == (3, 1)
    for given in ([[1], [1, 2]], np.array([None]), None):
        with pytest.raises(TypeError, match="an item of a batch holds numbers"):
            check(given)

    waiting = queue.Queue()
    waiting.put(1)
    waiting.close = lambda: waiting.put("closed")
    fluid.reader.multiprocess_queue_set.add(waiting)
    fluid.reader._cleanup()
    assert not fluid.reader.multiprocess_queue_set and waiting.get_nowait() == "closed"

    out = fluid.layers.ops._scale(fluid.data("x", [2, 3]), scale=3.0)
    assert (out.name, out.shape, out.op.attr("scale"), out.op.attr("bias_after_scale")) == (
        "scale_0.tmp_0", (2, 3), 3.0, True,
    )  # fmt: skip

    assert fluid.dygraph.base._print_debug_msg([], is_test=True) is None
    assert "Debug mode is not enabled" in caplog.text
