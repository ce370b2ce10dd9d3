"""Damaged and malicious copies of saved files, and what becomes of them: an error that says so, or results.

    python tests/fluid/io/hostile.py --count 2000 --seed 1

tries that many copies of each kind of file and prints how often each outcome came, and the numbers of those that are
no clear error. Under the address sanitizer (`scripts/sanitize.sh`) it also finds what is read or written past its end.
"""

from __future__ import annotations

import argparse
import random
import struct
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import fluidlite as fluid
from fluidlite.base import unique_name
from fluidlite.base.storage.messages import messages

if __package__:
    from .hostile_formats import Formats, changed_message
else:  # run as a script
    from hostile_formats import Formats, changed_message

CLEAR = (
    fluid.core.EnforceNotMet,
    MemoryError,
    ValueError,
    TypeError,
    NotImplementedError,
    OSError,
    RuntimeError,
    AssertionError,  # as Fluid has it: states of dygraph layers that hold something else
)
UNCLEAR = (UnicodeDecodeError, RecursionError)
LARGEST = 1 << 22
"""Elements that a mutated dimension makes at most, so that trying thousands takes minutes and not the memory."""

INTERESTING = (0, 1, 2, 7, 8, 127, 128, 255, -1, -2, 3, 63, 64, 1 << 15, 1 << 20, (1 << 31) - 1, -(1 << 31))
Attempt = Callable[[], None]


def images() -> dict[str, np.ndarray]:
    """A batch for the network of `network`."""
    rng = np.random.default_rng(0)
    return {
        "image": rng.random((4, 1, 8, 8), np.float32),
        "label": rng.integers(0, 5, (4, 1)),
        "ids": rng.integers(0, 6, (4, 1)),
    }


def network() -> tuple[Any, Any]:
    """A classifier with operators of most families; returns loss and probabilities."""
    L = fluid.layers
    image = fluid.data("image", [None, 1, 8, 8], "float32")
    label, ids = fluid.data("label", [None, 1], "int64"), fluid.data("ids", [None, 1], "int64")
    h = fluid.nets.simple_img_conv_pool(image, 3, 3, 2, 2, act="relu")
    h = L.dropout(L.batch_norm(h), 0.3, seed=3)
    h = L.concat([L.flatten(h), L.reshape(L.embedding(ids, [6, 4]), [-1, 4])], axis=1)
    h = L.transpose(L.transpose(L.fc(h, 6, act="tanh"), [1, 0]), [1, 0])
    h = L.slice(h, axes=[1], starts=[1], ends=[6]) * 2.0
    p = L.softmax(L.layer_norm(L.expand(h, [1, 1])))
    loss = L.mean(L.cross_entropy(p, label)) + L.reduce_mean(L.cumsum(p, axis=1))
    L.accuracy(p, label, k=2)
    return loss, p


class Samples:
    """Good files to start from, in memory by kind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 1
        exe = fluid.Executor(fluid.CPUPlace())
        with fluid.program_guard(main, startup), unique_name.guard(), fluid.scope_guard(fluid.Scope()):
            loss, p = network()
            fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
            exe.run(startup)
            fluid.io.save_inference_model(str(folder / "model"), ["image", "ids"], [p], exe, main)
            fluid.io.save_persistables(exe, str(folder), main, "combined")
            fluid.save(main, str(folder / "state"))
            tensor = folder / "model" / "batch_norm_0.w_0"
            self.files = {
                "model": (folder / "model" / "__model__").read_bytes(),
                "program": main.desc.serialize_to_string(),
                "tensor": tensor.read_bytes(),
                "combined": (folder / "combined").read_bytes(),
                "pickle": (folder / "state.pdparams").read_bytes(),
            }
        self.main, self.startup, self.loss = main, startup, loss.name
        self.tensor = tensor.name
        self.others = Formats(folder)
        self.files.update(self.others.files)

    def attempt(self, kind: str, data: bytes) -> None:
        """Load `data` in the place of a good file and run what comes out of it."""
        if kind in self.others.files:
            return self.others.attempt(kind, data)
        exe = fluid.Executor(fluid.CPUPlace())
        feed = images()
        with fluid.scope_guard(fluid.Scope()):
            if kind in ("model", "tensor"):
                model = self.folder / "model"
                at = model / ("__model__" if kind == "model" else self.tensor)
                at.write_bytes(data)
                try:
                    program, feeds, fetches = fluid.io.load_inference_model(str(model), exe)
                finally:
                    at.write_bytes(self.files[kind])
                for _ in range(3):
                    exe.run(program, feed={name: feed[name] for name in feeds}, fetch_list=fetches)
                return
            exe.run(self.startup)
            program = self.main
            if kind == "program":
                program = fluid.Program.parse_from_string(data)
            elif kind == "combined":
                at = self.folder / "combined"
                at.write_bytes(data)
                fluid.io.load_persistables(exe, str(self.folder), program, "combined")
            else:
                (self.folder / "state.pdparams").write_bytes(data)
                fluid.load(program, str(self.folder / "state"), exe)
            for _ in range(3):
                exe.run(program, feed=feed, fetch_list=[self.loss])


def changed_bytes(data: bytes, rng: random.Random) -> bytes:
    """`data` with some bytes changed, inserted, taken out or repeated."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(made) + 1)
        end = min(len(made), at + rng.choice((1, 2, 4, 8, 64)))
        match rng.randrange(7):
            case 0:
                made[at:end] = bytes(rng.randrange(256) for _ in range(end - at))
            case 1 if at < len(made):
                made[at] ^= 1 << rng.randrange(8)
            case 2:
                del made[at:end]
            case 3:
                made[at:at] = made[at:end]
            case 4:
                del made[at:]
            case 5:
                made[at : at + 8] = struct.pack(
                    "<q", rng.choice((*INTERESTING, 1 << 40, -(1 << 63), 1 << 62))
                )
            case _:
                made[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
        made = made or bytearray(b"\0")
    return bytes(made)


def _fields(message: Any) -> list[tuple[Any, Any, int | None]]:
    """Every scalar of a message: (message, field, index in a repeated one)."""
    found: list[tuple[Any, Any, int | None]] = []
    for field, value in message.ListFields():
        repeated = not isinstance(value, (int, float, str, bytes, bool)) and hasattr(value, "__len__")
        inner = field.message_type is not None
        for index, item in enumerate(value if repeated else [value]):
            if inner:
                found += _fields(item)
            else:
                found.append((message, field, index if repeated else None))
    return found


def _numbers(message: Any) -> list[tuple[Any, Any, int | None]]:
    found = _fields(message)
    return [item for item in found if item[1].cpp_type != item[1].CPPTYPE_STRING]


def changed_meaning(data: bytes, rng: random.Random) -> bytes:
    """A program that can be read and says something else: other types, sizes, attributes, variables, operators."""
    message = messages().ProgramDesc()
    message.ParseFromString(data)
    block = message.blocks[0]
    for _ in range(rng.choice((1, 1, 2, 3))):
        ops = [op for op in block.ops if op.type not in ("feed", "fetch")]
        op = rng.choice(ops)
        match rng.randrange(8):
            case 0 | 1:
                _change_number(rng.choice(_numbers(rng.choice(block.vars)) or _numbers(block)), rng)
            case 2 | 3:
                _change_number(rng.choice(_numbers(op) or _numbers(block)), rng)
            case 4:
                slots = [slot for slot in (*op.inputs, *op.outputs) if slot.arguments]
                if slots:
                    slot = rng.choice(slots)
                    slot.arguments[rng.randrange(len(slot.arguments))] = rng.choice(block.vars).name
            case 5:
                slots = list(rng.choice(((op.inputs), (op.outputs))))
                if slots:
                    slot = rng.choice(slots)
                    slot.arguments.append(rng.choice(block.vars).name)
            case 6:
                op.type = rng.choice(ops).type
            case _:
                slots = list((*op.inputs, *op.outputs))
                if slots:
                    del rng.choice(slots).arguments[:]
    return message.SerializeToString(deterministic=True)


def _change_number(place: tuple[Any, Any, int | None], rng: random.Random) -> None:
    message, field, index = place
    value: Any = rng.choice(INTERESTING)
    if field.cpp_type == field.CPPTYPE_BOOL:
        value = bool(value & 1)
    elif field.cpp_type == field.CPPTYPE_ENUM:
        value = rng.choice([number.number for number in field.enum_type.values])
    elif field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        value = rng.choice(
            (0.0, -1.0, 1.0, float("nan"), float("inf"), -float("inf"), 1e30, 0.5, float(value))
        )
    elif abs(value) > LARGEST and rng.random() < 0.8:
        value = rng.choice((0, 1, -1, 2, 3))
    if index is None:
        setattr(message, field.name, value)
    else:
        getattr(message, field.name)[index] = value


def mutant(samples: Samples, kind: str, rng: random.Random) -> bytes:
    """A damaged copy of a sample."""
    data = samples.files[kind]
    if kind in ("model", "program") and rng.random() < 0.8:
        return changed_meaning(data, rng)
    if kind in samples.others.messages and rng.random() < 0.8:
        message = samples.others.messages[kind]()
        message.ParseFromString(data)
        return changed_message(message, rng, _change_number, _fields)
    return changed_bytes(data, rng)


def outcome(attempt: Attempt) -> tuple[str, bool]:
    """The outcome of an attempt, and whether it is acceptable: a result, or an error with a clear message."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            attempt()
    except UNCLEAR as error:
        return f"{type(error).__name__}: {error}"[:200], False
    except CLEAR as error:
        return type(error).__name__, len(str(error)) > 10
    except Exception as error:  # noqa: BLE001  (whatever it is, it is reported)
        return f"{type(error).__name__}: {error}"[:200], False
    return "result", True


def trial(samples: Samples, kind: str, seed: int) -> tuple[str, bool]:
    """The outcome for the damaged copy number `seed`."""
    data = mutant(samples, kind, random.Random(f"{kind} {seed}"))
    return outcome(lambda: samples.attempt(kind, data))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=1000, help="copies of each kind (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="number of the first copy (default: %(default)s)")
    parser.add_argument("--kind", action="append", help="only this kind of file")
    parser.add_argument("--verbose", action="store_true", help="name each copy before it is tried")
    options = parser.parse_args()
    bad = 0
    with TemporaryDirectory() as folder:
        samples = Samples(Path(folder))
        for kind in options.kind or samples.files:
            found: Counter[str] = Counter()
            for seed in range(options.seed, options.seed + options.count):
                if options.verbose:
                    print(kind, seed, flush=True)
                what, clear = trial(samples, kind, seed)
                found[what.partition(":")[0]] += 1
                if not clear:
                    bad += 1
                    print(f"{kind} {seed}: {what}", flush=True)
            print(kind, dict(found.most_common()), flush=True)
    return min(bad, 1)


if __name__ == "__main__":
    raise SystemExit(main())
