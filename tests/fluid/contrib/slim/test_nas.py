"""`fluid.contrib.slim.nas`: controllers that answer agents."""

import importlib
import logging
import socket
import tempfile

import pytest

import fluidlite as fluid
from fluidlite.contrib.slim import nas
from fluidlite.contrib.slim.nas import LOCK_EX, LOCK_UN, lock, unlock


class Counting:
    """A controller that offers one network after the other."""

    def __init__(self):
        self.seen = []

    def update(self, tokens, reward):
        self.seen.append((tokens, reward))

    def next_tokens(self):
        return [len(self.seen), 7]


@pytest.fixture
def served():
    controller = Counting()
    server = nas.ControllerServer(controller, key="k")
    server.start()
    yield controller, server
    server.close()


def test_agents_ask_and_tell(served):
    controller, server = served
    agent = nas.SearchAgent(server.ip(), server.port(), key="k")
    assert agent.next_tokens() == [0, 7]
    assert agent.update([3, 4], 0.125) == [1, 7] and agent.update([5], -2) == [2, 7]
    assert controller.seen == [([3, 4], 0.125), ([5], -2.0)]


def test_others_are_not_answered(served):
    controller, server = served
    with pytest.raises(ValueError, match="cut off"):
        nas.SearchAgent(server.ip(), server.port(), key="other").update([1], 1.0)
    for text in (b"update\tk\t1,x\t1.0\n", b"update\tk\t1\tnan\n", b"what\tk\n", b"nothing\n", b"\xff\n"):
        with socket.create_connection((server.ip(), server.port()), timeout=10) as other:
            other.sendall(text)
            assert other.recv(100) == b""
    assert not controller.seen
    assert nas.SearchAgent(server.ip(), server.port(), key="k").next_tokens() == [0, 7]


def test_a_search_ends():
    server = nas.ControllerServer(Counting(), search_steps=1)
    thread = server.start()
    nas.SearchAgent(server.ip(), server.port()).update([1], 1.0)
    thread.join(10)
    assert not thread.is_alive()
    with pytest.raises(OSError, match="refused"):
        nas.SearchAgent(server.ip(), server.port()).next_tokens()


def test_spaces_and_locks():
    space = nas.SearchSpace()
    for ask in (space.init_tokens, space.range_table, lambda: space.create_net([1])):
        with pytest.raises(NotImplementedError, match="Abstract"):
            ask()
    with tempfile.TemporaryFile() as file:
        lock(file)
        unlock(file)
    assert (LOCK_EX, LOCK_UN) == (2, 8)


class Needing:
    """A graph, context and search space in one, whose networks need the listed numbers of operations in order."""

    def __init__(self, needs, log):
        self.needs, self.log = list(needs), log
        self.search_space = self.eval_graph = self.optimize_graph = self
        self.place = fluid.CPUPlace()
        self.eval_results = {"acc": [0.5]}
        self.epoch_id = 0

    def flops(self):
        return self.needs.pop(0) if self.needs else 10

    def compile(self):
        self.log.append("trains")

    def init_tokens(self):
        return [1, 2]

    def range_table(self):
        return [9, 9]

    def create_net(self, tokens):
        self.log.append(f"net {tokens}")
        programs = [fluid.Program() for _ in range(3)]
        return (*programs, [], [], "train reader", "eval reader")

    def get_model_latency(self, program):
        return 3.0 if self.log.count("late") < 2 and not self.log.append("late") else 1.0


class Counts:
    """A controller that proposes consecutive numbers and logs its calls."""

    def __init__(self, log):
        self.log, self.made = log, 0

    def reset(self, table, tokens, constraint=None):
        self.log.append(f"reset {table} {tokens}")

    def next_tokens(self, base=None):
        self.made += 1
        self.log.append(f"next {base}")
        return [self.made, 5]

    def update(self, tokens, reward):
        self.log.append(f"update {tokens} {reward}")


@pytest.mark.parametrize(
    "needs, retrain, latency, expected",
    [
        (
            [200, 150, 180, 90, 95, 300, 80],
            1,
            0,
            # What exceeds the limit is not trained; the next is made of the last that needed less than the first.
            [
                "net [1, 2]", "next [1, 2]", "net [1, 5]", "next [1, 5]", "net [2, 5]", "next [2, 5]", "net [3, 5]",
                "trains", "update [3, 5] 0.5", "next None",
                "net [4, 5]", "next [4, 5]", "net [5, 5]", "trains", "update [5, 5] 0.5", "next None",
            ],
        ),
        ([90, 300], 2, 0, ["net [1, 2]", "trains", "update [1, 2] 0.0", "next None"]),
        (
            [10] * 20,
            0,
            2,
            [
                "net [1, 2]", "late", "next [1, 2]", "net [1, 5]", "late", "next [1, 2]", "net [2, 5]", "trains",
                "net [2, 5]", "update [2, 5] 0.5", "next None",
                "net [3, 5]", "trains", "net [3, 5]", "update [3, 5] 0.5", "next None",
            ],
        ),
    ],
)  # fmt: skip
def test_networks_are_proposed_trained_and_rewarded(needs, retrain, latency, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = []
    context = Needing(needs, log)
    strategy = nas.LightNASStrategy(
        Counts(log), 4, 100, latency, retrain, "acc", server_ip="127.0.0.1", is_server=True
    )
    strategy.on_compression_begin(context)
    try:
        assert log.pop(0) == "reset [9, 9] [1, 2]" and isinstance(strategy, fluid.contrib.slim.core.Strategy)
        other = nas.LightNASStrategy(Counts([]), server_ip="127.0.0.1", is_server=True)
        other.on_compression_begin(context)  # finds the server of the first
        assert other.__getstate__()["_server_port"] == strategy.__getstate__()["_server_port"] != 0
        assert "_server" not in other.__getstate__()
        for context.epoch_id in range(2):
            strategy.on_epoch_begin(context)
            strategy.on_epoch_end(context)
    finally:
        strategy._server.close()
    assert log == expected
    assert (context.train_reader, context.eval_reader) == ("train reader", "eval reader")
    assert context.skip_training is (retrain == 0)


def test_lines_of_the_log_name_who_wrote_them():
    record = logging.LogRecord("", logging.INFO, "", 0, "asked", None, None)
    for module in ("controller_server", "light_nas_strategy"):
        logger = importlib.import_module(f"fluidlite.contrib.slim.nas.{module}")._logger
        assert logger.handlers[0].format(record).partition("-")[0] == module.title().replace("_", "").replace(
            "Nas", "NAS"
        )
