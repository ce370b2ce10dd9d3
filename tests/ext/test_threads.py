"""The threads that kernels share: how many, and that no result depends on it."""

import ctypes
import mmap
import os
import platform
import threading

import numpy as np
import pytest

from fluidlite import core
from fluidlite._ext import kernels, threads
from fluidlite.ops.kernels.fusion import chain, steps_of
from fluidlite.ops.registry import Call

from .native import draw

COUNTS = (1, 2, 3, 7)


@pytest.fixture
def any_count():
    before = threads.count()
    yield
    threads.use(before)


CONV = [12, 6, 40, 40, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1]
BLOCKED = [12, 16, *CONV[2:], 8, 1, 1]
CONV3D = [12, 6, 2, 40, 40, 8, 1, 3, 3, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
POOL = [64, 3, 40, 40, 2, 2, 2, 2, 0, 0, 20, 20, 1]
VOLUME = [10, 10, 36, 1, 3, 3, 1, 2, 1, 0, 1, 1, 1, 5, 10, 1]
FEATURES, IMAGES = (1400, 300), (64, 6, 40, 40)
SEQUENCES = [4, *FEATURES, 40, -1, 3]


def calls():
    """(kernel, operands, which of them are outputs, ints, floats), of sizes that are cut into pieces."""
    x, g = draw(*FEATURES), draw(*FEATURES, seed=1)
    rows, width = FEATURES
    row, column = draw(width, seed=2), np.full(rows, 0.5, "f4")
    label = np.arange(rows) % width
    images, slopes = draw(*IMAGES), draw(*IMAGES, seed=3)
    n, c, hw = 64, 6, 1600
    some = [draw(c, seed=k, low=0.5) for k in range(4)]
    eight, some8 = draw(n, 8, 1200), [draw(8, seed=k, low=0.5) for k in range(4)]
    a, b = draw(1024, 90), draw(90, 600, seed=1)
    square = draw(40, 64, 64)
    offsets, taps = np.array([0, 5, 5, 900, rows]), draw(3 * width, 40)
    table = {
        "relu": ([x, 0 * x], [1], [x.size], []),
        "tanh": ([x, 0 * x], [1], [x.size], []),
        "sigmoid_grad": ([None, x, g, 0 * x], [3], [x.size], []),
        "elementwise_mul": ([x, g, 0 * x], [2], [x.size], []),
        "elementwise_div_grad": ([None, 3 + x, g, g, 0 * x, 1 * x], [4, 5], [x.size], []),
        "elementwise_add_mid": ([x, row, 0 * x], [2], [rows, width, 1, 1], []),
        "elementwise_mul_mid_grad": ([x, row, None, g, 0 * x, 0 * row], [4, 5], [rows, width, 1], []),
        "elementwise_add_mid_grad": ([None, None, None, slopes, None, some[0]], [5], [n, c, hw], []),
        "sum": ([x, g, x, 0 * x], [3], [x.size], []),
        "scale": ([x, 0 * x], [1], [x.size, 1], [2.0, 0.1]),
        "reduce_sum": ([x, 0 * column], [1], [rows, width, 1], [1.0]),
        "reduce_fill": ([column, 0 * x], [1], [rows, width, 1], [2.0]),
        "softmax": ([x, 0 * x], [1], [rows, width], []),
        "softmax_grad": ([x, g, 0 * x], [2], [rows, width], []),
        "softmax_with_cross_entropy": ([x, label, 0 * x, 0 * column], [2, 3], [rows, width, -100], []),
        "softmax_with_cross_entropy_grad": ([x, label, column, 0 * x], [3], [rows, width, -100], []),
        "layer_norm": (
            [x, row, row, 0 * x, 0 * column, 0 * column], [3, 4, 5], [rows, width, 1, 1, 0], [1e-5],
        ),
        "layer_norm_grad": (
            [x, row, column, column, g, 0 * x, 0 * row, 0 * row], [5, 6, 7], [rows, width, 1, 1, 0, 1], [1e-5],
        ),
        "batch_norm": (
            [images, *some, 0 * images, *(0 * s for s in some)], [5, 6, 7, 8, 9], [n, c, hw, 1], [1e-5, 0.9],
        ),
        "batch_norm_grad": (
            [images, *some[:3], slopes, 0 * images, 0 * some[0], 0 * some[0]], [5, 6, 7], [n, c, hw], [1e-5],
        ),
        "batch_norm_blocks": (
            [eight, *some8, 0 * eight, *(0 * s for s in some8)], [5, 6, 7, 8, 9], [n, 8, 1200, 1, 8], [1e-5, 0.9],
        ),
        "batch_norm_blocks_grad": (
            [eight, *some8[:3], eight[::-1].copy(), 0 * eight, 0 * some8[0], 0 * some8[0]], [5, 6, 7],
            [n, 8, 1200, 8], [1e-5],
        ),
        "pool2d_max": ([images, draw(64, 6, 20, 20)], [1], [64, 6, *POOL[2:]], []),
        "pool2d_avg_grad": ([draw(64, 6, 20, 20), 0 * images], [1], [64, 6, *POOL[2:]], []),
        "pool3d_max": ([draw(24, 10, 10, 36), draw(24, 5, 10, 36)], [1], [24, 1, *VOLUME], []),
        "pool3d_avg_grad": ([draw(24, 5, 10, 36), draw(24, 10, 10, 36)], [1], [24, 1, *VOLUME], []),
        "resize": ([draw(24, 6, 20, 20), draw(24, 6, 31, 50)], [1], [1, 1, 1, 144, 1, 2, 20, 20, 31, 50], []),
        "dropout_grad": ([x, (x > 0).view("u1"), 0 * x], [2], [x.size, 1], [0.5]),
        "gemm": ([a, b, draw(1024, 600), row.repeat(2)], [2], [1024, 600, 90, 0, 0, 1], [1.0, 0.5]),
        "gemm_batched": (
            [square, square, 0 * square], [2], [64, 64, 64, 0, 1, 40, 4096, 4096, 4096], [1.0, 0.0],
        ),
        "sequence_conv": ([x, offsets, taps, draw(rows, 40)], [3], SEQUENCES, []),
        "sequence_conv_grad": ([x, offsets, taps, draw(rows, 40), 0 * x, 0 * taps], [4, 5], SEQUENCES, []),
        "adam": (
            [column[:1], x, g, abs(x), abs(g), column[1:2], column[2:3]], [1, 3, 4], [x.size], [0.9, 0.99, 1e-8],
        ),
        "adam_rows": (
            [column[:1], x, np.arange(rows) % 1300, g, abs(x), abs(g), column[1:2], column[2:3]], [1, 4, 5],
            [rows, rows, width, 1], [0.9, 0.99, 1e-8],
        ),
        "lookup_table": ([x, np.arange(rows) * 9 % rows, 0 * x], [2], [rows, rows, width, -1], []),
        "momentum": ([column[:1], x, g, 0 * x], [1, 3], [1, x.size], [0.9]),
        "conv2d": ([draw(12, 6, 40, 40), draw(8, 6, 3, 3), None, draw(12, 8, 40, 40)], [3], CONV, []),
        "conv2d_grad_input": ([draw(8, 6, 3, 3), draw(12, 8, 40, 40), draw(12, 6, 40, 40)], [2], CONV, []),
        "conv2d_last": ([draw(12, 40, 40, 6), draw(8, 6, 3, 3), None, draw(12, 40, 40, 8)], [3], CONV, []),
        "conv3d_grad_filter": (
            [draw(12, 6, 2, 40, 40), draw(12, 8, 2, 40, 40), draw(8, 6, 1, 3, 3)], [2], CONV3D, [],
        ),
        "conv2d_blocks": (
            [draw(12, 16, 40, 40), draw(8, 16, 3, 3), None, draw(12, 8, 40, 40)], [3], BLOCKED, [],
        ),
        "conv2d_blocks_grad_input": (
            [draw(8, 16, 3, 3), draw(12, 8, 40, 40), draw(12, 16, 40, 40)], [2], BLOCKED, [],
        ),
        "conv2d_blocks_grad_filter": (
            [draw(12, 16, 40, 40), draw(12, 8, 40, 40), draw(8, 16, 3, 3)], [2], BLOCKED, [],
        ),
        "conv2d_grad_filter": ([draw(12, 6, 40, 40), draw(12, 8, 40, 40), draw(8, 6, 3, 3)], [2], CONV, []),
    }  # fmt: skip
    return {name: rest for name, rest in table.items() if kernels.available(f"{name}.f32")}


CALLS = calls()


@pytest.mark.parametrize("name", CALLS)
def test_results_are_the_same_bits_however_many_threads(name, any_count):
    operands, outputs, ints, floats = CALLS[name]
    found = []
    for count in COUNTS:
        threads.use(count)
        given = [None if array is None else array.copy() for array in operands]
        kernels.call(f"{name}.f32", given, ints, floats)
        found.append([given[k].tobytes() for k in outputs])
    assert all(each == found[0] for each in found)
    assert any(given[k].tobytes() != operands[k].tobytes() for k in outputs)


PRODUCTS = [
    (2, 64, 20000, 1, 0),
    (600, 3, 9000, 1, 0),
    (64, 9, 4000, 0, 0),
    (40, 600, 700, 0, 1),
    (700, 300, 600, 1, 0),
]
"""Rows, columns, depth and what is transposed of products that are computed in different ways."""


@pytest.mark.parametrize("target", kernels.targets())
def test_threads_may_have_small_stacks(target, any_count):
    """128 KB, as threads of servers have, and those of the C library of Alpine."""
    threads.use(1)
    found = {}

    def work():
        for name, (operands, outputs, ints, floats) in CALLS.items():
            given = [None if array is None else array.copy() for array in operands]
            kernels.call(f"{name}.f32", given, ints, floats, None if name.startswith("conv") else target)
            found[name] = [given[k] for k in outputs]
        for m, n, k, ta, tb in PRODUCTS:
            for kind in ("f32", "f64"):
                a, b = (
                    draw(*((k, m) if ta else (m, k)), kind=kind),
                    draw(*((n, k) if tb else (k, n)), kind=kind),
                )
                made = np.empty((m, n), a.dtype)
                kernels.call(f"gemm.{kind}", [a, b, made], [m, n, k, ta, tb], [1.0, 0.0], target)
                found[m, n, k, kind] = (made, (a.T if ta else a) @ (b.T if tb else b))
        x = draw(300_000)
        steps = [Call("scale.f32", ["x", "a"], [x.size, 1], [0.5, 1.0])]
        names = "abcdefghijklmno"
        steps += [Call("relu.f32", [one, two], [x.size]) for one, two in zip(names, names[1:], strict=False)]
        call = chain(x.size, [step for each in steps for step in steps_of(each).steps], ["o"], kernels.number)
        values = {"x": x, "o": np.empty_like(x)}
        kernels.call(call.kernel, [values[name] for name in call.operands], call.ints, call.floats, target)
        found["chain"] = (values["o"], np.maximum(x * np.float32(0.5) + 1, 0))

    before = threading.stack_size(128 * 1024)
    try:
        worker = threading.Thread(target=work)
        worker.start()
    finally:
        threading.stack_size(before)
    worker.join()
    assert len(found) == len(CALLS) + 2 * len(PRODUCTS) + 1
    for made, wanted in (found["chain"], *[pair for key, pair in found.items() if isinstance(key, tuple)]):
        np.testing.assert_allclose(made, wanted, rtol=1e-3, atol=1e-2)


def test_partitioned_convolutions_are_those_of_single_images(any_count):
    threads.use(2)
    if not kernels.available("conv2d.f32"):
        pytest.skip("oneDNN is missing")
    x, w, g = draw(12, 6, 40, 40), draw(8, 6, 3, 3), draw(12, 8, 40, 40, seed=1)
    out, dx, dw = np.empty_like(g), np.empty_like(x), np.empty_like(w)
    kernels.call("conv2d.f32", [x, w, None, out], CONV)
    kernels.call("conv2d_grad_input.f32", [w, g, dx], CONV)
    kernels.call("conv2d_grad_filter.f32", [x, g, dw], CONV)
    one, total = [1, *CONV[1:]], np.zeros(w.shape)
    for k in range(12):
        single, slope, part = np.empty_like(g[:1]), np.empty_like(x[:1]), np.empty_like(w)
        kernels.call("conv2d.f32", [x[k : k + 1], w, None, single], one)
        kernels.call("conv2d_grad_input.f32", [w, g[k : k + 1], slope], one)
        kernels.call("conv2d_grad_filter.f32", [x[k : k + 1], g[k : k + 1], part], one)
        np.testing.assert_allclose(out[k], single[0], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(dx[k], slope[0], rtol=1e-5, atol=1e-5)
        total += part
    np.testing.assert_allclose(dw, total, rtol=1e-4, atol=1e-3)


def test_several_callers_at_once(any_count):
    threads.use(3)
    a, b = draw(1024, 64), draw(64, 300, seed=1)
    want = a.astype("f8") @ b
    wrong = []

    def work():
        for _ in range(20):
            out = np.empty((1024, 300), "f4")
            kernels.call("gemm.f32", [a, b, out], [1024, 300, 64, 0, 0], [1.0, 0.0])
            if abs(out - want).max() > 1e-4:
                wrong.append(out)

    callers = [threading.Thread(target=work) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_has_threads_of_its_own(any_count):
    threads.use(3)
    x = draw(400, 1000)
    want = np.maximum(x, 0)

    def right():
        out = np.empty_like(x)
        kernels.call("relu.f32", [x, out], [x.size])
        return np.array_equal(out, want)

    stop = threading.Event()
    busy = threading.Thread(target=lambda: [right() for _ in iter(stop.is_set, True)])
    busy.start()
    try:
        for _ in range(5):
            pid = os.fork()
            if pid == 0:
                os._exit(0 if right() and right() else 1)
            assert os.waitpid(pid, 0)[1] == 0
    finally:
        stop.set()
        busy.join()


def test_set_num_threads(any_count):
    core.set_num_threads(3)
    assert threads.count() == 3
    core.set_num_threads(0)
    assert threads.count() == 1
    with pytest.raises(TypeError):
        core.set_num_threads("two")


def test_usable_is_what_the_affinity_leaves():
    assert 1 <= threads.usable() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize("text, count", [("3", 3), (" 4 , 2", 4), ("", None)])
def test_omp_num_threads(text, count, python):
    code = "from fluidlite._ext import threads; print(threads.count(), threads.usable())"
    done = python("-c", code, env={"OMP_NUM_THREADS": text})
    found, usable = map(int, done.stdout.split())
    assert found == (usable if count is None else count) and not done.stderr


def test_nonsense_in_omp_num_threads_is_warned_of(monkeypatch):
    for text in ("none", "0", "-1", "2.5", "3000000000", "9" * 30):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        with pytest.warns(RuntimeWarning, match=f"OMP_NUM_THREADS='{text}' is no number of threads"):
            assert threads._at_first() == threads.usable()


def test_limits_of_control_groups(tmp_path):
    groups = tmp_path / "cgroup"
    groups.write_text("4:cpu,cpuacct:/a\n0::/b/c\n1:name=systemd:/d\n")
    root = tmp_path / "fs"
    for folder, name, text in [
        ("b", "cpu.max", "150000 100000"),
        ("b/c", "cpu.max", "max 100000"),
        ("cpu,cpuacct/a", "cpu.cfs_quota_us", "50000"),
        ("cpu,cpuacct/a", "cpu.cfs_period_us", "100000"),
        ("cpu,cpuacct", "cpu.cfs_quota_us", "-1"),
        ("cpu,cpuacct", "cpu.cfs_period_us", "100000"),
    ]:
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / name).write_text(text + "\n")
    assert list(threads._quotas(str(root), str(groups))) == [(50000, 100000), (150000, 100000)]
    assert list(threads._quotas(str(root), str(tmp_path / "none"))) == []


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="sets the mode by an instruction of x86"
)
def test_threads_compute_as_the_one_whose_work_it_is(any_count):
    """A thread has the rounding and the small numbers of the one that has started it; kernels must not."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes([0x0F, 0xAE, 0x17, 0xC3]))  # ldmxcsr [rdi]; ret
    set_mode = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint32))(
        ctypes.addressof(ctypes.c_char.from_buffer(code))
    )
    usual, to_zero = ctypes.c_uint32(0x1F80), ctypes.c_uint32(0x1F80 | 0x8040)
    x = np.full(1 << 21, 1e-40, "float32")
    out = np.empty_like(x)
    threads.use(max(threads.count(), 6) + 2)
    set_mode(ctypes.byref(to_zero))
    try:
        kernels.call("scale.f32", [x, out], [x.size, 1], [1.0, 0.0])
    finally:
        set_mode(ctypes.byref(usual))
    for _ in range(20):
        kernels.call("elementwise_add.f32", [x, x, out], [x.size])
        assert (out == x + x).all()
