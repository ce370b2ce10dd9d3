"""Chains of elementwise kernels, block by block, against the same kernels one after the other."""

import numpy as np
import pytest

from fluidlite._ext import kernels, threads
from fluidlite.ops.kernels.fusion import (
    MOST_OPERANDS,
    MOST_STEPS,
    MOST_TEMPORARIES,
    Repeated,
    Step,
    chain,
    steps_of,
)
from fluidlite.ops.kernels.kernel_def import DECLARED
from fluidlite.ops.registry import Call

from .native import blank, draw, each_real, each_target

LENGTHS = (0, 1, 3, 1000, 1024, 1025, 5000, 300_000)


def run(call, values, target=None):
    """Run a call on arrays by name."""
    kernels.call(call.kernel, [values[name] for name in call.operands], call.ints, call.floats, target)


def joined(calls, results):
    found = [steps_of(call) for call in calls]
    repeated = {}
    steps = []
    for step in (step for each in found for step in each.steps):
        operands = tuple(
            repeated.setdefault((one.name, one.count, one.stretch), one) if isinstance(one, Repeated) else one
            for one in step.operands
        )
        steps.append(Step(step.kernel, operands, step.made, step.ints, step.floats))
    return chain(found[0].elements, steps, results, kernels.number)


def agree(calls, given, results, target, kind, n):
    """Check that a chain gives the bits of its calls made one by one."""
    names = {name for call in calls for name in call.operands if name is not None}
    separate = {name: given[name].copy() if name in given else blank(n, kind=kind) for name in names}
    together = {name: each.copy() for name, each in separate.items()}
    for call in calls:
        values = [None if name is None else separate[name] for name in call.operands]
        kernels.call(call.kernel, values, call.ints, call.floats, target)
    made = joined(calls, results)
    run(made, together, target)
    for name in results:
        np.testing.assert_array_equal(together[name], separate[name])
    for source, result in made.replaceable:
        shared = {name: each.copy() for name, each in together.items()}
        shared[source] = given[source].copy()
        shared[result] = shared[source]
        run(made, shared, target)
        np.testing.assert_array_equal(shared[result], separate[result])
    return made


@each_target
@each_real
@pytest.mark.parametrize("n", LENGTHS)
def test_forward_and_backward(n, kind, target):
    given = {name: draw(n, kind=kind, seed=k) for k, name in enumerate("xyg")}
    calls = [
        Call(f"scale.{kind}", ["x", "a"], [n, 1], [0.5, 1.0]),
        Call(f"tanh.{kind}", ["a", "b"], [n]),
        Call(f"elementwise_mul.{kind}", ["b", "y", "c"], [n]),
        Call(f"elementwise_mul_grad.{kind}", ["b", "y", None, "g", "db", "dy"], [n]),
        Call(f"tanh_grad.{kind}", [None, "b", "db", "da"], [n]),
        Call(f"scale.{kind}", ["da", "dx"], [n, 1], [0.5, 0.0]),
        Call(f"sum.{kind}", ["dx", "dy", "x", "s"], [n]),
    ]
    made = agree(calls, given, ["c", "dx", "s"], target, kind, n)
    assert ("y", "dx") in made.replaceable and ("g", "c") not in made.replaceable
    agree(calls, given, ["a", "b", "c", "db", "dy", "da", "dx", "s"], target, kind, n)


@each_target
@each_real
@pytest.mark.parametrize(
    "pre, n, post",
    [
        *((5, 7, 1), (1, 1, 3000), (300, 40, 1), (2, 3, 700), (3, 1500, 2), (1, 2000, 1), (4, 1, 600)),
        *((150, 2000, 1), (90, 96, 1), (7, 1024, 1), (3, 512, 2)),
    ],
)
def test_operands_that_are_repeated(pre, n, post, kind, target):
    size = pre * n * post
    given = {"x": draw(size, kind=kind), "y": draw(n, kind=kind, seed=1), "z": draw(1, kind=kind, seed=2)}
    calls = [
        Call(f"elementwise_add_mid.{kind}", ["x", "y", "a"], [pre, n, post, 3]),
        Call(f"elementwise_mul_mid.{kind}", ["a", "z", "b"], [1, 1, size]),
        Call(f"elementwise_mul_mid_grad.{kind}", [None, "y", None, "b", "c", None], [pre, n, post]),
        Call(f"elementwise_max_mid.{kind}", ["c", "y", "d"], [pre, n, post]),
    ]
    agree(calls, given, ["b", "d"], target, kind, size)


@each_target
@pytest.mark.parametrize("pre, n, post", [(1, 3000, 1), (40, 70, 1), (1, 70, 40)])
def test_gradients_of_sums_spread(pre, n, post, target):
    given = {"g": draw(pre * post), "x": draw(pre * n * post, seed=1)}
    calls = [
        Call("reduce_fill.f32", ["g", "a"], [pre, n, post], [0.25]),
        Call("square_grad.f32", ["x", None, "a", "b"], [pre * n * post]),
    ]
    agree(calls, given, ["b"], target, "f32", pre * n * post)


def test_what_is_no_step():
    assert steps_of(Call("softmax.f32", ["x", "y"], [2, 3])) is None
    assert steps_of(Call("reduce_fill.f32", ["x", "y"], [2, 3, 4], [1.0])) is None
    assert steps_of(Call("relu.i64", ["x", "y"], [2])) is None
    assert (
        steps_of(Call("elementwise_add_mid_grad.f32", [None, None, None, "g", "a", "b"], [2, 3, 1])) is None
    )
    assert steps_of(Call("sigmoid_cross_entropy_with_logits.f32", ["x", "y", "z"], [2, -100, 1])) is None


def test_all_kernels_of_steps_are_there():
    for kernel in DECLARED.values():
        if kernel.elementwise is not None:
            assert {"f32", "f64"} <= set(kernel.types.split()), kernel.name
            assert kernels.available(f"{kernel.name}.f32") and kernels.available(f"{kernel.name}.f64")
    for target in kernels.targets():
        assert list(kernels.table(target)) == list(kernels.table("baseline"))


def test_costs():
    given = {"x": draw(2000), "y": draw(2000, seed=1, low=0.0, high=1.0), "g": draw(2000, seed=2)}
    calls = [
        Call("sigmoid_cross_entropy_with_logits.f32", ["x", "y", "a"], [2000, -100, 0]),
        Call("sigmoid_cross_entropy_with_logits_grad.f32", ["x", "y", "g", "b"], [2000, -100, 0]),
        Call("clip.f32", ["b", "c"], [2000], [-0.25, 0.5]),
    ]
    agree(calls, given, ["a", "c"], None, "f32", 2000)


def test_as_much_as_there_is_room_for():
    def waiting(count):
        """All of `count` temporaries are needed at once."""
        steps = [Step("relu.f32", ("x", f"t{k}"), (f"t{k}",)) for k in range(count)]
        for k in range(1, count):
            steps.append(Step("elementwise_add.f32", ("t0", f"t{k}", "t0"), ("t0",)))
        return [*steps, Step("relu.f32", ("t0", "z"), ("z",))]

    full = chain(3, waiting(MOST_TEMPORARIES), ["z"], kernels.number)
    x, z = np.array([1.0, -2.0, 3.0], "float32"), blank(3)
    run(full, {"x": x, "z": z})
    assert z.tolist() == [MOST_TEMPORARIES, 0.0, 3 * MOST_TEMPORARIES]
    assert chain(3, waiting(MOST_TEMPORARIES + 1), ["z"], kernels.number) is None
    many = [Step("relu.f32", ("x", f"z{k}"), (f"z{k}",)) for k in range(MOST_OPERANDS)]
    assert chain(3, many, [f"z{k}" for k in range(MOST_OPERANDS)], kernels.number) is None
    assert chain(3, [Step("relu.f32", ("x", "z"), ("z",))] * (MOST_STEPS + 1), ["z"], kernels.number) is None


def test_programs_are_verified():
    x, z = draw(5), blank(5)
    good = chain(
        5,
        [Step("exp.f32", ("x", "a"), ("a",)), Step("clip.f32", ("a", "z"), ("z",), (), (0.0, 1.0))],
        ["z"],
        kernels.number,
    )
    kernels.call(good.kernel, [x, z], good.ints, good.floats)
    np.testing.assert_allclose(z, np.clip(np.exp(x), 0, 1), rtol=1e-6)
    stretches = 5, 7  # of operands that are as long as the result, which have none
    for place in sorted({*range(len(good.ints))}.difference(stretches)):
        for wrong in (-7, 10**6):
            ints = [*good.ints]
            ints[place] = wrong
            with pytest.raises(ValueError):
                kernels.call(good.kernel, [x, z], ints, good.floats)
    for ints, floats in (
        (good.ints[:-1], good.floats),
        (good.ints, [1.0]),
        ([*good.ints, 0], good.floats),
        ([], []),
    ):
        with pytest.raises(ValueError):
            kernels.call(good.kernel, [x, z], ints, floats)
    with pytest.raises(ValueError, match="bytes as operand 1"):
        kernels.call(good.kernel, [x, blank(4)], good.ints, good.floats)


def test_threads_change_nothing():
    n = 1_000_003
    given = {"x": draw(n), "y": draw(7, seed=1)[:1]}
    calls = [
        Call("gelu.f32", ["x", "a"], [n], [0.0]),
        Call("elementwise_mul_mid.f32", ["a", "y", "b"], [1, 1, n]),
        Call("sigmoid.f32", ["b", "z"], [n]),
    ]
    found, before = [], threads.count()
    try:
        for count in (1, 2, 3):
            threads.use(count)
            values = {**given, "z": blank(n)}
            run(joined(calls, ["z"]), values)
            found.append(values["z"])
    finally:
        threads.use(before)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
