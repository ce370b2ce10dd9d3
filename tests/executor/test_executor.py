"""Executor.run: feeds, fetches, scopes, and what it says of bad input."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import context

from ..refusals import refuses

L = fluid.layers
X = np.arange(8, dtype="float32").reshape(2, 4)


pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture
def net():
    x = fluid.data("x", [None, 4], "float32")
    y = L.fc(x, 3, param_attr=fluid.initializer.Constant(0.5), bias_attr=fluid.initializer.Constant(0.25))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe, y


EXPECTED = X @ np.full((4, 3), 0.5, "float32") + 0.25


def test_feeds_and_fetches_in_every_accepted_form(net):
    exe, y = net
    tensor = fluid.LoDTensor()
    tensor.set(X, fluid.CPUPlace())
    for feed in ({"x": X}, [{"x": X}], {"x": tensor}, {"x": np.asfortranarray(X)}, {"x": X, "more": X}):
        for fetch in ([y], y, [y.name], y.name):
            for _ in range(2):
                (got,) = exe.run(feed=feed, fetch_list=fetch)
                np.testing.assert_array_equal(got, EXPECTED)
    assert exe.run(feed={"x": X}) == []
    (got,) = exe.run(feed={"x": X}, fetch_list=[y], return_numpy=False)
    assert isinstance(got, fluid.LoDTensor)
    np.testing.assert_array_equal(np.array(got), EXPECTED)


def test_results_are_copies(net):
    exe, y = net
    first = exe.run(feed={"x": X}, fetch_list=[y, "x", "fc_0.w_0"])
    for array in first:
        array[...] = -1
    np.testing.assert_array_equal(exe.run(feed={"x": X}, fetch_list=[y])[0], EXPECTED)
    assert X[0, 1] == 1


def test_each_step_begins_with_the_hooks_of_the_process(net, monkeypatch):
    exe, y = net
    begun = []
    monkeypatch.setattr(context, "before_step", [lambda: begun.append("counted")])
    for _ in range(3):
        exe.run(feed={"x": X}, fetch_list=[y])
    assert begun == ["counted"] * 3


def test_other_batch_sizes_and_empty_batches(net):
    exe, y = net
    for rows in (1, 5, 2, 5, 0):
        (got,) = exe.run(feed={"x": np.ones((rows, 4), "float32")}, fetch_list=[y])
        np.testing.assert_array_equal(got, np.full((rows, 3), 2.25, "float32"))


@pytest.mark.parametrize(
    ("feed", "error", "message"),
    [
        ({}, fluid.core.EnforceNotMet, r"variable 'x'.*not fed.*none"),
        ({"xx": X}, fluid.core.EnforceNotMet, r"operator mul needs variable 'x'.*not fed"),
        (
            {"x": np.array([["a"] * 4])},
            fluid.core.EnforceNotMet,
            r"'x' was fed with ndarray.*unknown data type",
        ),
        ({3: X}, TypeError, "key 3"),
        (3, TypeError, "feed requires dict"),
    ],
)
def test_bad_feeds(net, feed, error, message):
    exe, y = net
    refuses(lambda: exe.run(feed=feed, fetch_list=[y]), error, message)
    np.testing.assert_array_equal(exe.run(feed={"x": X}, fetch_list=[y])[0], EXPECTED)


def test_a_misspelt_feed_is_recognised(net):
    exe, y = net
    fluid.data("image", [None, 4], "float32")
    with pytest.raises(fluid.core.EnforceNotMet, match=r"'x'.*test_executor\.py:\d+"):
        exe.run(feed={"image": X}, fetch_list=[y])


def test_bad_fetches(net):
    exe, y = net
    with pytest.raises(fluid.core.EnforceNotMet, match=r"'fc_0\.tmp_2'.*did you mean 'fc_0\.tmp_"):
        exe.run(feed={"x": X}, fetch_list=["fc_0.tmp_2"])
    refuses(lambda: exe.run(feed={"x": X}, fetch_list=[3]), TypeError, "fetch_list should be str, variable")
    for several in ({"y": y}, {y}, {}, np.array([y.name]), iter([y])):
        with pytest.raises(AssertionError, match="fetch_list must be a list or tuple"):
            exe.run(feed={"x": X}, fetch_list=several)
    with pytest.raises(AssertionError, match="a Program runs on one"):
        exe.run(feed=[{"x": X}, {"x": X}], fetch_list=[y])


def test_uninitialised_parameters_point_to_the_startup_program(net):
    exe, y = net
    with (
        fluid.scope_guard(fluid.Scope()),
        pytest.raises(fluid.core.EnforceNotMet, match=r"fc_0\.w_0.*startup program"),
    ):
        exe.run(feed={"x": X}, fetch_list=[y])


def test_other_arguments_are_checked(net):
    exe, y = net
    refuses(lambda: exe.run("main", feed={"x": X}), TypeError, "requires Program.*str")
    refuses(lambda: exe.run(feed={"x": X}, scope={}), TypeError, r"scope must be a fluid\.Scope")
    refuses(lambda: fluid.Executor("cpu"), TypeError, "CPUPlace or fluid.CUDAPlace")
    exe.close()
    refuses(lambda: exe.run(feed={"x": X}, fetch_list=[y]), RuntimeError, "closed Executor")


def test_scopes_keep_parameters_apart(net):
    exe, y = net
    other = fluid.Scope()
    exe.run(fluid.default_startup_program(), scope=other)
    other.find_var("fc_0.w_0").get_tensor().set(np.zeros((4, 3), "float32"), fluid.CPUPlace())
    np.testing.assert_array_equal(
        exe.run(feed={"x": X}, fetch_list=[y], scope=other)[0], np.full((2, 3), 0.25, "float32")
    )
    np.testing.assert_array_equal(exe.run(feed={"x": X}, fetch_list=[y])[0], EXPECTED)
    child = fluid.global_scope().new_scope()
    np.testing.assert_array_equal(exe.run(feed={"x": X}, fetch_list=[y], scope=child)[0], EXPECTED)


def test_parameters_set_between_steps_count(net):
    exe, y = net
    exe.run(feed={"x": X}, fetch_list=[y])
    tensor = fluid.global_scope().find_var("fc_0.b_0").get_tensor()
    tensor.set(np.ones(3, "float32"), fluid.CPUPlace())
    np.testing.assert_array_equal(exe.run(feed={"x": X}, fetch_list=[y])[0], EXPECTED + 0.75)
    tensor.replace(np.full(3, 2, "float32"))
    np.testing.assert_array_equal(exe.run(feed={"x": X}, fetch_list=[y])[0], EXPECTED + 1.75)


def test_a_program_that_grows_is_run_as_it_is_now(net):
    exe, y = net
    exe.run(feed={"x": X}, fetch_list=[y])
    z = L.relu(y - 5.0)
    np.testing.assert_array_equal(exe.run(feed={"x": X}, fetch_list=[z])[0], np.maximum(EXPECTED - 5, 0))


def test_use_prune_needs_only_what_the_fetch_needs(net):
    exe, y = net
    L.fc(fluid.data("unfed", [None, 2], "float32"), 1)
    exe.run(fluid.default_startup_program())
    refuses(lambda: exe.run(feed={"x": X}, fetch_list=[y]), fluid.core.EnforceNotMet, "unfed")
    np.testing.assert_array_equal(exe.run(feed={"x": X}, fetch_list=[y], use_prune=True)[0], EXPECTED)


COUNTED = ("first", "second", "runs")


@pytest.fixture
def two_updates():
    """Two weights of 1, each with a loss and an optimizer; a counter of runs. Losses, results of minimize."""
    x = fluid.data("x", [None, 1], "float32")
    losses = [
        L.mean(L.fc(x, 1, param_attr=fluid.ParamAttr(name, fluid.initializer.Constant(1.0)), bias_attr=False))
        for name in COUNTED[:2]
    ]
    L.increment(L.create_global_var([1], 0.0, "float32", persistable=True, name="runs"))
    clip = fluid.clip.GradientClipByNorm(10.0)
    found = [fluid.optimizer.SGD(0.5, grad_clip=clip).minimize(loss) for loss in losses]
    return losses, found


@pytest.mark.parametrize("compiled", [0, 1, 2])
@pytest.mark.parametrize(
    ("fetched", "use_prune", "want"),
    [
        (lambda losses, found: losses[:1], False, (0, 0, 1)),
        (lambda losses, found: losses[:1], True, (0, 0, 0)),
        (lambda losses, found: [losses[0], found[0]], False, (0, 1, 0)),
        (lambda losses, found: [losses[1], found[0]], False, (0, 1, 0)),
        (lambda losses, found: [losses[0], found[1][0]], False, (1, 0, 0)),
        (lambda losses, found: [losses[0], *found], False, (0, 0, 0)),
        (lambda losses, found: [losses[0], [found[0], "runs"]], True, (0, 1, 1)),
    ],
)
def test_updates_that_are_fetched_are_all_that_is_run(two_updates, fetched, use_prune, want, compiled):
    exe, scope = fluid.Executor(), fluid.global_scope()
    exe.run(fluid.default_startup_program())
    program = fluid.CompiledProgram(fluid.default_main_program()) if compiled else None
    if compiled == 2:
        program = program.with_data_parallel(two_updates[0][0].name, places=fluid.cpu_places(2))
    fetches = fetched(*two_updates)
    for _ in range(2):
        values = exe.run(program, {"x": np.ones((2, 1), "float32")}, fetches, use_prune=use_prune)
    assert len(values) == (2 if want == (0, 1, 1) else 1)
    got = tuple(np.array(scope.find_var(name).get_tensor()).item() for name in COUNTED)
    assert got == (want[0], want[1], 2 * want[2])


@pytest.mark.parametrize(("fetched", "want"), [([0], 0.5), ([1], 0.75), ([0, 1], 0.25)])
def test_one_of_two_updates_of_one_parameter(fetched, want):
    loss = L.mean(
        L.create_parameter([1], "float32", "w", default_initializer=fluid.initializer.Constant(1.0))
    )
    found = [fluid.optimizer.SGD(rate).minimize(loss) for rate in (0.5, 0.25)]
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(fetch_list=[loss, *(found[k] for k in fetched)])
    assert np.array(fluid.global_scope().find_var("w").get_tensor()).item() == want


def test_updates_of_the_program_that_another_is_a_clone_of(two_updates):
    exe, scope = fluid.Executor(), fluid.global_scope()
    exe.run(fluid.default_startup_program())
    copy, other = fluid.default_main_program().clone(), fluid.Program()
    with fluid.program_guard(other, fluid.Program()):
        loss = L.mean(fluid.data("x", [None, 1], "float32"))
        elsewhere = fluid.optimizer.SGD(1.0).minimize(loss * L.create_parameter([1], "float32"))
    for found in (two_updates[1][0], elsewhere):
        exe.run(copy, {"x": np.ones((2, 1), "float32")}, [two_updates[0][0], found])
    assert [np.array(scope.find_var(name).get_tensor()).item() for name in COUNTED] == [0, 0.5, 0]


@pytest.mark.parametrize("wrong", [3, (1,), (None, None)])
def test_fetch_lists_name_what_is_no_variable(net, wrong):
    with pytest.raises(TypeError, match="should be str, variable or optimize_op"):
        net[0].run(feed={"x": X}, fetch_list=[net[1], wrong])


def test_operators_in_fetch_lists_are_updates(net):
    with pytest.raises(TypeError, match="not an optimize_op, but received"):
        net[0].run(feed={"x": X}, fetch_list=[net[1], fluid.default_main_program().global_block().ops[0]])


def test_fetching_sequences_as_arrays_is_refused():
    x = fluid.data("x", [None, 2], "float32", lod_level=1)
    y = L.scale(x, 2.0)
    tensor = fluid.create_lod_tensor(np.ones((3, 2), "float32"), [[1, 2]], fluid.CPUPlace())
    exe = fluid.Executor()
    (got,) = exe.run(feed={"x": tensor}, fetch_list=[y], return_numpy=False)
    assert got.recursive_sequence_lengths() == [[1, 2]]
    refuses(lambda: exe.run(feed={"x": tensor}, fetch_list=[y]), RuntimeError, "return_numpy")
