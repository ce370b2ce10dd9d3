"""Gradient clips: values, order of operators, who is clipped."""

import copy

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import clip
from fluidlite.executor.interpreter.interpreter import Interpreter
from fluidlite.executor.scope import Scope
from fluidlite.framework import default_main_program

GRADS = {"a@GRAD": np.array([3.0, -4.0], "float32"), "b@GRAD": np.array([12.0], "float32")}


def _pairs():
    block = default_main_program().global_block()
    made = []
    for name, grad in GRADS.items():
        param = block.create_parameter(name=name[0], shape=list(grad.shape), dtype="float32")
        made.append((param, block.create_var(name=name, shape=list(grad.shape), dtype="float32")))
    return made


def _values(pairs):
    run = Interpreter(default_main_program(), Scope(), {name: (grad, ()) for name, grad in GRADS.items()})
    run.run()
    return [run.values[grad.name] for _, grad in pairs]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (clip.GradientClipByValue(3.5), [[3, -3.5], [3.5]]),
        (clip.GradientClipByValue(3.5, min=-1.0), [[3, -1], [3.5]]),
        (clip.GradientClipByNorm(2.5), [[1.5, -2], [2.5]]),
        (clip.GradientClipByGlobalNorm(6.5), [[1.5, -2], [6]]),
        (clip.GradientClipByGlobalNorm(100.0), [[3, -4], [12]]),
        (clip.GradientClipByGlobalNorm(float("inf")), [[3, -4], [12]]),
    ],
)
def test_values(programs, how, expected):
    for got, want in zip(_values(how(_pairs())), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_need_clip_chooses_and_the_global_norm_is_that_of_the_chosen(programs):
    pairs = _pairs()
    clipped = clip.GradientClipByGlobalNorm(2.5, need_clip=lambda param: param.name == "a")(pairs)
    assert clipped[1][1] is pairs[1][1]
    np.testing.assert_allclose(_values(clipped)[0], [1.5, -2], rtol=1e-6)


CLIPS = [clip.GradientClipByGlobalNorm(5.0), clip.GradientClipByNorm(5.0), clip.GradientClipByValue(4.0)]


@pytest.mark.parametrize("how", CLIPS)
def test_parameters_without_gradient_are_left_out(programs, how):
    pairs = _pairs()
    assert how([(pairs[0][0], None)]) == []
    assert programs[0].global_block().ops == []
    assert [param for param, _ in how([(pairs[0][0], None), pairs[1]])] == [pairs[1][0]]


@pytest.mark.parametrize("how", CLIPS)
def test_every_pair_of_eager_tensors_gets_its_own_gradient(how):
    with fluid.dygraph.guard():
        x, y = (fluid.dygraph.to_variable(np.array(v, "float32")) for v in ([3.0, 4.0], [0.0, 0.0]))
        how = copy.copy(how)
        for chooses in (None, lambda param: param is x):
            how._need_clip_func = chooses
            got = [grad.numpy().tolist() for _, grad in how([(x, x), (x, y), (y, None)])]
            assert got == [[3, 4], [0, 0]]


def test_global_norm_operators_are_fluid_s(programs):
    clipped = clip.GradientClipByGlobalNorm(1.0)(_pairs())
    ops = programs[0].global_block().ops
    assert [op.type for op in ops] == [
        *["square", "reduce_sum"] * 2,
        "sum",
        "sqrt",
        "fill_constant",
        "elementwise_max",
        "elementwise_div",
        *["elementwise_mul"] * 2,
    ]
    assert [grad.name for _, grad in clipped] == ["elementwise_mul_0.tmp_0", "elementwise_mul_1.tmp_0"]
    assert all(op.attr("op_role") == 2 for op in ops)


def test_set_gradient_clip(programs):
    pairs = _pairs()
    clip.set_gradient_clip(clip.GradientClipByValue(1.0))
    for got, want in zip(_values(clip.append_gradient_clip_ops(pairs)), [[1, -1], [1]], strict=True):
        np.testing.assert_array_equal(got, want)


def test_the_clip_of_the_last_parameter_counts_as_in_fluid(programs):
    pairs = _pairs()
    clip.set_gradient_clip(clip.GradientClipByGlobalNorm(2.5, group_name="one"), param_list=["a"])
    clip.set_gradient_clip(clip.GradientClipByGlobalNorm(3.0, group_name="two"), param_list=[pairs[1][0]])
    with pytest.warns(UserWarning, match="every gradient is clipped by the clip of 'b'"):
        clipped = clip.append_gradient_clip_ops(pairs)
    for got, want in zip(_values(clipped), [[0.75, -1], [3]], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    kinds = [op.type for op in programs[0].global_block().ops]
    assert (
        kinds[-11:]
        == [
            *["fill_constant", "square", "reduce_sum"] * 2,
            *["sum", "sqrt", "elementwise_max", "elementwise_div"],
            *["elementwise_mul"] * 2,
        ][-11:]
    )


def test_one_group_has_one_norm(programs):
    pairs = _pairs()
    for norm, (param, _) in zip((1.0, 2.0), pairs, strict=True):
        clip.set_gradient_clip(clip.GradientClipByGlobalNorm(norm), param_list=[param])
    with pytest.raises(
        ValueError, match=r"'default_group' must have the same clip_norm, got 1\.0 and 2\.0 for 'b'"
    ):
        clip.append_gradient_clip_ops(pairs)


def test_set_gradient_clip_for_some_parameters_does_nothing_as_in_fluid(programs):
    pairs = _pairs()
    clip.set_gradient_clip(clip.GradientClipByValue(1.0), param_list=["a"])
    with pytest.warns(UserWarning, match="no effect, as in Fluid 1.8: parameter 'b' has no clip"):
        assert clip.append_gradient_clip_ops(pairs) == pairs
    assert programs[0].global_block().ops == []


def test_the_optimizers_clip_comes_first(programs):
    pairs = _pairs()
    clip.set_gradient_clip(clip.GradientClipByValue(1.0))
    with pytest.warns(UserWarning, match="'set_gradient_clip' has no effect"):
        clip.GradientClipByValue(2.0)(pairs)


def test_error_clip_is_applied_right_after_the_gradient(programs):
    block = programs[0].global_block()
    (_, grad), _ = _pairs()
    block.var("a").error_clip = clip.ErrorClipByValue(2.0)
    op = block.append_op(type="scale", inputs={"X": [grad]}, outputs={"Out": [grad]})
    clip.error_clip_callback(block, {"op": op})
    assert block.ops[-1].type == "clip"
    assert (block.ops[-1].attr("min"), block.ops[-1].attr("max")) == (-2.0, 2.0)
    np.testing.assert_array_equal(_values([(None, grad)])[0], [2, -2])


def test_error_clip_must_be_one(programs):
    block = programs[0].global_block()
    (_, grad), _ = _pairs()
    block.var("a").error_clip = 3
    op = block.append_op(type="scale", inputs={"X": [grad]}, outputs={"Out": [grad]})
    with pytest.raises(
        TypeError, match="error_clip should be an instance of BaseErrorClipAttr or None, but 'a' has 3"
    ):
        clip.error_clip_callback(block, {"op": op})


def test_texts():
    assert str(clip.GradientClipByValue(1.0)) == "Gradient Clip By Value, min = -1.000000, max=1.000000"
    assert str(clip.GradientClipByNorm(1.0)) == "Gradient Clip By Norm, clip_norm=1.000000"
    assert str(clip.GradientClipByGlobalNorm(1.0)) == "Gradient Clip By GlobalNorm, global_norm=1.000000"
    assert str(clip.ErrorClipByValue(1.0)) == "ByValue, min=-1.000000, max=1.000000"


def test_bad_arguments(programs):
    with pytest.raises(TypeError, match="need_clip must be a function"):
        clip.GradientClipByNorm(1.0, need_clip=3)
    with pytest.raises(TypeError, match="'clip' should be an instance of GradientClipBase"):
        clip.set_gradient_clip(3)
    programs[0].global_block().create_var(name="x", shape=[1], dtype="float32")
    with pytest.raises(TypeError, match="param_list holds Parameters or their names, got 'x'"):
        clip.set_gradient_clip(clip.GradientClipByNorm(1.0), param_list=["x"])


class Halving(clip.GradientClipBase):
    """A clip as programs of others write them. `says_none`: it returns those that it leaves out without gradient."""

    says_none = False

    def _static_clip(self, params_grads):
        return [(param, fluid.layers.scale(grad, 0.5)) for param, grad in params_grads]

    def _dygraph_clip(self, params_grads):
        return [
            (param, fluid.layers.scale(grad, 0.5))
            for param, grad in params_grads
            if self._need_clip_func(param)
        ]


def _eager_pairs():
    with fluid.dygraph.guard(fluid.CPUPlace()):
        layer = fluid.dygraph.Layer()
        params = [layer.create_parameter(list(grad.shape)) for grad in GRADS.values()]
        return [(p, fluid.dygraph.to_variable(g)) for p, g in zip(params, GRADS.values(), strict=True)]


def test_eager_gradients_are_clipped_by_call():
    with fluid.dygraph.guard(fluid.CPUPlace()):
        for how, expected in [
            (clip.GradientClipByValue(3.5), [[3, -3.5], [3.5]]),
            (clip.GradientClipByNorm(2.5), [[1.5, -2], [2.5]]),
            (clip.GradientClipByGlobalNorm(6.5), [[1.5, -2], [6]]),
        ]:
            pairs = _eager_pairs()
            clipped = how(pairs)
            for (_, grad), want in zip(clipped, expected, strict=True):
                np.testing.assert_allclose(grad.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("says_none", [False, True])
def test_a_class_of_ones_own_clips_eager_gradients(says_none, monkeypatch):
    """Gradients that it leaves out are not applied, as in Fluid."""
    monkeypatch.setattr(Halving, "says_none", says_none)
    with fluid.dygraph.guard(fluid.CPUPlace()):
        layer = fluid.dygraph.Linear(2, 1)
        only_weight = Halving(need_clip=lambda param: param is layer.weight)
        sgd = fluid.optimizer.SGD(1.0, parameter_list=layer.parameters(), grad_clip=only_weight)
        before = [p.numpy() for p in layer.parameters()]
        for _ in range(2):
            loss = fluid.layers.reduce_sum(
                layer(fluid.dygraph.to_variable(np.array([[3.0, -4.0]], "float32")))
            )
            loss.backward()
            sgd.minimize(loss)
            layer.clear_gradients()
        moved = [a - p.numpy() for a, p in zip(before, layer.parameters(), strict=True)]
        np.testing.assert_allclose(moved[0].ravel(), [3, -4], rtol=1e-5)
        assert moved[1].tolist() == [0]


def test_a_class_of_ones_own_clips_gradients_of_programs(alone):
    x = fluid.data("x", [1, 2])
    loss = fluid.layers.reduce_sum(fluid.layers.fc(x, 1, param_attr="w", bias_attr=False))
    fluid.optimizer.SGD(1.0, grad_clip=Halving()).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    weight = fluid.global_scope().find_var("w").get_tensor()
    before = np.array(weight)
    exe.run(feed={"x": np.array([[3.0, -4.0]], "float32")})
    np.testing.assert_allclose((before - np.array(weight)).ravel(), [1.5, -2], rtol=1e-5)
