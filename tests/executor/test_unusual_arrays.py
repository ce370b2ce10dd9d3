"""Arrays as users have them (unaligned, read-only, of another byte order or type), through every door."""

import threading

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.arrays import is_plain, owned, plain
from fluidlite.ops import registry

from ..engines import run_by

X = np.arange(12, dtype="float32").reshape(4, 3)
Y = np.array([[0], [2], [1], [2]], "int64")


class Subclass(np.ndarray):
    """An array of a kind that some libraries return."""


def unaligned(array):
    memory = bytearray(array.nbytes + 1)
    made = np.frombuffer(memory, array.dtype, offset=1, count=array.size).reshape(array.shape)
    made[...] = array
    assert not made.flags.aligned
    return made


def packed(array):
    rows = np.zeros(len(array), np.dtype([("tag", "u1"), ("value", array.dtype, array.shape[1:])]))
    rows["value"] = array
    return rows["value"]


def readonly(array):
    array = array.copy()
    array.flags.writeable = False
    return array


UNUSUAL = {
    "unaligned": unaligned,
    "packed": packed,
    "swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "fortran": np.asfortranarray,
    "negative": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "readonly": readonly,
    "subclass": lambda a: a.view(Subclass),
    "broadcast": lambda a: np.broadcast_to(a.copy(), (1, *a.shape))[0],
    "longlong": lambda a: a.astype(np.longlong) if a.dtype.kind == "i" else unaligned(a),
}
each = pytest.mark.parametrize("unusual", UNUSUAL.values(), ids=UNUSUAL.keys())


@each
@pytest.mark.parametrize("array", [X, Y], ids=["x", "y"])
def test_plain_arrays_hold_the_same_elements(unusual, array):
    made = plain(unusual(array))
    assert is_plain(made) and made.dtype.num == array.dtype.num
    np.testing.assert_array_equal(made, array)
    writeable = owned(unusual(array))
    assert is_plain(writeable) and writeable.flags.writeable


def test_a_plain_array_is_not_copied():
    assert plain(X) is X
    assert np.shares_memory(plain(X.view(Subclass)), X)


def classifier():
    x, y = fluid.data("x", [None, 3], "float32"), fluid.data("y", [None, 1], "int64")
    guess = fluid.layers.fc(x, 3, act="softmax", param_attr="w", bias_attr="b")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(guess, y))
    fluid.optimizer.Adam(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe, loss


def losses(exe, loss, give, program=None):
    """The losses of a step on plain arrays, then of some on arrays that `give` returns for other batches."""
    found = []
    for number in range(4):
        feed = {"x": X * (1 + number) / 10, "y": np.roll(Y, number, axis=0)}
        feed = feed if number == 0 else {name: give(array) for name, array in feed.items()}
        found.append(exe.run(program, feed=feed, fetch_list=[loss])[0].copy())
    return np.array(found)


def lod_tensor(array):
    tensor = fluid.LoDTensor()
    tensor.set(array, fluid.CPUPlace())
    return tensor


DOORS = {
    "feed": lambda unusual: unusual,
    "LoDTensor.set": lambda unusual: lambda a: lod_tensor(unusual(a)),
    "wrapped": lambda unusual: lambda a: fluid.LoDTensor.wrap(unusual(a)),
}


@each
@pytest.mark.parametrize("door", DOORS)
def test_unusual_feeds_give_the_results_of_clean_ones(unusual, door):
    exe, loss = classifier()
    names = fluid.global_scope().local_var_names()
    start = {n: np.array(fluid.global_scope().find_var(n).get_tensor()) for n in names}
    expected = losses(exe, loss, np.array)
    for name, value in start.items():
        fluid.global_scope().find_var(name).get_tensor().set(value, fluid.CPUPlace())
    np.testing.assert_array_equal(losses(exe, loss, DOORS[door](unusual)), expected)


@each
def test_the_very_first_feed_may_be_unusual(unusual):
    exe, loss = classifier()
    (got,) = exe.run(feed={"x": unusual(X), "y": unusual(Y)}, fetch_list=[loss])
    assert np.isfinite(got).all()


@each
def test_data_parallel_programs_take_unusual_feeds(unusual):
    exe, loss = classifier()
    places = [fluid.CPUPlace()] * 2
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss.name, places=places)
    w = fluid.global_scope().find_var("w").get_tensor()
    before = np.array(w)
    (clean,) = exe.run(program, feed={"x": X, "y": Y}, fetch_list=[loss])
    w.set(before, fluid.CPUPlace())
    fluid.global_scope().find_var("b").get_tensor().set(np.zeros(3, "float32"), fluid.CPUPlace())
    (got,) = exe.run(program, feed={"x": unusual(X), "y": unusual(Y)}, fetch_list=[loss])
    np.testing.assert_array_equal(got, clean)


@each
def test_variables_of_the_scope_may_hold_unusual_arrays(unusual):
    x = fluid.data("x", [None, 3], "float32")
    out = fluid.layers.fc(x, 3, param_attr="w", bias_attr=False)
    fluid.optimizer.SGD(0.5).minimize(fluid.layers.mean(out))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    weight = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], "float32")
    var = fluid.global_scope().find_var("w")
    results = []
    for given in (weight, unusual(weight)):
        var.set(fluid.LoDTensor.wrap(given.copy() if given is weight else given))
        results.append([exe.run(feed={"x": X}, fetch_list=[out])[0] for _ in range(3)])
        results[-1].append(np.array(var.get_tensor()))
    for clean, got in zip(*results, strict=True):
        np.testing.assert_array_equal(got, clean)
    assert not np.array_equal(results[0][3], weight)  # the update reached the scope


@each
def test_eager_operators_take_unusual_arrays(unusual):
    with fluid.dygraph.guard():
        x = fluid.dygraph.to_variable(unusual(X))
        np.testing.assert_array_equal((x * 2.0).numpy(), X * 2)
        x.array = unusual(X)  # whatever put it there
        np.testing.assert_array_equal(fluid.layers.relu(x).numpy(), X)
        ids = fluid.dygraph.to_variable(unusual(Y))
        table = fluid.dygraph.Embedding([3, 2])
        np.testing.assert_array_equal(table(ids).numpy().reshape(4, 2), table.weight.numpy()[Y[:, 0]])


@each
def test_eager_optimizers_update_unusual_parameters_from_unusual_gradients(unusual):
    with fluid.dygraph.guard():
        found = []
        for make in (np.array, unusual):
            layer = fluid.dygraph.Linear(3, 3, bias_attr=False)
            layer.weight.set_value(np.eye(3, dtype="float32"))
            sgd = fluid.optimizer.Momentum(0.5, 0.9, parameter_list=layer.parameters())
            for _ in range(3):
                loss = fluid.layers.mean(layer(fluid.dygraph.to_variable(X)))
                loss.backward()
                layer.weight.grad_array = make(layer.weight.grad_array)
                layer.weight.array = make(layer.weight.array)
                sgd.minimize(loss)
                layer.clear_gradients()
            found.append(layer.weight.numpy())
        np.testing.assert_array_equal(*found)
        assert not np.array_equal(found[0], np.eye(3))


@each
def test_traced_functions_take_unusual_arrays(unusual):
    with fluid.dygraph.guard():
        layer = fluid.dygraph.Linear(3, 2)

        @fluid.dygraph.declarative
        def run(x):
            return fluid.layers.reduce_sum(layer(x), dim=1)

        for number in range(3):
            x = fluid.dygraph.to_variable(unusual(X + number))
            x.stop_gradient = False
            if number == 2:
                x.array = unusual(X + number)
                layer.weight.array = unusual(layer.weight.array)
            got = run(x)
            weight, bias = layer.weight.numpy(), layer.bias.numpy()
            np.testing.assert_allclose(
                got.numpy(), ((X + number) @ weight + bias).sum(axis=1), rtol=1e-5, atol=1e-5
            )
            got.backward()
            np.testing.assert_allclose(x.gradient(), np.tile(weight.sum(axis=1), (4, 1)), rtol=1e-5)


def test_a_plan_names_the_array_that_does_not_fit():
    exe, loss = classifier()
    exe.run(feed={"x": X, "y": Y}, fetch_list=[loss])
    main, scope = fluid.default_main_program(), fluid.global_scope()
    (caches,) = [found for found in main._plans.values()]
    plan = next(cache.plans[0] for cache in caches.values() if cache.plans)
    assert fluid.global_scope() is scope
    with pytest.raises(
        ValueError, match=r"variable 'x': this plan works on an array of float32 \[4, 3\], got one of"
    ):
        plan.take([X[:2], Y])
    with pytest.raises(RuntimeError, match="holds nothing"):
        plan.run()


def counter():
    """A program that changes a persistable variable, and reads what is fed afterwards."""
    x = fluid.data("x", [2, 3], "float32")
    state = fluid.layers.create_global_var([2, 3], 1.0, "float32", persistable=True, name="state")
    block = fluid.default_main_program().global_block()
    block.append_op(type="scale", inputs={"X": [state]}, outputs={"Out": [state]}, attrs={"scale": 2.0})
    out = fluid.layers.scale(x, 1.0)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe, out


@pytest.mark.parametrize("engine", ["plan", "interpret"])
def test_what_is_fed_is_not_changed_by_the_step(engine):
    """The memory of a variable of the scope, fed: Fluid copies it when the step begins."""
    exe, out = counter()
    tensor = fluid.global_scope().find_var("state").get_tensor()
    with run_by(engine):
        for number in range(3):
            (got,) = exe.run(feed={"x": tensor.array}, fetch_list=[out])
            np.testing.assert_array_equal(got, np.full((2, 3), 2.0**number, "float32"))
            (got,) = exe.run(feed={"x": fluid.LoDTensor.wrap(tensor.array)}, fetch_list=[out])
            np.testing.assert_array_equal(got, np.full((2, 3), 2.0 ** (number + 1), "float32"))
            tensor.set(tensor.array / 2, fluid.CPUPlace())


def test_one_array_may_be_fed_double_grad():
    a, b = fluid.data("a", [4, 3], "float32"), fluid.data("b", [4, 3], "float32")
    out = fluid.layers.elementwise_sub(a * 2.0, b)
    exe = fluid.Executor(fluid.CPUPlace())
    for _ in range(3):
        np.testing.assert_array_equal(exe.run(feed={"a": X, "b": X}, fetch_list=[out])[0], X)
        fed, got = exe.run(feed={"a": X, "b": X[::-1]}, fetch_list=["a", out])
        np.testing.assert_array_equal(got, 2 * X - X[::-1])
        assert not np.shares_memory(fed, X)


def test_variables_may_be_replaced_while_another_thread_runs_the_program(monkeypatch):
    """The plan was bound anew in the middle of the other thread's step: RuntimeError."""
    x = fluid.data("x", [None, 3], "float32")
    out = fluid.layers.cumsum(fluid.layers.fc(x, 3, param_attr="w", bias_attr=False), axis=1)
    exe, main, scope = fluid.Executor(fluid.CPUPlace()), fluid.default_main_program(), fluid.global_scope()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": X}, fetch_list=[out])
    definition = registry.find("cumsum")
    inside, proceed, results = threading.Event(), threading.Event(), []

    def call(*args, **options):
        inside.set()
        assert proceed.wait(20)
        return type(definition).call(definition, *args, **options)

    monkeypatch.setattr(definition, "call", call)

    def step():
        try:
            results.append(exe.run(main, feed={"x": X}, fetch_list=[out], scope=scope)[0])
        except RuntimeError as error:
            results.append(error)

    first, second = threading.Thread(target=step), threading.Thread(target=step)
    first.start()
    assert inside.wait(20)
    weight = np.eye(3, dtype="float32")
    scope.find_var("w").set(fluid.LoDTensor.wrap(weight))
    second.start()
    second.join(0.2)
    proceed.set()
    first.join()
    second.join()
    np.testing.assert_array_equal(results[1], np.cumsum(X, axis=1))
    assert results[0].shape == X.shape
