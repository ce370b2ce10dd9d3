"""Communicators against NumPy: changes of GEO-SGD, and gradients sent in the background."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.selected_rows import SelectedRows
from fluidlite.executor.parameter_server import Asynchronous, GeoSgd, Parts, merged, split_rows

ROWS = np.array([0, 2, 3, 5])


class Line:
    """Two servers at once: variables by (endpoint, name), to which changes are added; notes what it was sent."""

    def __init__(self, held):
        self.held, self.sent, self.moved = held, [], {}

    def send(self, endpoint, arrays):
        for name, value in arrays.items():
            self.sent.append((endpoint, name, value))
            mine = self.held.get((endpoint, name.removesuffix(".delta")))
            if name.endswith(".delta") and isinstance(value, SelectedRows):
                mine[value.rows] += value.values
                self.moved.setdefault(name.removesuffix(".delta"), set()).update(value.rows.tolist())
            elif name.endswith(".delta"):
                mine += value

    def flush(self):
        if any(value is None for _, _, value in self.sent):
            raise ConnectionError("gone")

    def get(self, endpoints, names):
        return [self.held[pair].copy() for pair in zip(endpoints, names, strict=True)]

    def changes(self, endpoints, names):
        found = []
        for endpoint, name in zip(endpoints, names, strict=True):
            mine = self.held[endpoint, name]
            rows = np.array(sorted(self.moved.pop(name, ())), "int64")
            found.append(SelectedRows(rows, mine[rows].copy(), len(mine)))
        return found


def scope_of(**arrays):
    scope = fluid.Scope()
    for name, value in arrays.items():
        scope.var(name).get_tensor().set(value, fluid.CPUPlace())
    return scope


def value(scope, name):
    return np.array(scope.find_var(name).get_tensor())


def test_two_trainers_exchange_changes():
    start = np.arange(6, dtype="float32").reshape(3, 2)
    line = Line({("a", "w.block0"): start[:2].copy(), ("b", "w.block1"): start[2:].copy()})
    parts = {"w": Parts(["a", "b"], ["w.block0", "w.block1"], [2, 1])}
    scopes = [scope_of(w=np.zeros((3, 2), "float32")) for _ in range(2)]
    trainers = [GeoSgd(parts, [], 2, 2) for _ in range(2)]
    known, here, server = [start.copy(), start.copy()], [start.copy(), start.copy()], start.copy()
    for one, scope in zip(trainers, scopes, strict=True):
        one.start(line, scope)
        np.testing.assert_array_equal(value(scope, "w"), start)
    for step in range(4):
        for k in range(2):
            moved = np.full((3, 2), 0.5 * (k + 1) + step, "float32")
            scopes[k].find_var("w").get_tensor().set(value(scopes[k], "w") + moved)
            trainers[k].step({})
            here[k] = here[k] + moved
            if step % 2:
                change = (here[k] - known[k]) / 2
                server = server + change
                here[k] = here[k] + server - (known[k] + change)
                known[k] = server.copy()
            np.testing.assert_allclose(value(scopes[k], "w"), here[k], rtol=1e-6)
    np.testing.assert_allclose(
        np.concatenate(line.get(["a", "b"], ["w.block0", "w.block1"])), server, rtol=1e-6
    )


def test_only_rows_that_were_looked_up_are_exchanged():
    table = np.ones((6, 2), "float32")
    line = Line({("a", "t.block0"): table[:4].copy(), ("b", "t.block1"): table[4:].copy()})
    parts = {"t": Parts(["a", "b"], ["t.block0", "t.block1"], [4, 2])}
    scope = scope_of(t=np.zeros((6, 2), "float32"))
    one = GeoSgd(parts, ["t"], 1, 1)
    one.start(line, scope)
    held = scope.find_var("t").get_tensor()
    memory = held.array
    held.set(value(scope, "t") + np.arange(6, dtype="float32")[:, None])
    line.held["b", "t.block1"][0] += 10  # another trainer
    line.moved["t.block1"] = {0}
    one.step({"t": [np.array([[5], [2]]), np.array([2, 0])]})
    assert [(e, n, v.rows.tolist()) for e, n, v in line.sent] == [
        ("a", "t.block0.delta", [0, 2]),
        ("b", "t.block1.delta", [1]),
    ]
    expected = 1 + np.arange(6, dtype="float32")[:, None] * np.ones((1, 2), "float32")
    expected[4] += 10
    np.testing.assert_array_equal(value(scope, "t"), expected)
    assert scope.find_var("t").get_tensor().array is memory
    np.testing.assert_array_equal(line.held["a", "t.block0"][:, 0], [1, 1, 3, 1])


def test_geo_sgd_needs_a_startup_program():
    with pytest.raises(RuntimeError, match="run the startup program after"):
        GeoSgd({}, [], 1, 1).step({})


@pytest.mark.parametrize("adds, expected", [(True, 6.0), (False, 2.0)])
def test_merged(adds, expected):
    arrays = [np.full(2, k, "float32") for k in (1, 2, 3)]
    np.testing.assert_array_equal(merged(arrays, adds), [expected] * 2)
    rows = [SelectedRows(ROWS[:2], np.full((2, 1), k, "float32"), 6) for k in (1, 2, 3)]
    whole = np.zeros((6, 1), "float32")
    both = merged(rows, adds)
    np.add.at(whole, both.rows, both.values)
    np.testing.assert_allclose(whole[[0, 2]], expected, rtol=1e-6)
    assert both.height == 6


def test_rows_are_split_by_server():
    first, second = split_rows(SelectedRows(ROWS, np.arange(4.0).reshape(4, 1), 6), [3, 3])
    assert first.rows.tolist() == [0, 2] and second.rows.tolist() == [0, 2]
    assert second.values.ravel().tolist() == [2, 3] and second.height == 3


def test_gradients_are_sent_in_the_background_and_parameters_received():
    line = Line({("a", "w"): np.array([7.0])})
    parts = Parts(["a"], ["w@GRAD"], [1])
    running = Asynchronous({"w": Parts(["a"], ["w"], [])}, 3, 2, 1, True)
    given = np.ones(1)
    for _ in range(5):
        running.send(line, parts, given, False)
        given += 1  # what was given is a copy
    counter = Parts(["a", "b"], ["counter"], [])
    running.send(line, counter, np.array([1]), True)
    running.stop()
    assert sum(v[0] for _, n, v in line.sent if n == "w@GRAD") == 15
    assert [e for e, n, _ in line.sent if n == "counter"] == ["a", "b"]
    assert running.newest("w").tolist() == [7.0] and running.newest("w") is None


def test_a_background_error_is_raised_by_the_next_send():
    line = Line({})
    line.flush = lambda: (_ for _ in ()).throw(ConnectionError("gone"))
    running = Asynchronous({}, 1, 1, 1, False)
    parts = Parts(["a"], ["w@GRAD"], [1])
    with pytest.raises(ConnectionError, match="gone"):
        for _ in range(1000):
            running.send(line, parts, np.ones(1), False)
    with pytest.raises(ConnectionError, match="gone"):
        running.stop()
