"""Second derivatives: programs that differentiate gradients, against central differences."""

from functools import cache

import numpy as np
import pytest

from fluidlite import dygraph, eager, layers
from fluidlite.base import unique_name
from fluidlite.data import data
from fluidlite.framework import default_main_program, program_guard
from fluidlite.framework.gradients.backward import gradients
from fluidlite.ops import registry

from . import on_device
from .harness import gradients as first_gradients
from .harness import run_kernel
from .in_program import OneOperator

RNG = np.random.default_rng(11)


def floats(*shape):
    """Numbers between -2 and 2 that are far from one another, so that maxima stay where they are."""
    count = int(np.prod(shape))
    return RNG.permutation(np.linspace(-2, 2, count)).reshape(shape) + 0.013


IMAGE, VOLUME, FILTER = floats(2, 4, 3, 3), floats(1, 2, 2, 3, 2), floats(4, 2, 3, 3)
BN = {"X": IMAGE, "Scale": floats(4), "Bias": floats(4), "Mean": floats(4), "Variance": floats(4) ** 2 + 0.5}
NHWC = {"Scale": np.array([0.5, -1.0, 2.0]), "Bias": np.array([1.0, 0.3, -0.7])}
CONV = {"strides": [2, 1], "paddings": [1, 1], "groups": 2}
WINDOW = {"ksize": [2, 2], "strides": [2, 2], "paddings": [1, 0]}

# Operator, its inputs, its attributes.
CASES = [
    ("conv2d", {"Input": IMAGE, "Filter": FILTER}, CONV),
    ("conv2d", {"Input": IMAGE, "Filter": FILTER, "Bias": floats(4)}, CONV),
    ("conv2d", {"Input": IMAGE.transpose(0, 2, 3, 1), "Filter": FILTER}, {**CONV, "data_format": "NHWC"}),
    ("depthwise_conv2d", {"Input": IMAGE, "Filter": floats(4, 1, 2, 2)}, {"groups": 4}),
    ("conv3d", {"Input": VOLUME, "Filter": floats(2, 2, 2, 2, 2)}, {}),
    ("conv2d_transpose", {"Input": IMAGE, "Filter": FILTER}, CONV),
    ("depthwise_conv2d_transpose", {"Input": IMAGE, "Filter": floats(4, 1, 2, 2)}, {"groups": 4}),
    ("conv3d_transpose", {"Input": VOLUME, "Filter": floats(2, 1, 2, 2, 2)}, {}),
    ("pool2d", {"X": IMAGE}, {"pooling_type": "max", **WINDOW}),
    ("pool2d", {"X": IMAGE}, {"pooling_type": "avg", **WINDOW}),
    ("pool2d", {"X": IMAGE}, {"pooling_type": "avg", "ksize": [3, 2], "adaptive": True}),
    ("pool3d", {"X": VOLUME}, {"pooling_type": "max", "ksize": [2, 2, 2], "data_format": "NDHWC"}),
    ("max_pool2d_with_index", {"X": IMAGE}, {"ksize": [2, 2], "strides": [2, 2]}),
    ("max_pool3d_with_index", {"X": VOLUME}, {"ksize": [2, 2, 2]}),
    ("batch_norm", BN, {}),
    ("batch_norm", {**BN, "X": IMAGE.transpose(0, 2, 3, 1)}, {"data_layout": "NHWC"}),
    ("batch_norm", BN, {"use_global_stats": True}),
    ("layer_norm", {"X": IMAGE, "Scale": floats(36), "Bias": floats(36)}, {"epsilon": 0.1}),
    ("layer_norm", {"X": IMAGE}, {"begin_norm_axis": 2}),
    ("group_norm", {"X": IMAGE, "Scale": floats(4), "Bias": floats(4)}, {"groups": 2, "epsilon": 0.1}),
    ("group_norm", {"X": IMAGE, **NHWC}, {"groups": 3, "data_layout": "NHWC"}),
    ("instance_norm", {"X": IMAGE, "Scale": floats(4), "Bias": floats(4)}, {}),
    ("norm", {"X": floats(3, 4)}, {"axis": 1, "epsilon": 0.1}),
    ("softmax", {"X": floats(3, 4)}, {"axis": 0}),
    ("pow", {"X": np.abs(floats(3, 4)) + 0.1}, {"factor": 2.5}),
    ("pow", {"X": floats(3, 4)}, {"factor": 1.0}),
    ("prelu", {"X": IMAGE, "Alpha": floats(4)}, {"mode": "channel"}),
    ("squared_l2_norm", {"X": floats(3, 4)}, {}),
    ("sigmoid_cross_entropy_with_logits", {"X": floats(3, 4), "Label": np.abs(floats(3, 4)) / 3}, {}),
    ("mean", {"X": floats(3, 4)}, {}),
    ("reduce_sum", {"X": floats(3, 4)}, {"dim": [1]}),
    ("reduce_mean", {"X": floats(3, 4)}, {"reduce_all": True}),
    ("reduce_max", {"X": floats(3, 4)}, {"dim": [1]}),
    ("reduce_min", {"X": floats(3, 4)}, {"dim": [0], "keep_dim": True}),
    ("elementwise_add", {"X": floats(3, 4), "Y": floats(4)}, {}),
    ("elementwise_sub", {"X": floats(3, 4), "Y": floats(3)}, {"axis": 0}),
    ("elementwise_mul", {"X": floats(3, 4), "Y": floats(4)}, {}),
    ("elementwise_div", {"X": floats(3, 4), "Y": floats(3, 4) + 4}, {}),
    ("elementwise_max", {"X": floats(3, 4), "Y": floats(4)}, {}),
    ("elementwise_min", {"X": floats(3, 4), "Y": floats(4)}, {}),
    ("elementwise_pow", {"X": np.abs(floats(3, 4)) + 0.1, "Y": floats(4) + 3}, {}),
    ("matmul", {"X": floats(2, 3, 4), "Y": floats(2, 5, 4)}, {"transpose_Y": True, "alpha": 0.5}),
    ("mul", {"X": floats(3, 4), "Y": floats(4, 2)}, {}),
    ("transpose2", {"X": floats(2, 3, 4)}, {"axis": [2, 0, 1]}),
    ("reshape2", {"X": floats(2, 6)}, {"shape": [3, 4]}),
    ("squeeze2", {"X": floats(2, 1, 3)}, {"axes": [1]}),
    ("expand", {"X": floats(2, 3)}, {"expand_times": [2, 2]}),
    ("expand_as", {"X": floats(2, 3), "target_tensor": floats(4, 3)}, {}),
    ("concat", {"X": [floats(2, 3), floats(2, 2)]}, {"axis": 1}),
    ("split", {"X": floats(2, 4)}, {"axis": 1, "num": 2}),
    ("stack", {"X": [floats(2, 3), floats(2, 3)]}, {"axis": 1}),
    ("unstack", {"X": floats(2, 3)}, {"axis": 1, "num": 3}),
    ("multiplex", {"Ids": np.array([[1], [0]]), "X": [floats(2, 3), floats(2, 3)]}, {}),
    ("slice", {"Input": floats(3, 4)}, {"axes": [1], "starts": [1], "ends": [3]}),
    ("strided_slice", {"Input": floats(3, 5)}, {"axes": [1], "starts": [4], "ends": [0], "strides": [-2]}),
    ("gather", {"X": floats(4, 2), "Index": np.array([3, 0])}, {}),
    ("gather_nd", {"X": floats(4, 2), "Index": np.array([[3, 0], [3, 0]])}, {}),
    ("pad", {"X": floats(2, 3)}, {"paddings": [0, 1, 2, 0], "pad_value": 3.0}),
    ("pad2d", {"X": floats(1, 1, 3, 3)}, {"paddings": [1, 0, 1, 1], "mode": "reflect"}),
    ("pad2d", {"X": floats(1, 1, 3, 3)}, {"paddings": [1, 0, 1, 1], "pad_value": 2.0}),
    ("crop", {"X": floats(3, 4)}, {"shape": [2, 2], "offsets": [1, 0]}),
    ("where", {"Condition": floats(2, 3) > 0, "X": floats(2, 3), "Y": floats(2, 3)}, {}),
    ("clip", {"X": floats(3, 4)}, {"min": -1.0, "max": 1.2}),
    ("dropout", {"X": floats(3, 4)}, {"seed": 3, "fix_seed": True}),
    ("bmm", {"X": floats(2, 2, 3), "Y": floats(2, 3, 2)}, {}),
    ("dot", {"X": floats(2, 3), "Y": floats(2, 3)}, {}),
    ("kron", {"X": floats(2, 3), "Y": floats(2)}, {}),
    ("cross_entropy", {"X": np.abs(floats(3, 4)) + 0.1, "Label": np.array([[0], [3], [1]])}, {}),
    ("cross_entropy", {"X": np.abs(floats(3, 4)) + 0.1, "Label": np.abs(floats(3, 4))},
     {"soft_label": True}),
    ("softmax_with_cross_entropy", {"Logits": floats(3, 4), "Label": np.array([[0], [3], [2]])},
     {"ignore_index": 3}),
    ("softmax_with_cross_entropy", {"Logits": floats(2, 3, 2), "Label": np.abs(floats(2, 3, 2))},
     {"soft_label": True, "axis": 1}),
    ("lookup_table", {"W": floats(4, 2), "Ids": np.array([[3], [0], [3]])}, {}),
    ("lookup_table_v2", {"W": floats(4, 2), "Ids": np.array([3, 0, 1])}, {"padding_idx": 1}),
    ("maxout", {"X": floats(1, 4, 2, 2)}, {"groups": 2}),
    ("bilinear_interp", {"X": floats(1, 2, 3, 3)}, {"scale": 2.0}),
    ("pixel_shuffle", {"X": floats(1, 4, 2, 2)}, {"upscale_factor": 2}),
    ("unfold", {"X": floats(1, 2, 3, 3)}, {"kernel_sizes": [2, 2]}),
    ("index_select", {"X": floats(2, 3), "Index": np.array([2, 0, 2])}, {"dim": 1}),
    ("index_sample", {"X": floats(2, 3), "Index": np.array([[2, 0], [1, 1]])}, {}),
    ("masked_select", {"X": floats(2, 3), "Mask": floats(2, 3) > 0}, {}),
    ("roll", {"X": floats(2, 3)}, {"shifts": [1], "dims": [1]}),
    ("unbind", {"X": floats(2, 3)}, {"axis": 1}),
    ("trace", {"Input": floats(3, 3)}, {"offset": 1}),
    ("diag_embed", {"Input": floats(2, 3)}, {}),
    ("tril_triu", {"X": floats(3, 3)}, {"lower": True}),
]  # fmt: skip


@cache
def drawn(number):
    """Inputs and outputs of a case, and what its gradients and theirs are weighed with."""
    op_type, inputs, attrs = CASES[number]
    definition = registry.find(op_type)
    given = {s: [np.asarray(a) for a in (v if isinstance(v, list) else [v])] for s, v in inputs.items()}
    outputs = run_kernel(op_type, given, attrs)
    no_grad = set(definition.no_grad)
    wanted = tuple(slot for slot in given if slot not in no_grad)
    weights = {
        slot: [floats(*a.shape) for a in items] for slot, items in outputs.items() if slot not in no_grad
    }
    slots = [slot for slot in given if slot in wanted and given[slot][0].dtype.kind == "f"]
    seconds = {slot: [floats(*a.shape) for a in given[slot]] for slot in slots}
    return given, outputs, weights, slots, seconds


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case[0] for case in CASES])
def test_second_derivative(number):
    """Central differences of the weighted gradients, for the inputs and for the gradients of the outputs."""
    op_type, _, attrs = CASES[number]
    definition = registry.find(op_type)
    given, outputs, weights, slots, seconds = drawn(number)

    with unique_name.guard():
        case = OneOperator(definition, given, attrs, outputs, None)
        block = case.program.global_block()
        with program_guard(case.program):
            first = [block.var(name) for name in case.differentiate(slots, weights)]
            starts = [var for var in block.vars.values() if var.name.endswith("_given")]
            factors = [array for slot in slots for array in seconds[slot]]
            given_seconds = [case._fed(f"second_{k}", array, None) for k, array in enumerate(factors)]
            leaves = [var for slot in slots for var in case.inputs[slot]] + starts
            second = gradients(first, leaves, given_seconds)
    names = [var.name for var in second if var is not None]
    with on_device.paused():
        expected = [_differences(number, var.name) for var in leaves]
    for engine in ("interpret", "plan"):
        got = iter(case.run(engine, names))
        for var, found, numeric in zip(leaves, second, expected, strict=True):
            exact = next(got) if found is not None else np.zeros_like(numeric)
            message = f"second derivative of {op_type} for {var.name}, engine {engine}"
            np.testing.assert_allclose(exact, numeric, rtol=1e-5, atol=1e-6, err_msg=message)


@cache
def _differences(number, name, step=1e-6):
    """Central differences of the weighted gradients of a case, for the variable `name` of the program."""
    op_type, _, attrs = CASES[number]
    given, _, weights, _, seconds = drawn(number)
    made = name.endswith("_out_0@GRAD_given") or "_out_" in name
    slot, _, index = name.removesuffix("@GRAD_given").replace("_out", "").rpartition("_")
    holder = weights if made else given
    base = holder[slot][int(index)]
    result = np.zeros_like(base)

    def objective(moved):
        changed = {**holder, slot: [moved if k == int(index) else a for k, a in enumerate(holder[slot])]}
        first = first_gradients(op_type, given if made else changed, attrs, changed if made else weights)
        return sum(
            float((v * g).sum()) for s, vs in seconds.items() for v, g in zip(vs, first[s], strict=True)
        )

    for at in np.ndindex(base.shape):
        sides = []
        for delta in (step, -step):
            moved = base.copy()
            moved[at] += delta
            sides.append(objective(moved))
        result[at] = (sides[0] - sides[1]) / (2 * step)
    return result


def test_what_cannot_be_differentiated_twice_says_so(programs):
    x = data("x", [2, 3], "float32")
    x.stop_gradient = False
    (first,) = gradients(layers.huber_loss(x, layers.zeros_like(x), 1.0), x)
    with pytest.raises(registry.OperatorError, match="huber_loss_grad .* has no gradient of its own"):
        gradients(layers.square(first), x)


def test_classification_twice_with_eager_tensors():
    """The gradient of a squared gradient of the loss, for a weight before the softmax, by central differences."""
    weight, label = floats(4, 3), eager.Tensor(np.array([[2], [0]]))

    def penalty(values):
        w = eager.Tensor(values.copy(), stop_gradient=False)
        logits = layers.matmul(eager.Tensor(inputs), w)
        loss = layers.reduce_sum(layers.softmax_with_cross_entropy(logits, label))
        (first,) = eager.grad(loss, w, create_graph=True)
        return w, layers.reduce_sum(layers.square(first))

    inputs = floats(2, 4)
    with dygraph.guard():
        w, value = penalty(weight)
        value.backward()
        for at in np.ndindex(weight.shape):
            sides = []
            for delta in (1e-6, -1e-6):
                moved = weight.copy()
                moved[at] += delta
                sides.append(float(penalty(moved)[1]))
            assert w.gradient()[at] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-5, abs=1e-7)


def test_steps_have_no_slope_double_grad(programs):
    x = data("x", [2, 3], "float32")
    x.stop_gradient = False
    (first,) = gradients(layers.floor(x) + layers.square(x), x)
    (second,) = gradients(first, x)
    assert second is not None


def test_gradient_penalty_of_eager_tensors():
    """The slope of a critic's gradient, through convolution, normalisation, activation and products."""
    with dygraph.guard():
        default_main_program().random_seed = 3  # differences that do not cross the kink of leaky_relu
        conv, norm, last = dygraph.Conv2D(2, 3, 3, padding=1), dygraph.InstanceNorm(3), dygraph.Linear(27, 1)
        x = dygraph.to_variable(floats(2, 2, 4, 4).astype("float32"))
        x.stop_gradient = False

        def penalty():
            hidden = layers.leaky_relu(norm(conv(x)), 0.2)
            score = last(layers.reshape(layers.pool2d(hidden, 2, "avg"), [2, 27]))
            (slope,) = dygraph.grad(score, x, create_graph=True)
            return layers.reduce_mean(
                layers.square(layers.sqrt(layers.reduce_sum(slope * slope, dim=[1, 2, 3])) - 1.0)
            )

        penalty().backward()
        for parameter in (conv.weight, norm.scale, last.weight):
            start = parameter.numpy()
            at = (0,) * start.ndim
            sides = []
            for step in (1e-2, -1e-2):
                moved = start.copy()
                moved[at] += step
                parameter.set_value(moved)
                sides.append(float(penalty().numpy()[0]))
            parameter.set_value(start)
            np.testing.assert_allclose(
                parameter.gradient()[at], (sides[0] - sides[1]) / 2e-2, rtol=0.02, atol=2e-4
            )
