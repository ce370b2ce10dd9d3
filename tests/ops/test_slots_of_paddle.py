"""Gradient operators as programs of Paddle have them, with other inputs than those that fluidlite writes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fluidlite as fluid
from fluidlite.proto import framework_pb2

from .harness import run_kernel

layers = fluid.layers
RNG = np.random.default_rng(3)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("scaled", [True, False])
def test_group_norm_grad_takes_the_result_in_place_of_what_was_normalised(layout, scaled):
    x = RNG.standard_normal((2, 4, 3, 4))
    d_y = RNG.standard_normal(x.shape)
    more = {"Scale": RNG.uniform(1, 2, 4), "Bias": RNG.standard_normal(4)} if scaled else {}
    attrs = {"epsilon": 1e-3, "groups": 2, "data_layout": layout}
    made = run_kernel("group_norm", {"X": x, **more}, attrs)
    y, mean, variance = (made[slot][0] for slot in ("Y", "Mean", "Variance"))
    given = {**more, "Variance": variance, "Y@GRAD": d_y}
    ours = run_kernel("group_norm_grad", {"X": x, "Mean": mean, **given}, attrs)
    theirs = run_kernel("group_norm_grad", {"Y": y, **given}, attrs)
    for slot, arrays in ours.items():
        for one, other in zip(arrays, theirs[slot], strict=True):
            assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def _gradient(message, x):
    program = fluid.Program.parse_from_string(message.SerializeToString())
    return fluid.Executor().run(program, feed={"x": x}, fetch_list=["x@GRAD"])[0]


@pytest.mark.parametrize(
    ("build", "kind", "slot"),
    [
        (lambda x: layers.multiplex([x, x * 2], layers.assign(np.array([[1], [0]], "int32"))), "multiplex",
         "X"),
        (lambda x: layers.tril(x, 1), "tril_triu", None),
        (lambda x: layers.crop_tensor(x, [1, 2, -1, 2], [1, 0, 0, 0]), "crop_tensor", None),
        (lambda x: layers.crop(x, layers.ones([1, 2, 2, 1], "float32"), [1, 0, 0, 1]), "crop", None),
        (lambda x: layers.resize_bilinear(x, layers.assign(np.array([3, 5], "int32"))), "bilinear_interp",
         None),
    ],
    ids=["multiplex", "tril", "crop_tensor", "crop", "resize"],
)  # fmt: skip
def test_gradients_work_without_what_paddle_leaves_out(build, kind, slot):
    main, x = fluid.Program(), np.linspace(-1, 1, 24, dtype="float32").reshape(2, 3, 2, 2)
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        data = fluid.data("x", x.shape)
        data.stop_gradient = False
        fluid.backward.append_backward(layers.reduce_sum(layers.square(build(data))))
    message = framework_pb2.ProgramDesc.FromString(main.desc.serialize_to_string())
    before = _gradient(message, x)
    (op,) = [op for op in message.blocks[0].ops if op.type == kind + "_grad"]
    assert not {"Y", "Shape", "ShapeTensor"}.intersection(given.parameter for given in op.inputs)
    if slot is not None:
        op.inputs.remove(next(given for given in op.inputs if given.parameter == slot))
    assert np.abs(before).sum() > 0
    assert_allclose(_gradient(message, x), before)


def test_kinds_of_variables_in_place_of_element_types():
    main = fluid.Program()
    main.global_block().create_var(name="dims", shape=[2], dtype="int64")
    message = framework_pb2.ProgramDesc.FromString(main.desc.serialize_to_string())
    (var,) = [var for var in message.blocks[0].vars if var.name == "dims"]
    var.type.lod_tensor.tensor.data_type = int(fluid.core.VarDesc.VarType.LOD_TENSOR)
    loaded = fluid.Program.parse_from_string(message.SerializeToString())
    assert loaded.global_block().var("dims").shape == (2,)
