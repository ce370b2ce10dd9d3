"""`fluid.profiler`: calls are counted exactly, whatever runs the operators; the table is laid out as Fluid's."""

import json
import re
import threading

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import core, profiler
from fluidlite.base.errors import NotSupportedError
from fluidlite.base.reports import profiling

from ..engines import run_by
from ..refusals import refuses

pytestmark = pytest.mark.usefixtures("alone")

FEED = {"x": np.ones([2, 4], "float32")}


@pytest.fixture(autouse=True)
def off():
    """No test leaves a profiler on."""
    yield
    profiling.switch(None)


@pytest.fixture
def trace(tmp_path):
    """Where the trace goes."""
    return tmp_path / "trace.json"


def network():
    x = fluid.data("x", [None, 4])
    hidden = fluid.layers.softmax(fluid.layers.fc(x, 3, act="relu"))
    loss = fluid.layers.mean(fluid.layers.fc(hidden, 2))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


def steps(place=None):
    """A function that trains for some steps; one has been made."""
    loss = network()
    executor = fluid.Executor(place)
    executor.run(fluid.default_startup_program())

    def train(count, program=None):
        for _ in range(count):
            executor.run(program, feed=FEED, fetch_list=[loss])

    train(1)
    return train


def rows(text):
    """Name -> cells of the (last) table."""
    lines = text.split("Event Summary")[-1].splitlines()
    head = next(k for k, line in enumerate(lines) if line.startswith("Event"))
    width = lines[head].index("Calls")
    return {
        line[:width].strip(): [float(cell) for cell in re.sub("[()]", "", line[width:]).split()]
        for line in lines[head + 1 :]
        if line.strip("->\n ")
    }


def calls(text):
    return {name.split("::")[-1]: int(figures[0]) for name, figures in rows(text).items()}


def test_counts_the_operators_of_plans(trace, capsys):
    train = steps()
    with profiler.profiler("CPU", "total", trace):
        train(3)
    counted = calls(capsys.readouterr().out)
    assert counted.pop("Executor.run") == counted.pop("fetch") == 3
    assert counted == {
        "mul+elementwise_add+relu": 3,
        "softmax": 3,
        "mul+elementwise_add": 3,
        "mean": 3,
        "mean_grad": 3,
        "elementwise_add_grad": 6,
        "mul_grad": 6,
        "softmax_grad": 3,
        "relu_grad": 3,
        "4 sgd": 3,
    }


def test_counts_the_operators_of_the_interpreter(trace, capsys):
    train = steps()
    with run_by("interpret"), profiler.profiler("CPU", None, trace):
        train(2)
    counted = calls(capsys.readouterr().out)
    types = [op.type for op in fluid.default_main_program().global_block().ops]
    assert counted.pop("Executor.run") == counted.pop("fetch") == 2
    assert counted == {kind: 2 * types.count(kind) for kind in types}


def test_counts_eager_operators_forward_and_backward(trace, capsys):
    with fluid.dygraph.guard():
        layer = fluid.dygraph.Linear(4, 2)
        optimizer = fluid.optimizer.SGD(0.1, parameter_list=layer.parameters())
        x = fluid.dygraph.to_variable(FEED["x"])
        with profiler.profiler("CPU", "calls", trace):
            for _ in range(3):
                loss = fluid.layers.mean(fluid.layers.reshape(layer(x), [4]))
                loss.backward()
                optimizer.minimize(loss)
                layer.clear_gradients()
        fluid.layers.mean(layer(x))
    counted = calls(capsys.readouterr().out)
    for kind in ("matmul", "elementwise_add", "reshape2", "mean"):
        assert counted[kind] == counted[f"{kind}_grad"] == 3
    assert counted["2 sgd"] == 3


def test_the_table_is_laid_out_as_that_of_fluid(trace, capsys):
    train = steps()
    with profiler.profiler("CPU", "total", trace):
        train(2)
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert lines[1] == "------------------------->     Profiling Report     <-------------------------"
    assert lines[3:6] == [
        "Place: CPU",
        "Time unit: ms",
        "Sorted by total time in descending order in the same thread",
    ]
    head = next(line for line in lines if line.startswith("Event"))
    assert head.split() == ["Event", "Calls", "Total", "Min.", "Max.", "Ave.", "Ratio."]
    assert head.index("Calls") == len("thread0::mul+elementwise_add+relu") + 8
    total = float(re.search(r"Total time: (\S+)", text)[1])
    computing, overhead = (float(found) for found in re.findall(r"^  \w.*Total: (\S+)", text, re.MULTILINE))
    assert total == pytest.approx(computing + overhead, rel=1e-4)
    found = rows(text)
    assert sum(figures[1] for figures in found.values()) == pytest.approx(total, rel=1e-4)
    assert sum(figures[5] for figures in found.values()) == pytest.approx(1, rel=1e-4)
    for count, spent, shortest, longest, average, _ in found.values():
        assert 0 <= shortest <= average * 1.0001 and average <= longest * 1.0001
        assert spent == pytest.approx(count * average, rel=1e-4)


@pytest.mark.parametrize(("key", "column"), [("calls", 0), ("total", 1), ("min", 2), ("max", 3), ("ave", 4)])
def test_rows_are_sorted_as_asked(trace, capsys, key, column):
    train = steps()
    with profiler.profiler("CPU", key, trace):
        train(2)
    figures = [row[column] for row in rows(capsys.readouterr().out).values()]
    assert figures == sorted(figures, reverse=True)


@pytest.mark.parametrize("key", [None, "default"])
def test_rows_come_in_the_order_of_execution_by_default(trace, capsys, key):
    train = steps()
    with profiler.profiler("CPU", key, trace):
        train(2)
    names = list(calls(capsys.readouterr().out))
    assert names[0].startswith("mul") and names[-3:] == ["4 sgd", "fetch", "Executor.run"]


def test_all_shows_times_of_host_and_gpu(trace, capsys):
    train = steps()
    with profiler.profiler("All", "total", trace):
        train(1)
    text = capsys.readouterr().out
    assert "Place: All" in text
    assert re.search(r"softmax +1 +(\S+) +\S+ \(1\.000000\) +0\.000000 \(0\.000000\)", text)


def test_the_trace_is_json_for_chrome(trace):
    train = steps()
    with profiler.profiler("CPU", "total", trace):
        train(2)
    content = json.loads(trace.read_text())
    events = [event for event in content["traceEvents"] if event["ph"] == "X"]
    assert sum(event["name"] == "softmax" for event in events) == 2
    run = [event for event in events if event["name"] == "Executor.run"]
    for event in events:
        assert event["ts"] >= 0 and event["dur"] >= 0
        inside = [outer["ts"] <= event["ts"] <= outer["ts"] + outer["dur"] for outer in run]
        assert any(inside)
    assert {event["args"]["name"] for event in content["traceEvents"] if event["ph"] == "M"} >= {"host"}


def test_threads_of_a_compiled_program_are_distinguished(trace, capsys):
    loss = network()
    executor = fluid.Executor()
    executor.run(fluid.default_startup_program())
    compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss.name, places=fluid.cpu_places(2)
    )
    feed = {"x": np.ones([4, 4], "float32")}
    executor.run(compiled, feed=feed, fetch_list=[loss])
    with profiler.profiler("CPU", "total", trace):
        executor.run(compiled, feed=feed, fetch_list=[loss])
    text = capsys.readouterr().out
    together, separate = text.split("Profiling Report")[1:]
    assert "merge all thread info" in together and "merge all thread info" not in separate
    assert calls(together)["softmax"] == 2
    # One thread may have done the work of both places.
    softmax = {name: row[0] for name, row in rows(separate).items() if name.endswith("::softmax")}
    assert sum(softmax.values()) == 2 and "thread0::softmax" not in softmax


def test_another_thread_is_recorded_from_the_middle_of_its_work(trace, capsys):
    train = steps()
    begun, go_on = threading.Event(), threading.Event()

    def work():
        train(2)
        begun.set()
        go_on.wait()
        train(3)

    program = (fluid.default_main_program(), fluid.default_startup_program(), fluid.global_scope())

    def guarded():
        with fluid.program_guard(*program[:2]), fluid.scope_guard(program[2]):
            work()

    thread = threading.Thread(target=guarded)
    thread.start()
    begun.wait()
    profiler.start_profiler("CPU")
    go_on.set()
    thread.join()
    profiler.stop_profiler("total", trace)
    assert calls(capsys.readouterr().out)["softmax"] == 3


def test_waiting_for_a_loader_is_shown(trace, capsys):
    x = fluid.data("x", [None, 4])
    y = fluid.layers.relu(x)
    loader = fluid.io.DataLoader.from_generator([x], capacity=2)
    loader.set_batch_generator(lambda: iter([[FEED["x"]]] * 3), fluid.CPUPlace())
    executor = fluid.Executor()
    with profiler.profiler("CPU", "total", trace):
        for batch in loader:
            executor.run(feed=batch, fetch_list=[y])
    counted = calls(capsys.readouterr().out)
    assert counted["DataLoader.next"] == 4  # the last finds the end
    assert counted["relu"] == 3


def test_the_innermost_profiler_reports_and_ends_the_others(trace, tmp_path, capsys):
    train = steps()
    with profiler.profiler("CPU", "total", trace):
        train(1)
        with profiler.profiler("All", "total", tmp_path / "inner"):
            train(2)
        assert not core.is_profiler_enabled()
        train(4)
    text = capsys.readouterr().out
    assert text.count("Profiling Report") == 1 and "Place: CPU" in text
    assert calls(text)["softmax"] == 3
    assert (tmp_path / "inner").exists() and not trace.exists()


def test_reset_forgets_what_was_before(trace, capsys):
    train = steps()
    profiler.reset_profiler()  # nothing is on: nothing happens
    profiler.start_profiler("CPU")
    train(3)
    profiler.reset_profiler()
    train(1)
    profiler.stop_profiler("total", trace)
    assert calls(capsys.readouterr().out)["softmax"] == 1
    profiler.stop_profiler("total", trace)
    assert capsys.readouterr().out == ""


def test_an_exception_ends_the_profiler_too(trace, capsys):
    with pytest.raises(KeyError), profiler.profiler("CPU", "total", trace):
        raise KeyError
    assert not core.is_profiler_enabled()
    assert "Total time: 0\n" in capsys.readouterr().out


def test_an_operator_that_fails_is_recorded_like_those_before_it(trace, capsys):
    ids = fluid.data("x", [None, 1], "int64")
    out = fluid.layers.relu(fluid.embedding(ids, [3, 2]))
    executor = fluid.Executor()
    executor.run(fluid.default_startup_program())
    with pytest.raises(core.EnforceNotMet), profiler.profiler("CPU", None, trace):
        executor.run(feed={"x": np.array([[7]])}, fetch_list=[out])
    counted = calls(capsys.readouterr().out)
    assert counted["lookup_table_v2"] == 1 and "relu" not in counted


def test_the_functions_of_core(trace, capsys):
    train = steps()
    core.enable_profiler(core.ProfilerState.kCPU)
    train(2)
    core.disable_profiler(core.EventSortingKey.kCalls, str(trace))
    assert calls(capsys.readouterr().out)["softmax"] == 2
    refuses(lambda: core.enable_profiler(core.ProfilerState.kDisabled), core.EnforceNotMet, "kDisabled")
    refuses(lambda: core.enable_profiler(1), TypeError, "ProfilerState")
    refuses(lambda: core.disable_profiler("total", str(trace)), TypeError, "EventSortingKey")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cpu",), "The state must be 'CPU' or 'GPU' or 'All', got 'cpu'"),
        (("CPU", "sum"), "The sorted_key must be None or in .*, got 'sum'"),
        (("CPU", "total", "trace", "More"), "tracer option must be .*, got 'More'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message), profiler.profiler(*arguments):
        pass
    assert not core.is_profiler_enabled()


def test_a_key_that_stop_does_not_know_leaves_the_profiler_on(trace):
    profiler.start_profiler("CPU")
    refuses(lambda: profiler.stop_profiler("sum", trace), ValueError, "sorted_key")
    refuses(lambda: profiler.stop_profiler("total", None), TypeError)
    assert core.is_profiler_enabled()


def test_a_trace_that_cannot_be_written_is_a_warning(tmp_path, capsys):
    with pytest.warns(RuntimeWarning, match="could not be written"):
        with profiler.profiler("CPU", "total", tmp_path / "none" / "trace"):
            pass
    assert "Profiling Report" in capsys.readouterr().out


def test_cuda_profiler_needs_a_gpu_and_a_valid_mode():
    with pytest.raises(ValueError, match="output mode"), profiler.cuda_profiler("out", "xml"):
        pass
    if not core.is_compiled_with_cuda():
        with pytest.raises(NotSupportedError, match="needs a GPU"), profiler.cuda_profiler("out"):
            pass


def test_long_runs_keep_counting_when_the_trace_is_full(trace, capsys, monkeypatch):
    monkeypatch.setattr(profiling, "SPANS_KEPT", 5)
    train = steps()
    with profiler.profiler("CPU", "total", trace):
        train(2)
    assert calls(capsys.readouterr().out)["softmax"] == 2
    content = json.loads(trace.read_text())
    assert sum(event["ph"] == "X" for event in content["traceEvents"]) == 5
    assert content["otherData"]["spans left out"] > 0


@pytest.mark.parametrize("state", ["CPU", "GPU", "All"])
def test_launches_on_a_gpu_are_timed_one_by_one_and_recorded_later(cuda, trace, capsys, state):
    train = steps(fluid.CUDAPlace(0))
    train(2)
    executor = fluid.Executor(fluid.CUDAPlace(0))
    with profiler.profiler(state, "total", trace):
        train(3)
    text = capsys.readouterr().out
    found = {name.split("::")[-1]: line for name, line in rows(text).items()}
    assert found["softmax"][0] == found["fetch"][0] == 3
    assert found["softmax"][1] > 0
    events = json.loads(trace.read_text())["traceEvents"]
    on_gpu = [event for event in events if event["ph"] == "X" and event["pid"] == 1]
    assert bool(on_gpu) is (state != "CPU")
    train(3)
    assert "one CUDA graph" in executor.describe()


def test_eager_operators_on_a_gpu(cuda, trace, capsys):
    with fluid.dygraph.guard(fluid.CUDAPlace(0)):
        x = fluid.dygraph.to_variable(FEED["x"])
        with profiler.profiler("All", "total", trace):
            for _ in range(2):
                fluid.layers.relu(x)
    assert re.search(r"relu +2 .*\(0\.\d+\).*\(0\.\d+\)", capsys.readouterr().out)
