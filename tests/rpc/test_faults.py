"""Trainers and servers that die: the other side says who, at once, and one may come back."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

pytest.importorskip("grpc", reason="parameter servers need grpcio")

from fluidlite.distributed.rpc import RpcError, ServerLost, TrainerLost, transport
from fluidlite.distributed.rpc.client import Client
from fluidlite.distributed.rpc.server import ParameterServer

from .ports import free_port

SERVER = """
import sys, numpy as np
from fluidlite.distributed.rpc.server import ParameterServer
class Held:
    def take(self, name, value, trainer): pass
    def update(self): pass
    def get(self, name, trainer): return {"w": np.ones(2, "float32")}[name]
ParameterServer(sys.argv[1], 1, Held(), True).run()
"""
TRAINER = """
import sys, time, numpy as np
from fluidlite.distributed.rpc.client import Client
one = Client(1)
one.get([sys.argv[1]], ["w"])
one.barrier([sys.argv[1]])
one.get([sys.argv[1]], ["w"])
print("ready", flush=True)
time.sleep(60)
"""

LEAVING = """
import sys, numpy as np
from fluidlite.distributed.rpc.client import client
one = client(1)
one.barrier([sys.argv[1]])
one.get([sys.argv[1]], ["w"])
"""


class Held:
    """A store of one variable, which an update adds 1 to."""

    def __init__(self):
        self.w = np.zeros(2, "float32")
        self.taken = []

    def take(self, name, value, trainer):
        self.taken.append((name, trainer))

    def update(self):
        self.w += 1

    def get(self, name, trainer):
        return {"w": self.w.copy()}[name]


class Serving(threading.Thread):
    """A server in a thread; `error` is what it has raised."""

    def __init__(self, trainers, sync=True):
        super().__init__(daemon=True)
        self.endpoint = f"127.0.0.1:{free_port()}"
        self.store, self.error = Held(), None
        self.server = ParameterServer(self.endpoint, trainers, self.store, sync)
        self.start()

    def run(self):
        try:
            self.server.run()
        except Exception as error:
            self.error = error


def process(script, endpoint):
    return subprocess.Popen([sys.executable, "-c", script, endpoint], stdout=subprocess.PIPE, text=True)


def test_rounds_wait_for_all_trainers():
    serving = Serving(2)
    one, other = Client(0), Client(1)
    one.barrier([serving.endpoint])
    found = []
    waiting = threading.Thread(target=lambda: found.extend(one.get([serving.endpoint], ["w"])))
    waiting.start()
    np.testing.assert_array_equal(other.get([serving.endpoint], ["w"])[0], [0, 0])
    waiting.join(0.2)
    assert waiting.is_alive(), "a trainer got parameters before the others had sent"
    other.barrier([serving.endpoint])
    waiting.join(5)
    np.testing.assert_array_equal(found[0], [1, 1])
    one.complete()
    other.barrier([serving.endpoint])  # the one that is done is not waited for
    np.testing.assert_array_equal(other.get([serving.endpoint], ["w"])[0], [2, 2])
    other.complete()
    serving.join(5)
    assert not serving.is_alive() and serving.error is None


def test_a_server_says_what_is_wrong():
    serving = Serving(1)
    one = Client(0)
    with pytest.raises(RpcError, match=r"asked by trainer 0 to give v: .*no variable 'v'"):
        one.get([serving.endpoint], ["v"])
    with pytest.raises(RpcError, match="1 trainers, none with number 3"):
        Client(3).get([serving.endpoint], ["w"])
    one.complete()
    serving.join(5)


@pytest.mark.parametrize(("token", "enters"), [("sésame", True), ("sesame", False), ("", False)])
def test_trainers_and_servers_have_a_secret_in_common(token, enters, monkeypatch):
    monkeypatch.setenv("FLUIDLITE_PS_TOKEN", "sésame")
    serving, one, other = Serving(2), Client(0), Client(1)
    one.get([serving.endpoint], ["w"])
    monkeypatch.setenv("FLUIDLITE_PS_TOKEN", token)
    if enters:
        other.get([serving.endpoint], ["w"])
    else:
        with pytest.raises(RpcError, match="refuses trainer 1: its FLUIDLITE_PS_TOKEN is not the server's"):
            other.get([serving.endpoint], ["w"])
        monkeypatch.setenv("FLUIDLITE_PS_TOKEN", "sésame")
        other.get([serving.endpoint], ["w"])
    one.complete()
    other.complete()
    serving.join(5)
    assert not serving.is_alive() and serving.error is None


def test_no_server_at_all(monkeypatch):
    monkeypatch.setattr("fluidlite.distributed.rpc.client.PATIENCE", 0.3)
    with pytest.raises(ServerLost, match=r"trainer 2: no parameter server at 127.0.0.1:\d+ within 0.3 s"):
        Client(2).get([f"127.0.0.1:{free_port()}"], ["w"])


@pytest.mark.skipif(sys.platform != "linux", reason="where 127.0.0.2 is this machine as well")
def test_a_server_listens_at_its_address_and_at_no_other():
    serving = Serving(1)
    one = Client(0)
    one.get([serving.endpoint], ["w"])
    port = int(serving.endpoint.rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), 5)
    socket.create_connection(("127.0.0.1", port), 5).close()
    one.complete()
    serving.join(5)
    assert not serving.is_alive()


def test_a_place_that_is_taken():
    serving = Serving(1)
    one = Client(0)
    one.get([serving.endpoint], ["w"])
    with pytest.raises(OSError, match="cannot listen at"):
        ParameterServer(serving.endpoint, 1, Held(), True).run()
    one.complete()
    serving.join(5)
    assert not serving.is_alive()


def test_a_killed_trainer_is_named():
    serving = Serving(2)
    killed = process(TRAINER, serving.endpoint)
    one = Client(0)
    one.get([serving.endpoint], ["w"])
    one.barrier([serving.endpoint])
    assert killed.stdout.readline().strip() == "ready"
    one.barrier([serving.endpoint])
    killed.kill()
    begin = time.monotonic()
    with pytest.raises(RpcError):
        one.get([serving.endpoint], ["w"])
    serving.join(5)
    assert time.monotonic() - begin < 5
    assert isinstance(serving.error, TrainerLost)
    assert "has lost trainer 1 of 2; the last step that it reported is 1" in str(serving.error)
    killed.wait()
    killed.stdout.close()


def test_without_barriers_a_trainer_may_come_back(capfd):
    serving = Serving(2, sync=False)
    killed = process(TRAINER, serving.endpoint)
    one = Client(0)
    one.get([serving.endpoint], ["w"])
    assert killed.stdout.readline().strip() == "ready"
    killed.kill()
    killed.wait()
    killed.stdout.close()
    one.get([serving.endpoint], ["w"])
    other = Client(1)
    other.get([serving.endpoint], ["w"])
    one.complete()
    other.complete()
    serving.join(5)
    assert not serving.is_alive() and serving.error is None
    assert "has lost trainer 1 of 2" in capfd.readouterr().err


def test_a_killed_server_is_named_and_another_takes_its_place():
    endpoint = f"127.0.0.1:{free_port()}"
    server = process(SERVER, endpoint)
    one = Client(0)
    one.get([endpoint], ["w"])
    one.barrier([endpoint])
    server.kill()
    server.wait()
    server.stdout.close()
    begin = time.monotonic()
    with pytest.raises(
        ServerLost, match=rf"trainer 0 has lost parameter server {endpoint} at step 1, in a request to give w"
    ):
        one.get([endpoint], ["w"])
    assert time.monotonic() - begin < 5
    restarted = process(SERVER, endpoint)
    other = Client(0)
    np.testing.assert_array_equal(other.get([endpoint], ["w"])[0], [1, 1])
    other.complete()
    assert restarted.wait(5) == 0
    restarted.stdout.close()


def test_a_server_without_barriers_comes_back_alone(monkeypatch, capfd):
    """Its trainer waits for it, and repeats its request and messages that have not arrived."""
    monkeypatch.setenv("FLUIDLITE_TRAINERS_RETURN", "1")
    endpoint = f"127.0.0.1:{free_port()}"
    script = SERVER.replace("True).run", "False).run")
    server = process(script, endpoint)
    one = Client(0)
    one.get([endpoint], ["w"])
    for _ in range(2):
        server.kill()
        server.wait()
        server.stdout.close()
        found = []

        def exchange(found=found):
            one.send(endpoint, {"g": np.ones(2, "float32")})
            found += one.get([endpoint], ["w"])

        waiting = threading.Thread(target=exchange)
        waiting.start()
        waiting.join(0.5)
        assert waiting.is_alive(), "a trainer has gone on without its server"
        server = process(script, endpoint)
        waiting.join(20)
        np.testing.assert_array_equal(found[0], [1, 1])
    one.complete()
    assert server.wait(5) == 0
    server.stdout.close()
    lost = f"trainer 0 has lost parameter server {endpoint} at step 0, and waits for it to come back"
    assert capfd.readouterr().err.count(lost) == 2


def test_a_server_that_says_nothing_is_lost(monkeypatch):
    """A machine that has gone: the connection stays open without answers. (The default timeouts are twice as long.)"""
    quick = {
        "grpc.keepalive_time_ms": 1000,
        "grpc.keepalive_timeout_ms": 300,
        "grpc.http2.ping_timeout_ms": 300,
    }
    given = dict(transport._OPTIONS)
    assert sum(given[name] for name in list(quick)[::2]) < 5000 and given["grpc.keepalive_timeout_ms"] < 3000
    monkeypatch.setattr(transport, "_OPTIONS", list({**given, **quick}.items()))
    endpoint = f"127.0.0.1:{free_port()}"
    server = process(SERVER, endpoint)
    one = Client(0)
    one.get([endpoint], ["w"])
    try:
        server.send_signal(signal.SIGSTOP)
        os.waitpid(server.pid, os.WUNTRACED)  # until it has stopped: it might still answer
        begin = time.monotonic()
        with pytest.raises(ServerLost, match=rf"trainer 0 has lost parameter server {endpoint} at step 0"):
            one.get([endpoint], ["w"])
        assert time.monotonic() - begin < 5
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


@pytest.mark.parametrize("last, missed", [("", True), ("raise ValueError", False)])
def test_the_end_of_a_trainer_is_an_error_if_another_one_waits(last, missed):
    """One that ends of an error is a loss at once."""
    serving = Serving(2)
    one = Client(0)
    ends = subprocess.Popen(
        [sys.executable, "-c", LEAVING + last, serving.endpoint], stderr=subprocess.DEVNULL
    )
    one.barrier([serving.endpoint])
    one.get([serving.endpoint], ["w"])
    assert ends.wait(10) == (0 if missed else 1)
    if missed:
        np.testing.assert_array_equal(one.get([serving.endpoint], ["w"])[0], [1, 1])
    with pytest.raises(RpcError, match="has lost trainer 1 of 2; the last step that it reported is 1"):
        one.barrier([serving.endpoint])
        one.get([serving.endpoint], ["w"])
    serving.join(5)
    assert isinstance(serving.error, TrainerLost)


def test_a_server_ends_when_all_trainers_have():
    serving = Serving(2)
    with subprocess.Popen([sys.executable, "-c", LEAVING, serving.endpoint]) as ends:
        one = Client(0)
        one.barrier([serving.endpoint])
        assert ends.wait(10) == 0
    one.complete("leave")
    serving.join(5)
    assert not serving.is_alive() and serving.error is None
