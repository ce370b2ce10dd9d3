"""Malformed and hostile messages: a server refuses them, changes nothing, and goes on serving."""

import json
import re
import struct
import threading
import time

import numpy as np
import pytest

pytest.importorskip("grpc", reason="parameter servers need grpcio")

import grpc

import fluidlite as fluid
from fluidlite import layers
from fluidlite.base.selected_rows import SelectedRows
from fluidlite.distributed.rpc import Message
from fluidlite.distributed.rpc.server import ParameterServer
from fluidlite.executor.interpreter.segmented import SegmentedExecutor
from fluidlite.executor.interpreter.segments import ProgramSegments
from fluidlite.executor.interpreter.server import ServedParameters

from .ports import free_port


def with_header(text, data=b"", size=None):
    head = text if isinstance(text, bytes) else json.dumps(text).encode()
    return b"FLP1" + struct.pack("<I", len(head) if size is None else size) + head + data


def header(command="send", trainer=0, info=None, listed=()):
    return [command, trainer, {} if info is None else info, list(listed)]


class Target:
    """A server of a model with a table, and a line to it on which anything can be said."""

    def __init__(self):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            ids = fluid.data("ids", [None, 1], "int64")
            rows = layers.embedding(ids, [40, 8], is_sparse=True, param_attr=fluid.ParamAttr("emb"))
            loss = layers.mean(layers.fc(rows, 1, param_attr=fluid.ParamAttr("w")))
            fluid.optimizer.SGD(0.1).minimize(loss)
        self.endpoint = f"127.0.0.1:{free_port()}"
        t = fluid.DistributeTranspiler()
        t.transpile(0, main, self.endpoint, 2, startup_program=startup)
        program, startup = t.get_pserver_programs(self.endpoint)
        self.scope = fluid.Scope()
        fluid.Executor().run(startup, scope=self.scope)
        op = next(op for op in program.global_block().ops if op.type == "listen_and_serv")
        run = SegmentedExecutor(ProgramSegments(program, ()), self.scope, {})
        self.server = ParameterServer(self.endpoint, 2, ServedParameters(op, run), sync=True)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        self.channel = grpc.insecure_channel(self.endpoint)
        self.call = self.channel.unary_unary("/fluidlite.ParameterServer/Call")
        self.watch = self.channel.unary_stream("/fluidlite.ParameterServer/Watch")
        self.streams = [self.watch(b"%d" % trainer, wait_for_ready=True) for trainer in range(2)]
        for trainer, stream in enumerate(self.streams):
            assert next(stream) == b"here"
            assert self.say(Message("get", trainer, {"names": ["w"]}).encode()).command == "values"

    def say(self, data):
        return Message.decode(self.call(data, timeout=10, wait_for_ready=True))

    def values(self):
        return {name: np.array(self.scope.find_var(name).get_tensor()) for name in ("emb", "w")}


@pytest.fixture(scope="module")
def target():
    made = Target()
    yield made
    for trainer in range(2):
        made.say(Message("complete", trainer).encode())
    made.thread.join(10)
    made.channel.close()
    assert not made.thread.is_alive()


FLOATS = np.zeros(8, "float32").tobytes()


@pytest.mark.parametrize(
    "data, refusal",
    {
        "nothing": (b"", "got b''"),
        "a pickle": (b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94.", "fluidlite begins with"),
        "a cut header": (with_header(header())[:-2], "cannot have a header"),
        "a header that lies": (with_header(header(), size=2**32 - 1), "cannot have a header of 4294967295"),
        "no header": (with_header(b"\xff" * 40), "header of a message cannot be read"),
        "a header of brackets": (with_header(b"[" * 100_000), "header of a message cannot be read"),
        "an endless number": (with_header(b'["send", Infinity, {}, []]'), "cannot be read"),
        "huge": (with_header(header(listed=[["w@GRAD", "float32", [2**40, 2**40], None]]), FLOATS), "ends before"),
        "negative": (with_header(header(listed=[["w@GRAD", "float32", [-8, -1], None]]), FLOATS), "shape \\[-8, -1\\]"),
        "objects": (with_header(header(listed=[["w@GRAD", "object", [1], None]]), FLOATS), "type 'object'"),
        "excess bytes": (with_header(header(listed=[["w@GRAD", "float32", [7, 1], None]]), FLOATS), "4 bytes more"),
        "an unknown trainer": (with_header(header(trainer=2)), "2 trainers, none with number 2"),
        "a negative trainer": (with_header(header(trainer=-1)), "2 trainers, none with number -1"),
        "another command": (with_header(header("exec")), "no command 'exec'"),
        "no step": (with_header(header(info={"step": "many"})), "ValueError"),
        "names that are none": (with_header(header("get", info={"names": [{}]})), "TypeError"),
        "no names": (with_header(header("get")), "KeyError"),
        "no such table": (Message("rows", 0, {"table": "x"}, {"ids": np.zeros(1, "int64")}).encode(), "KeyError"),
        "rows that are not": (Message("rows", 0, {"table": "emb"}, {"ids": np.array([40])}).encode(), "rows 0 to 39"),
        "rows of reals": (Message("rows", 0, {"table": "emb"}, {"ids": np.zeros(1)}).encode(), "must be int64"),
        "another size": (Message("send", arrays={"w@GRAD": np.zeros((9, 1), "float32")}).encode(), "shape \\[8, 1\\]"),
        "another type": (Message("send", arrays={"w@GRAD": np.zeros((8, 1))}).encode(), "must be float32"),
        "no gradient": (Message("send", arrays={"w": np.zeros((8, 1), "float32")}).encode(), "none of this server's"),
        "an array for rows": (Message("send", arrays={"emb@GRAD": np.zeros((40, 8), "f4")}).encode(), "SELECTED_ROWS"),
        "another height": (
            Message("send", arrays={"emb@GRAD": SelectedRows(np.array([44]), np.zeros((1, 8), "f4"), 50)}).encode(),
            "shape \\[40, 8\\]",
        ),
        "rows beyond the table": (
            with_header(header(listed=[["emb@GRAD", "float32", [1, 8], 40]]), struct.pack("<q", 40) + FLOATS),
            "rows from 40 to 40 of 40",
        ),
    }.values(),
)  # fmt: skip
def test_a_server_refuses(target, data, refusal):
    before = target.values()
    reply = target.say(data)
    assert reply.command == "error"
    assert re.search(refusal, reply.info["text"])
    for name, value in target.values().items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.parametrize("number", [b"", b"-1", b"\xff\xfe", b"1" * 5000, b"77"])
def test_those_who_watch_under_other_names_are_refused(target, number):
    for watching in [target.watch(number, wait_for_ready=True) for _ in range(40)]:
        with pytest.raises(grpc.RpcError) as refused:
            next(watching)
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert target.say(Message("get", info={"names": ["w"]}).encode()).command == "values"
    assert target.thread.is_alive() and not target.server._gone


def test_a_stranger_who_says_that_it_is_a_trainer_and_leaves_ends_nothing(target):
    channel = grpc.insecure_channel(target.endpoint, [("grpc.use_local_subchannel_pool", 1)])
    call = channel.unary_unary("/fluidlite.ParameterServer/Call")
    reply = Message.decode(call(Message("complete", 1).encode(), timeout=10, wait_for_ready=True))
    assert reply.command == "error" and "has not identified itself as trainer 1's" in reply.info["text"]
    watch = channel.unary_stream("/fluidlite.ParameterServer/Watch")
    streams = [watch(b"1") for _ in range(40)]
    for stream in streams:
        next(stream)  # the one before is ended for it
    assert len(target.server._streams) == 3
    channel.close()
    left = time.monotonic() + 10
    while len(target.server._streams) > 2:
        assert time.monotonic() < left
        time.sleep(0.01)
    assert target.say(Message("get", 1, info={"names": ["w"]}).encode()).command == "values"
    assert not target.server._gone and not target.server._done


def test_a_server_does_not_take_what_its_own_trainers_did_not_send(target):
    """After all of the above, a round counts as ever."""
    before = target.values()["w"]
    for trainer in range(2):
        gradient = np.full((8, 1), 1.0 + trainer, "float32")
        assert target.say(Message("send", trainer, arrays={"w@GRAD": gradient}).encode()).command == "ok"
        assert target.say(Message("send_barrier", trainer).encode()).command == "ok"
    np.testing.assert_allclose(target.values()["w"], before - 0.1 * 1.5, rtol=1e-6)
