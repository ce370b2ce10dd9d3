"""`fluid.contrib.slim.nas`: controllers that answer agents."""

import socket
import tempfile

import pytest

from fluidlite.contrib.slim import nas
from fluidlite.contrib.slim.nas import lock


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
        lock.lock(file)
        lock.unlock(file)
    assert (lock.LOCK_EX, lock.LOCK_UN) == (2, 8)
