"""The formats beside those of static programs that `hostile.py` damages copies of, and how each is read."""

from __future__ import annotations

import importlib.util
import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fluidlite as fluid
from fluidlite import weights
from fluidlite.base import unique_name
from fluidlite.base.storage.messages import messages

SLOTS = b"2 1 2 3 0.5 1 2\n1 5 3 1 2 3\n3 7 8 9 3 4 5 6\n"


def _available(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) for package in packages)


class Formats:
    """Good files by kind, and for each what loads it and uses what comes out."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, bytes] = {}
        self.messages: dict[str, Any] = {"blocks": messages().ProgramDesc}
        """The types of those that are protocol-buffer messages."""
        self._readers: dict[str, tuple[Path, Callable[[Path], None]]] = {}

        def add(kind: str, data: bytes, read: Callable[[Path], None], name: str = "") -> None:
            self.files[kind] = data
            self._readers[kind] = folder / (name or f"damaged.{kind}"), read

        with unique_name.guard():
            add("blocks", _program_with_blocks(), _blocks)
        add("slots", SLOTS, _slots)
        with fluid.dygraph.guard():
            fluid.save_dygraph(fluid.dygraph.Linear(3, 4).state_dict(), str(folder / "dygraph"))
        add("dygraph", (folder / "dygraph.pdparams").read_bytes(), _dygraph, "dygraph.pdparams")
        if _available("safetensors"):
            weights.save(folder / "w", {"w": np.eye(3, dtype="float32"), "n": np.arange(4)})
            add("safetensors", (folder / "w").read_bytes(), lambda path: _used(weights.load(path)))
        if _available("tensorboardX"):
            add("events", _event_file(folder / "logs"), _events, "logs/events.out.tfevents.0")
        if _available("onnx"):
            from onnx import ModelProto

            self.messages |= dict.fromkeys(("onnx", "onnx blocks", "onnx places", "onnx steps"), ModelProto)
            add("onnx", onnx_model(), _onnx)
            add("onnx blocks", _onnx_blocks(), _onnx_loaded)
            add("onnx places", _onnx_places(), _onnx)
            add("onnx steps", _onnx_steps(), _onnx)

    def attempt(self, kind: str, data: bytes) -> None:
        """Load `data` and use what comes out of it."""
        path, read = self._readers[kind]
        path.write_bytes(data)
        read(path)


def _blocks(path: Path) -> None:
    program = fluid.Program.parse_from_string(path.read_bytes())
    str(program)
    program.clone(for_test=True).desc.serialize_to_string()
    fetches = [name for name in ("total", "chosen") if program.global_block().has_var(name)]
    with fluid.scope_guard(fluid.Scope()):
        feed = {"x": np.ones((3, 2, 4), "float32"), "n": np.array([2.0], "float32")}
        fluid.Executor(fluid.CPUPlace()).run(program, feed=feed, fetch_list=fetches)


def _slots(path: Path) -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()), unique_name.guard():
        dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
        shapes = {"ids": ([None, 1], "int64", 1), "dense": ([None, 3], "float32", 0)}
        dataset.set_use_var([fluid.data(name, *one) for name, one in shapes.items()])
        dataset.set_batch_size(2)
        dataset.set_filelist([str(path)])
        for feed in dataset._feeds():
            _used({name: np.asarray(value) for name, value in feed.items()})


def _dygraph(path: Path) -> None:
    with fluid.dygraph.guard():
        state, _ = fluid.load_dygraph(str(path.with_suffix("")))
        fluid.dygraph.Linear(3, 4).set_dict(state)


def _events(path: Path) -> None:
    from fluidlite.visual import curves

    curves.page(curves.runs(path.parent), "logs")


def _onnx(path: Path) -> None:
    from fluidlite import onnx

    with fluid.scope_guard(fluid.Scope()), unique_name.guard():
        program, feeds, fetches = onnx.load(path)
        images = np.random.default_rng(0).random((2, 1, 8, 8), np.float32)
        fluid.Executor(fluid.CPUPlace()).run(program, feed=dict.fromkeys(feeds, images), fetch_list=fetches)


def _onnx_loaded(path: Path) -> None:
    """Not run: damage makes loops endless."""
    from fluidlite import onnx

    with fluid.scope_guard(fluid.Scope()), unique_name.guard():
        str(onnx.load(path)[0])


def _used(state: dict[str, np.ndarray]) -> None:
    """Look at every element, as whoever loads arrays does."""
    for array in state.values():
        array.copy().tobytes()


def _program_with_blocks() -> bytes:
    """Steps, a branch in a branch, and their gradients; no loop that damage could make endless."""
    main = fluid.Program()
    L = fluid.layers
    with fluid.program_guard(main, fluid.Program()):
        x, n = fluid.data("x", [3, 2, 4], "float32"), fluid.data("n", [1], "float32")
        x.stop_gradient = False
        steps = L.StaticRNN()
        with steps.step():
            one = steps.step_input(x)
            before = steps.memory(shape=[-1, 4], batch_ref=one)
            after = L.tanh(L.elementwise_add(one, before))
            steps.update_memory(before, after)
            steps.step_output(after)
        total = L.reduce_sum(steps())
        inner = lambda: L.cond(L.less_than(n, n + 1.0), lambda: total * 2.0, lambda: total * 3.0)  # noqa: E731
        chosen = L.cond(L.less_than(n, total), inner, lambda: total)
        fluid.gradients([chosen], [x])
        L.assign(total, main.global_block().create_var(name="total", dtype="float32", shape=[1]))
        L.assign(chosen, main.global_block().create_var(name="chosen", dtype="float32", shape=[1]))
    return main.desc.serialize_to_string()


def _event_file(folder: Path) -> bytes:
    """The bytes of an event file of two curves."""
    from fluidlite.visual import LogWriter

    with LogWriter(str(folder)) as writer:
        for step in range(5):
            writer.add_scalar("loss", 1 / (step + 1), step, walltime=1e9 + step)
            writer.add_scalar("accuracy", step / 5, step, walltime=1e9 + step)
    (file,) = folder.glob("*tfevents*")
    data = file.read_bytes()
    file.unlink()
    return data


def _onnx_blocks() -> bytes:
    """Branches, a loop, a scan and sequences."""
    import onnx

    text = """
        zero = Constant <value = float {0.0}> ()
        three = Constant <value = int64 {3}> ()
        axes = Constant <value = int64[1] {0}> ()
        true = Constant <value = bool {1}> ()
        all = ReduceSum <keepdims = 0> (x)
        more = Greater (all, zero)
        some = If (more) <
            then_branch = yes () => (float[a, b] left) { left = Relu (x) },
            else_branch = no () => (float[c, d] right) { right = Neg (x) }
        >
        none = SequenceEmpty ()
        last, list, sums = Loop (three, true, some, none) <
            body = turn (int64 i, bool on, float[e, f] h, seq(float[g, k]) l)
                    => (bool again, float[m, n] after, seq(float[o, p]) longer, float[q] sum) {
                again = Identity (on)
                after = Concat <axis = 0> (h, x)
                longer = SequenceInsert (l, h)
                sum = ReduceSum <keepdims = 0> (after, axes)
            }
        >
        start = Constant <value = float[2] {1.0, 2.0}> ()
        end, steps = Scan <num_scan_inputs = 1,
            body = step (float[2] before, float[2] row) => (float[2] r, float[2] s) {
                r = Add (before, row)
                s = Mul (r, row)
            }
        > (start, last)
        first = SequenceAt (list, three)
        y = Concat <axis = 0> (steps, sums, first)
    """
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> m (float[n, 2] x) => (float[u, v] y) {{ {text} }}'
    )
    return bytes(model.SerializeToString())


def _onnx_places() -> bytes:
    """Nodes whose attributes and constants say where elements go, how wide results are, what letters mean."""
    import onnx
    from onnx import numpy_helper

    text = """<ir_version: 8, opset_import: ["" : 18]> g (float[n, 1, 8, 8] x) => (float[n, a, b, c] y) {
        r = Resize <mode = "cubic"> (x, , scales)
        q = QuantizeLinear (r, step, middle)
        d = DequantizeLinear (q, step, middle)
        p = Pad <mode = "wrap"> (d, pads)
        s = SpaceToDepth <blocksize = 2> (p)
        g = Gather <axis = 1> (s, rows)
        l = Squeeze (g, two)
        e = Einsum <equation = "ncij,jk->ncik"> (l, matrix)
        w = ScatterND (e, where, what)
        k = OneHot <axis = 1> (where, depth, values)
        m = AveragePool <kernel_shape = [2, 2], ceil_mode = 1, strides = [2, 2], pads = [0, 0, 1, 1]> (w)
        t = ConvTranspose <strides = [2, 2], output_padding = [1, 1]> (m, filter)
        o = Trilu <upper = 0> (t, diagonal)
        v, i = TopK <axis = 2, largest = 0> (o, most)
        y = GatherElements <axis = 2> (o, i)
    }"""
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)
    constants = {
        "scales": np.array([1, 1, 1.5, 1.25], "float32"), "step": np.float32(0.01), "middle": np.uint8(128),
        "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "rows": np.array([[0], [-1]]), "two": np.array([2]),
        "matrix": rng.random((6, 4), np.float32), "where": np.array([[0, 0], [1, -1]]),
        "what": rng.random((2, 7, 4), np.float32), "depth": np.array([3]), "values": np.array([0, 2], "float32"),
        "filter": rng.random((2, 3, 2, 2), np.float32), "diagonal": np.int64(1), "most": np.array([3]),
    }  # fmt: skip
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    return bytes(model.SerializeToString())


def _onnx_steps() -> bytes:
    """Recurrent nodes, products of bytes, and functions of the model, in an opset of old."""
    import onnx
    from onnx import numpy_helper

    text = """<ir_version: 8, opset_import: ["" : 11, "own" : 1]> g (float[n, 1, 8, 8] x) => (float[a, b, c] y) {
        f = Softmax <axis = 2> (x)
        t = own.Twice (f)
        s = Squeeze <axes = [1]> (t)
        h, l, m = LSTM <hidden_size = 4, direction = "bidirectional", clip = 0.5,
            activations = ["Sigmoid", "Affine", "Tanh", "HardSigmoid", "Tanh", "Elu"],
            activation_alpha = [0.5, 0.3, 0.9], activation_beta = [0.1, 0.4]> (s, w, r, , lengths)
        u = Transpose <perm = [0, 1, 3, 2]> (h)
        q = QuantizeLinear (u, step, middle)
        c = QLinearConv <pads = [1, 1, 1, 1]> (q, step, middle, filter, step, zero, step, middle)
        d = DequantizeLinear (c, step, middle)
        k = Clip (d, zeros)
        y = ReduceMax <axes = [1], keepdims = 0> (k)
    }
    <domain: "own", opset_import: ["" : 11, "own" : 1]> Twice (a) => (b) { h = own.Same (a)  b = Add (h, a) }
    <domain: "own", opset_import: ["" : 11]> Same (a) => (b) { b = Identity (a) }"""
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)
    constants = {
        "w": rng.random((2, 16, 8), np.float32), "r": rng.random((2, 16, 4), np.float32),
        "lengths": np.array([2, 1, 2, 2, 0, 2, 1, 2], "int32"), "step": np.float32(0.01), "middle": np.uint8(128),
        "filter": rng.integers(-9, 9, (3, 2, 3, 3)).astype("int8"), "zero": np.int8(0), "zeros": np.float32(0),
    }  # fmt: skip
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    return bytes(model.SerializeToString())


def onnx_model() -> bytes:
    """A small network of pictures, with shapes that it computes."""
    import onnx
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(0)
    constants = {
        "filter": rng.random((3, 1, 3, 3), np.float32),
        "scale": np.ones(3, "float32"),
        "zero": np.zeros(3, "float32"),
        "shape": np.array([0, -1], "int64"),
        "matrix": rng.random((27, 5), np.float32),
        "axes": np.array([1], "int64"),
        "starts": np.array([1], "int64"),
        "ends": np.array([4], "int64"),
    }
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "filter"], ["c"], kernel_shape=[3, 3], pads=[0, 0, 0, 0]),
        node("BatchNormalization", ["c", "scale", "zero", "zero", "scale"], ["b"]),
        node("MaxPool", ["b"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Reshape", ["p", "shape"], ["r"]),
        node("MatMul", ["r", "matrix"], ["m"]),
        node("Slice", ["m", "starts", "ends", "axes"], ["s"]),
        node("ReduceMean", ["s"], ["mean"], axes=[1], keepdims=1),
        node("Sub", ["s", "mean"], ["d"]),
        node("Concat", ["d", "s"], ["both"], axis=1),
        node("Transpose", ["both"], ["t"], perm=[1, 0]),
        node("Softmax", ["t"], ["y"], axis=0),
    ]
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "pictures",
        [helper.make_tensor_value_info("x", kind, ["n", 1, 8, 8])],
        [helper.make_tensor_value_info("y", kind, [6, "n"])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    out = io.BytesIO()
    onnx.save(model, out)
    return out.getvalue()


def changed_message(message: Any, rng: random.Random, change: Callable[..., None], leaves: Any) -> bytes:
    """A message with other numbers, names that are swapped, and parts repeated or taken out."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        numbers = [leaf for leaf in leaves(message) if leaf[1].cpp_type != leaf[1].CPPTYPE_STRING]
        texts = [leaf for leaf in leaves(message) if leaf[1].type == leaf[1].TYPE_STRING]
        where = rng.randrange(5)
        if where < 2 and numbers:
            change(rng.choice(numbers), rng)
        elif where < 4 and len(texts) > 1:
            (to, field, index), (other, its, number) = rng.sample(texts, 2)
            value = getattr(other, its.name)
            value = value if number is None else value[number]
            if index is None:
                setattr(to, field.name, value)
            else:
                getattr(to, field.name)[index] = value
        else:
            parts = _repeated(message)
            part = rng.choice(parts)
            at = rng.randrange(len(part))
            if rng.random() < 0.5:
                part.append(part[at])
            else:
                del part[at]
    return bytes(message.SerializeToString(deterministic=True))


def _repeated(message: Any) -> list[Any]:
    """Every repeated field that has elements, at any depth."""
    found = []
    for field, value in message.ListFields():
        repeated = not isinstance(value, (int, float, str, bytes, bool)) and hasattr(value, "__len__")
        if repeated:
            found.append(value)
        if field.message_type is not None:
            for item in value if repeated else [value]:
                found += _repeated(item)
    return found
