"""ONNX models as programs: what we exported comes back, and models made node by node compute what their nodes say."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import fluidlite as fluid
from fluidlite.base.errors import FormatError, NotSupportedError
from fluidlite.onnx import export, load
from tests.onnx.cases import CASES
from tests.onnx.test_export import PLACE, batch, built

from ..refusals import refuses

pytestmark = pytest.mark.usefixtures("alone")

BACK = [name for name, (feeds, _) in CASES.items() if not any(level for *_, level in feeds)]


@pytest.mark.parametrize("name", [name for name in BACK if name != "detector"])
def test_what_was_exported_comes_back(name, tmp_path):
    program, feeds, fetches, exe = built(name)
    path = tmp_path / "model.onnx"
    export(program, [feed[0] for feed in feeds], fetches, path)
    random = np.random.default_rng(7)
    batches = [batch(feeds, size, random) for size in (4, 2)]
    wanted = [exe.run(program, feed=given, fetch_list=fetches) for given in batches]
    with fluid.scope_guard(fluid.Scope()):
        loaded, names, outputs = load(path)
        assert [var.name for var in outputs] == [var.name for var in fetches]
        for given, want in zip(batches, wanted, strict=True):
            got = exe.run(loaded, feed={name: given[name] for name in names}, fetch_list=outputs)
            for found, expected in zip(got, want, strict=True):
                assert found.dtype == expected.dtype and found.shape == expected.shape
                np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


def test_a_detector_comes_back(tmp_path):
    """Its boxes are in sequences here; the model has their lengths beside them, the loaded program as well."""
    program, feeds, fetches, exe = built("detector")
    path = tmp_path / "model.onnx"
    export(program, [feed[0] for feed in feeds], fetches, path)
    given = batch(feeds, 3, np.random.default_rng(7))
    want = exe.run(program, feed=given, fetch_list=fetches, return_numpy=False)
    with fluid.scope_guard(fluid.Scope()):
        loaded, names, outputs = load(path)
        got = exe.run(loaded, feed={name: given[name] for name in names}, fetch_list=outputs)
    want = [
        part for one in want for part in (np.array(one), *map(np.array, one.recursive_sequence_lengths()))
    ]
    assert len(got) == len(want)
    for found, expected in zip(got, want, strict=True):
        np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


def saved(
    path, nodes, shape, constants=(), kind=TensorProto.FLOAT, outputs=("y",), opset=17, more=(), functions=()
):
    """`more`: names, types and shapes of inputs beside `x`."""
    inputs = [helper.make_tensor_value_info(*info) for info in (("x", kind, shape), *more)]
    made = [onnx.ValueInfoProto(name=name) for name in outputs]
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in dict(constants).items()]
    graph = helper.make_graph(nodes, "made", inputs, made, held)
    imports = [helper.make_opsetid("", opset), *[helper.make_opsetid("own", 1)] * bool(functions)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8, functions=functions)
    path.write_bytes(onnx.shape_inference.infer_shapes(model, data_prop=True).SerializeToString())
    return path


def compared(path, batches):
    """Run a model here and by onnxruntime. A batch is an array for the only feed, or all feeds."""
    program, feeds, fetches = load(path)
    exe, running = (
        fluid.Executor(PLACE),
        onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]),
    )
    for each in batches:
        given = each if isinstance(each, dict) else dict.fromkeys(feeds, each)
        got = exe.run(program, feed=given, fetch_list=fetches)
        for found, want in zip(got, running.run(None, given), strict=True):
            assert found.shape == (want.shape or (1,)) and found.dtype == want.dtype
            np.testing.assert_allclose(found, want, 1e-4, 1e-5)


def node(kind, inputs, outputs="y", **attrs):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attrs)


RANDOM = np.random.default_rng(5)
ROWS = [RANDOM.uniform(-1, 1, (n, 6)).astype("float32") for n in (3, 5)]
F = {
    name: RANDOM.uniform(0.5, 1, shape).astype("float32")
    for name, shape in (("w", (6, 4)), ("b", (4,)), ("s", (6,)))
}


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Gemm", "x w b", alpha=0.5, beta=2.0)],
        [node("Gemm", "x w", "h"), node("Gemm", "h w", transB=1)],
        [node("Where", "t x s")],
        [node("PRelu", "x s")],
        [node("LayerNormalization", "x s s")],
        [node("Shape", "x", "n"), node("Gather", "n zero", "k"), node("Unsqueeze", "k axes", "l"),
         node("Concat", "l two three", "m", axis=0), node("Reshape", "x m")],
        [node("Shape", "x", "n"), node("Expand", "s n", "e"), node("Sub", "e x")],
        [node("ReduceMean", "x", keepdims=0)],
        [node("Gather", "x zero", axis=1)],
        [node("Gather", "x order", axis=1)],
        [node("Clip", "x", "h"), node("Clip", "h low")],
        [node("Split", "x", "h y", axis=1)],
        [node("Sum", "x s x")],
        [node("Neg", "x", "h"), node("LogSoftmax", "h")],
    ],
)  # fmt: skip
def test_nodes_compute_what_onnxruntime_does(nodes, tmp_path):
    constants = {
        **F, "zero": np.int64(0), "axes": np.array([0]), "two": np.array([2]), "three": np.array([3]),
        "order": np.array([4, 0, 2]), "low": np.float32(0.25), "t": np.array([[True, False, True, True, False, False]]),
    }  # fmt: skip
    read = {name for each in nodes for name in each.input}
    kept = {name: array for name, array in constants.items() if name in read}
    compared(saved(tmp_path / "model.onnx", nodes, ["n", 6], kept), ROWS)


def test_parameters_of_a_loaded_model_can_be_trained(tmp_path):
    path = saved(tmp_path / "model.onnx", [node("Gemm", "x w b")], ["n", 6], {"w": F["w"], "b": F["b"]})
    program, _, (out,) = load(path)
    assert [parameter.name for parameter in program.all_parameters()] == ["w", "b"]
    startup = fluid.Program()
    with fluid.program_guard(program, startup):
        loss = fluid.layers.mean(fluid.layers.square(out))
        fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(PLACE)
    exe.run(startup)
    losses = [exe.run(program, feed={"x": ROWS[0]}, fetch_list=[loss])[0].item() for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.8 * losses[0]


def test_files_that_are_no_models_are_errors(tmp_path):
    path = saved(tmp_path / "model.onnx", [node("Relu", "x")], ["n", 6])
    data = path.read_bytes()
    for number in range(0, len(data), 3):
        path.write_bytes(data[:number])
        refuses(lambda: load(path), (FormatError, NotSupportedError))
    path.write_bytes(b"\xff" * 50)
    refuses(lambda: load(path), FormatError, "model.onnx is not an ONNX model")
    refuses(lambda: load(tmp_path / "nothing.onnx"), FileNotFoundError)


def test_constants_that_would_be_huge_are_not_computed_while_loading(tmp_path):
    nodes = [node("ConstantOfShape", "much", "h"), node("Add", "x h")]
    path = saved(tmp_path / "model.onnx", nodes, ["n", 6], {"much": np.array([1 << 40, 6])})
    program = load(path)[0]
    assert [op.type for op in program.global_block().ops] == ["fill_constant", "elementwise_add", "assign"]


def test_other_opsets_are_refused(tmp_path):
    for opset in (6, 27):
        path = saved(tmp_path / "model.onnx", [node("Softmax", "x")], ["n", 6], opset=opset)
        with pytest.raises(NotSupportedError, match=f"opset {opset}: those from 7 to 26"):
            load(path)


def test_nodes_without_counterpart_are_all_named(tmp_path):
    nodes = [
        node("Multinomial", "x", "h"),
        node(
            "TfIdfVectorizer",
            "h",
            mode="TF",
            min_gram_length=1,
            max_gram_length=1,
            max_skip_count=0,
            ngram_counts=[0],
            ngram_indexes=[0],
            pool_int64s=[1],
        ),
    ]
    path = saved(tmp_path / "model.onnx", nodes, ["n", 6, 6])
    refuses(lambda: load(path), NotSupportedError, "Multinomial, TfIdfVectorizer")
    assert onnx.load(path).graph.node[0].op_type == "Multinomial"
