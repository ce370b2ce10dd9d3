"""Bad input through the public interface: each error (or warning) names the mistake, the expected and the given
value, and the user's line or a remedy. Nothing hangs, no thread stays, no parameter changes.
"""

import gc
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import unique_name
from fluidlite.reader import State, leaks, multiprocess_reader

HERE = "test_bad_input.py:"
PLACE = fluid.CPUPlace()
X, Y = np.ones((2, 4), "float32"), np.zeros((2, 1), "int64")


@pytest.fixture(autouse=True)
def fresh():
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        yield
    gc.collect()
    left = {what: count for what, count in leaks().items() if count and what != "slots"}
    assert not left, f"the test left behind {left}"


class Net:
    """A classifier of 4 numbers into 3 classes, with what trains it."""

    def __init__(self, initialise=True, **loader):
        self.feed_list = [fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 1], "int64")]
        self.loader = (
            fluid.io.DataLoader.from_generator(self.feed_list, capacity=2, **loader) if loader else None
        )
        probabilities = fluid.layers.fc(self.feed_list[0], 3, act="softmax")
        self.loss = fluid.layers.mean(fluid.layers.cross_entropy(probabilities, self.feed_list[1]))
        fluid.optimizer.Adam(0.1).minimize(self.loss)
        self.exe = fluid.Executor(PLACE)
        if initialise:
            self.exe.run(fluid.default_startup_program())

    def run(self, feed=None, fetch=None):
        return self.exe.run(feed=feed, fetch_list=[self.loss if fetch is None else fetch])

    def epoch(self):
        """The number of steps until the end of a non-iterable loader's epoch, which has been started."""
        steps = 0
        try:
            while True:
                self.run()
                steps += 1
        except fluid.core.EOFException:
            self.loader.reset()
        return steps


def persistable():
    """The values of all variables in the scope that have one."""
    scope = fluid.global_scope()
    names = [var.name for var in fluid.default_main_program().list_vars() if var.persistable]
    found = {name: scope.find_var(name) for name in names}
    return {
        name: np.array(var.get_tensor()) for name, var in found.items() if var is not None and var.is_set()
    }


@contextmanager
def refused(error, *parts):
    """The block raises `error`, with all `parts` in its message, and leaves every parameter as it was."""
    before = persistable()
    with pytest.raises(error) as caught:
        yield
    text = str(caught.value)
    for part in parts:
        assert part in text
    after = persistable()
    assert before.keys() == after.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(value, after[name])


def batches(count=3):
    def some_batches():
        for _ in range(count):
            yield X, Y

    return some_batches


WRONG_FEEDS = {
    "missing": ({"x": X}, fluid.core.EnforceNotMet, ["'y'", "not fed", "['x']", HERE]),
    "none": ({}, fluid.core.EnforceNotMet, ["'x'", "not fed", "none", HERE]),
    "misspelt": ({"x": X, "yy": Y}, fluid.core.EnforceNotMet, ["'y'", "did you mean it by 'yy'", HERE]),
    "dtype": ({"x": X.astype("float64"), "y": Y}, ValueError,
        ["'x'", "'float32'", "'float64'", ".astype('float32')"]),
    "rank": ({"x": X.reshape(2, 2, 2), "y": Y}, ValueError,
        ["'x'", "dimensions = 2", "[None, 4]", "[2, 2, 2]"]),
    "fixed dimension": ({"x": np.ones((2, 5), "float32"), "y": Y}, ValueError,
        ["'x'", "[None, 4]", "[2, 5]"]),
    "batch sizes": ({"x": X, "y": np.zeros((3, 1), "int64")}, fluid.core.EnforceNotMet,
        ["Label=y[3, 1]", "[2, 1]", HERE]),
    "list": ({"x": [[1, 2, 3, 4], [1]], "y": Y}, RuntimeError, ["'x'", "np.array", "create_lod_tensor"]),
    "ragged": ({"x": ((1, 2), (1,)), "y": Y}, ValueError, ["'x'", "tuple", "inhomogeneous"]),
    "text": ({"x": "a", "y": Y}, ValueError, ["'x'", "could not convert", "'a'"]),
    "object": ({"x": None, "y": Y}, fluid.core.EnforceNotMet,
        ["'x'", "NoneType", "an array or a LoDTensor"]),
    "list of feeds": ([{"x": X, "y": Y}] * 2, TypeError, ["2 devices", "CompiledProgram"]),
}  # fmt: skip


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("what", WRONG_FEEDS)
def test_wrong_feed(what, warm):
    feed, error, parts = WRONG_FEEDS[what]
    net = Net()
    for _ in range(3 if warm else 0):
        net.run({"x": X, "y": Y})
    with refused(error, *parts):
        net.run(feed)
    net.run({"x": X, "y": Y})


@pytest.mark.parametrize("label", [3, -1])
@pytest.mark.parametrize("warm", [False, True])
def test_label_out_of_range(label, warm):
    net = Net()
    for _ in range(3 if warm else 0):
        net.run({"x": X, "y": Y})
    with refused(fluid.core.EnforceNotMet, "cross_entropy", "'y'", "[0, 3)", f"{label} at position 1", HERE):
        net.run({"x": X, "y": np.array([[0], [label]])})


def with_ragged_samples():
    yield [1.0, 2.0, 3.0, 4.0], 0
    yield [1.0, 2.0, 3.0], 0


def with_three_items():
    yield X, Y
    yield X, Y, X


def of_float_labels():
    yield X, Y.astype("float32")


def in_wrong_order():
    yield Y, X


def of_numbers():
    yield 5


def of_one_item():
    yield (X[0],)


def of_numbers_for_arrays():
    yield [[1, 2], [3, 4]]


def without_a_result():
    pass


@pytest.mark.parametrize(
    ("how", "reader", "error", "parts"),
    [
        ("sample", with_ragged_samples, ValueError, ["sample 1", "'x'", "[4]", "[3]"]),
        ("list", fluid.io.batch(with_ragged_samples, 2), ValueError, ["sample 1", "'x'", "[4]", "[3]"]),
        ("batch", with_three_items, ValueError, ["batch 1", "3 items", "2: 'x', 'y'"]),
        ("batch", of_float_labels, TypeError, ["batch 0", "'y'", "int64", "float32"]),
        ("batch", in_wrong_order, ValueError, ["batch 0", "'x'", "[-1, 4]", "[2, 1]"]),
        ("batch", of_numbers, TypeError, ["batch 0", "list or tuple", "5 (int)"]),
        ("list", of_numbers, TypeError, ["batch 0", "list of samples", "5 (int)"]),
        ("batch", without_a_result, TypeError, ["NoneType", "iterable"]),
        ("sample", of_one_item, ValueError, ["number of fields (1)", "sample 0"]),
        ("list", of_numbers_for_arrays, ValueError, ["'x'", "[4]", "[]"]),
    ],
)
@pytest.mark.parametrize("iterable", [True, False])
def test_reader_of_wrong_data(iterable, how, reader, error, parts):
    net = Net(iterable=iterable)
    places = PLACE if iterable else None
    if how == "sample":
        net.loader.set_sample_generator(reader, batch_size=2, places=places)
    elif how == "list":
        net.loader.set_sample_list_generator(reader, places)
    else:
        net.loader.set_batch_generator(reader, places)
    with pytest.raises(error) as caught:
        if iterable:
            list(net.loader())
        else:
            net.loader.start()
            net.epoch()
    for part in [*parts, getattr(reader, "__wrapped__", reader).__name__, HERE]:
        assert part in str(caught.value)
    net.loader.close()


class OddError(Exception):
    """An exception that cannot be made from its message."""

    def __init__(self, code, text):
        super().__init__(f"{text} ({code})")


ERRORS = {
    OSError: ("disk on fire",),
    OddError: (5, "odd"),
    UnicodeDecodeError: ("utf-8", b"\xff", 0, 1, "bad"),
    KeyboardInterrupt: (),
    SystemExit: (3,),
    GeneratorExit: (),
}


@pytest.mark.parametrize("good", [0, 2])
@pytest.mark.parametrize("iterable", [True, False])
@pytest.mark.parametrize("kind", ERRORS)
def test_generator_that_raises(iterable, kind, good):
    error = kind(*ERRORS[kind])

    def failing():
        for _ in range(good):
            yield X, Y
        raise error

    net = Net(iterable=iterable)
    net.loader.set_batch_generator(failing, PLACE if iterable else None)
    for _ in range(2):
        seen = 0
        with pytest.raises(kind) as caught:
            if iterable:
                for _ in net.loader():
                    seen += 1
            else:
                net.loader.start()
                while True:
                    net.run()
                    seen += 1
        assert seen == good
        assert caught.value is error
        assert caught.traceback[-1].name == "failing"
        assert net.loader.state is State.FAILED
        net.loader.close()
    net.loader.set_batch_generator(batches(), PLACE if iterable else None)
    if iterable:
        assert len(list(net.loader())) == 3
    else:
        net.loader.start()
        assert net.epoch() == 3


def test_generator_that_raises_stop_iteration_or_the_end_of_another_loader():
    def stopping():
        yield X, Y
        raise StopIteration

    def ended():
        yield X, Y
        raise fluid.core.EOFException("There is no next data.")

    net = Net(iterable=False)
    for reader, message in (
        (stopping, "generator raised StopIteration"),
        (ended, "ended.* raised EOFException"),
    ):
        net.loader.set_batch_generator(reader)
        net.loader.start()
        net.run()
        with pytest.raises(RuntimeError, match=message):
            net.run()
        net.loader.reset()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="worker processes are forked")
def test_killed_worker_of_a_loader():
    def killed():
        yield X[0], 0
        os.kill(os.getpid(), signal.SIGKILL)

    loader = Net(iterable=True).loader
    loader.set_sample_generator(multiprocess_reader([killed]), 1, places=PLACE)
    begin = time.monotonic()
    with refused(RuntimeError, "reader 0 of 1", "killed by SIGKILL"):
        list(loader())
    assert time.monotonic() - begin < 8
    loader.close()


@pytest.mark.parametrize("make", [fluid.io.DataLoader.from_generator, fluid.io.PyReader])
def test_capacity_0(make):
    feed_list = [fluid.data("x", [None, 4], "float32")]
    with refused(ValueError, "capacity", "at least 1", "got 0"):
        make(feed_list, capacity=0)
    with refused(ValueError, "capacity", "at least 1"):
        make(feed_list)


def test_feed_list_with_a_variable_double_grad():
    x = fluid.data("x", [None, 4], "float32")
    with refused(ValueError, "twice", "['x', 'x']"):
        fluid.io.DataLoader.from_generator([x, x], capacity=2)


def test_wrong_feed_of_several_devices():
    net = Net()
    parallel = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        net.loss.name, places=fluid.cpu_places(2)
    )

    def run(feed):
        return net.exe.run(parallel, feed=feed, fetch_list=[net.loss])

    with refused(ValueError, "var yy not in this block", "did you mean 'y'"):
        run({"x": X, "yy": Y})
    with refused(fluid.core.EnforceNotMet, "'y'", "not fed. Fed were: ['x']", HERE):
        run({"x": X})
    with refused(fluid.core.EnforceNotMet, "'y'", "[0, 3)", "got 3", HERE):
        run({"x": X, "y": Y + 3})
    with refused(fluid.core.EnforceNotMet, "number 1", "device number 2"):
        run([{"x": X, "y": Y}])
    with refused(fluid.core.EnforceNotMet, "'x'", "1 rows for 2 devices"):
        run({"x": X[:1], "y": Y[:1]})


def test_kinds_of_loaders_mixed_up():
    net = Net(iterable=False)
    net.loader.set_batch_generator(batches())
    with refused(RuntimeError, "iterable=False", "start()"):
        iter(net.loader())
    net.loader.start()
    with refused(TypeError, "2 devices"):
        net.run([{}, {}])
    with pytest.warns(RuntimeWarning, match=r"\['x'\] were fed, but .* the loader's batch is used") as caught:
        np.testing.assert_array_equal(net.run({"x": X * 5}, "x")[0], X)
    assert caught[0].filename == __file__
    net.loader.reset()
    with refused(TypeError, "callable", "generator"):
        net.loader.set_batch_generator(batches()())
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        iterable = Net(iterable=True).loader
    with refused(RuntimeError, "iterable=False"):
        iterable.start()


def test_shape_errors_name_the_operator_and_the_line():
    x = fluid.data("x", [None, 4], "float32")
    wide = fluid.data("wide", [None, 5], "float32")
    weight = fluid.layers.create_parameter([5, 3], "float32")
    with refused(fluid.core.EnforceNotMet, "matmul", "X=x[-1, 4]", "[5, 3]", "4 and 5", HERE):
        fluid.layers.matmul(x, weight)
    with refused(fluid.core.EnforceNotMet, "elementwise_add", "[-1, 4]", "[-1, 5]", HERE):
        x + wide
    before = len(fluid.default_main_program().global_block().ops)
    with refused(fluid.core.EnforceNotMet, "concat", "x[-1, 4]", HERE):
        fluid.layers.concat([x, fluid.data("cube", [None, 4, 4], "float32")], axis=1)
    assert len(fluid.default_main_program().global_block().ops) == before


def test_activation_that_does_not_exist():
    with refused(NotImplementedError, "no operator 'rellu'", "did you mean 'relu'"):
        fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 3, act="rellu")


def test_program_changed_between_the_steps_of_an_epoch():
    net = Net(iterable=False)
    net.loader.set_batch_generator(batches())
    net.loader.start()
    net.run()
    total = fluid.layers.reduce_sum(net.feed_list[0])
    np.testing.assert_array_equal(net.run(fetch=total)[0], [8])
    more = fluid.layers.fc(net.feed_list[0], 2)
    with refused(fluid.core.EnforceNotMet, "'fc_1.w_0'", "startup program"):
        net.run(fetch=more)
    net.loader.reset()


def test_saving_where_nothing_can_be_written(tmp_path):
    net = Net()
    file = tmp_path / "file"
    file.write_text("in the way")
    for save in (
        lambda: fluid.save(fluid.default_main_program(), str(file / "model")),
        lambda: fluid.io.save_persistables(net.exe, str(file / "folder")),
        lambda: fluid.io.save_params(net.exe, str(file)),
    ):
        with refused(OSError, "cannot make the folder", str(file)):
            save()
    assert os.listdir(tmp_path) == ["file"]


def test_loading_a_truncated_file(tmp_path):
    net = Net()
    main = fluid.default_main_program()
    fluid.save(main, str(tmp_path / "model"))
    fluid.io.save_persistables(net.exe, str(tmp_path / "folder"))
    for path in (tmp_path / "model.pdparams", tmp_path / "folder" / "fc_0.w_0"):
        path.write_bytes(path.read_bytes()[:-20])
    net.run({"x": X, "y": Y})
    with refused(fluid.core.EnforceNotMet, str(tmp_path / "model.pdparams"), "cut off"):
        fluid.load(main, str(tmp_path / "model"))
    with refused(fluid.core.EnforceNotMet, str(tmp_path / "folder" / "fc_0.w_0"), "cut off", "[4, 3]"):
        fluid.io.load_persistables(net.exe, str(tmp_path / "folder"))
    with refused(FileNotFoundError, str(tmp_path / "nothing.pdparams")):
        fluid.load(main, str(tmp_path / "nothing"))


SCRIPT = """
import sys, time
import numpy as np
import paddle.fluid as fluid
ITERABLE = sys.argv[1] == 'iterable'
x = fluid.data('x', [None, 4], 'float32')
loader = fluid.io.DataLoader.from_generator([x], capacity=2, iterable=ITERABLE)
y = fluid.layers.fc(x, 2)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
def reader():
    yield np.zeros((2, 4), 'float32'),
    if sys.argv[2] == 'stuck':
        time.sleep(3600)
    while True:
        yield np.zeros((2, 4), 'float32'),
loader.set_batch_generator(reader, places=fluid.CPUPlace() if ITERABLE else None)
def outputs():
    if ITERABLE:
        for feed in loader():
            yield exe.run(feed=feed, fetch_list=[y])
    else:
        loader.start()
        while True:
            yield exe.run(fetch_list=[y])
for number, output in enumerate(outputs()):
    if sys.argv[3] == 'exit':
        sys.exit(7)
    if sys.argv[3] == 'error':
        1 / 0
    if sys.argv[3] == 'leave':
        break
    if not number:
        print('ready', flush=True)
"""


def start(tmp_path, *args):
    """Run SCRIPT as `python -m fluidlite script.py ARGS`."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "fluidlite", str(path), *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(fluid.__file__).parents[1])},
    )


@pytest.mark.parametrize("mode", ["iterable", "program"])
@pytest.mark.parametrize("data", ["stuck", "endless"])
def test_ctrl_c(tmp_path, mode, data):
    process = start(tmp_path, mode, data, "go on")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors.startswith("\ninterrupted at ") and "script.py:" in errors and errors.count("\n") == 2


@pytest.mark.parametrize(
    ("mode", "data", "how", "status"),
    [
        ("iterable", "stuck", "leave", 0), ("program", "endless", "leave", 0), ("iterable", "endless", "exit", 7),
        ("program", "stuck", "exit", 7), ("iterable", "stuck", "error", 1), ("program", "endless", "error", 1),
    ],
)  # fmt: skip
def test_the_program_ends_in_the_middle_of_an_epoch(tmp_path, mode, data, how, status):
    process = start(tmp_path, mode, data, how)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == status
    assert errors == "" if how != "error" else errors.endswith("ZeroDivisionError: division by zero\n")
