"""Operators, names and flags that layers of Paddle 1.8.5 leave in a program, as recorded there."""

import numpy as np
import pytest

import fluidlite as fluid

layers = fluid.layers


def _built(build, shape=(4, 3, 5), dtype="float32"):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", shape, dtype)
        x.stop_gradient = False
        made = build(x)
    return made, main.global_block().ops


@pytest.mark.parametrize(
    ("build", "ops", "name"),
    [
        (lambda x: layers.roll(x, 1), ["reshape2", "roll", "reshape2"], "roll_0.tmp_0"),
        (lambda x: layers.roll(x, [1, -1], [0, 1]), ["roll", "reshape2"], "roll_0.tmp_0"),
        (lambda x: layers.t(layers.reshape(x, [12, 5])), ["reshape2", "transpose2"], "t_0.tmp_0"),
        (lambda x: layers.nonzero(x), ["where_index"], "where_index_0.tmp_0"),
        (lambda x: x[2:0:-1], ["strided_slice"], "x_strided_slice_0"),
        (lambda x: x[1:], ["slice"], "x_slice_0"),
        (
            lambda x: layers.reduce_sum(layers.flatten(x, 0), 1),
            ["flatten2", "reduce_sum"],
            "reduce_sum_0.tmp_0",
        ),
    ],
)
def test_operators_and_names(build, ops, name):
    made, appended = _built(build)
    assert [op.type for op in appended] == ops
    assert made.name == name


def test_a_sum_over_the_only_dimension_names_it():
    _, (op,) = _built(lambda x: layers.reduce_sum(x, 0), [7])
    assert (op.attr("dim"), op.attr("reduce_all")) == ([0], False)


def test_results_through_which_no_gradient_goes():
    assert _built(layers.diag_embed)[0].stop_gradient
    assert _built(lambda x: layers.less_than(x, x))[0].stop_gradient
    assert not _built(lambda x: layers.less_than(x, x, cond=layers.create_tensor("bool")))[0].stop_gradient
    assert not _built(lambda x: layers.shard_index(x, 20, 2, 0), [4, 1], "int64")[0].stop_gradient


def test_bounds_next_to_variables_live_on_the_host():
    _, ops = _built(lambda x: x[layers.fill_constant([1], "int32", 1) :, 0])
    known = [op for op in ops if op.type == "fill_constant"][1:]
    assert len(known) == 1
    assert all(op.attr("force_cpu") for op in known)


def test_hsigmoid_names_its_weights_as_a_result():
    def build(x):
        return layers.hsigmoid(x, layers.zeros([4, 1], "int64"), 6, param_attr="w")

    assert _built(build, [4, 5])[1][-1].output("W_Out") == ["w"]


def test_customized_samples_are_their_own_results():
    def build(x):
        label, samples = layers.zeros([4, 1], "int64"), layers.zeros([4, 4], "int64")
        chances = layers.ones([4, 4], "float32")
        layers.sampled_softmax_with_cross_entropy(
            x,
            label,
            3,
            use_customized_samples=True,
            customized_samples=samples,
            customized_probabilities=chances,
        )
        return samples.name, chances.name

    (samples, chances), ops = _built(build, [4, 20])
    (op,) = [op for op in ops if op.type == "sample_logits"]
    assert op.output("Samples") == [samples]
    assert op.output("Probabilities") == [chances]


def test_npair_loss_is_made_of_layers():
    def build(x):
        return layers.npair_loss(x, x, layers.cast(layers.reduce_sum(x, 1), "float32"))

    types = [op.type for op in _built(build, [4, 6])[1]]
    assert types[2:8] == ["reshape2", "expand", "transpose2", "equal", "cast", "reduce_sum"]


def test_in_dygraph_mode():
    with fluid.dygraph.guard():
        label = fluid.dygraph.to_variable(np.eye(3, dtype="float32"))
        label.stop_gradient = False
        layers.reduce_sum(layers.square(layers.label_smooth(label, epsilon=0.3))).backward()
        np.testing.assert_allclose(label.gradient(), np.eye(3) * 0.98 + 0.14, rtol=1e-6)
        x = fluid.dygraph.to_variable(np.ones([2, 4], "float32"))
        counts = fluid.dygraph.to_variable(np.ones([2, 2], "float32"))
        assert layers.continuous_value_model(x, counts, False).shape == [2, 2]
        whole = fluid.dygraph.to_variable(np.ones([2, 3, 4], "float32"))
        assert layers.add_position_encoding(whole, 1.0, 1.0).shape == [2, 3, 4]


def test_transposed_convolutions_of_volumes_have_the_layouts_of_images():
    def build(x):
        return layers.conv3d_transpose(x, 2, filter_size=2, data_format="NDHWC", bias_attr=False)

    _, (op,) = _built(build, [1, 3, 3, 3, 2])
    assert op.attr("data_format") == "NHWC"
