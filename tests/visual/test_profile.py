"""`fluidlite profile`: the page of a run, and that nothing is recorded without it."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.__main__ import main
from fluidlite.base.reports import profiling
from fluidlite.base.reports.profiling import Kind, ProfilerState, Recorder, Span
from fluidlite.visual import profile

from .browser import drawn, needs_browser

TRAINING = """
import sys
import numpy as np
import paddle.fluid as fluid
from paddle.fluid import profiler

def samples():
    for k in range(40):
        yield np.full(8, k, "float32"), np.array([k % 4])

x, y = fluid.data("x", [None, 8]), fluid.data("y", [None, 1], "int64")
loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(fluid.layers.fc(x, 4), y))
fluid.optimizer.SGD(0.1).minimize(loss)
loader = fluid.io.DataLoader.from_generator(feed_list=[x, y], capacity=4, use_multiprocess="many" in sys.argv)
loader.set_sample_generator(samples, batch_size=4, places=fluid.CPUPlace())
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
for epoch in range(2):
    with profiler.profiler("CPU", profile_path=sys.argv[1]):
        for data in loader():
            exe.run(feed=data, fetch_list=[loss])
    profiler.reset_profiler()
print("</script> trained")
sys.exit(int(sys.argv[2]))
"""


def profiled(folder, *args):
    """(exit status, output, errors, data of the page) of a script under `fluidlite profile`."""
    (folder / "train.py").write_text(TRAINING)
    done = subprocess.run(
        [sys.executable, "-m", "fluidlite", "profile", "train.py", "trace.json", *args],
        cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    text = (folder / "train.profile.html").read_text(encoding="utf8")
    return done.returncode, done.stdout, done.stderr, json.loads(re.search("const data = (.*);\n", text)[1])


def test_a_training(tmp_path):
    """Steps, operators and loaders are counted, the script's own profiler goes on, and its status is passed on."""
    status, output, errors, data = profiled(tmp_path, "3")
    assert status == 3 and "</script> trained" in output and output.count("Profiling Report") >= 2
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    calls = {name: count for name, count, *_ in data["operators"]}
    assert calls["softmax_with_cross_entropy_grad"] == 20
    events = json.loads((tmp_path / "train.profile.json").read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert sum(event["name"] == "softmax_with_cross_entropy_grad" for event in spans) == 20
    assert all(event["ts"] >= 0 and event["dur"] >= 0 for event in spans)
    assert any(event["args"]["name"] == "MainThread" for event in events if event["name"] == "thread_name")
    assert len(data["steps"]) == 21 and data["status"] == 3
    assert [loader["batches"] for loader in data["loaders"]] == [20]
    names = [name for name, _ in data["strips"]]
    assert names[0] == "MainThread" and len(names) == 2 and "samples()" in names[1]
    assert sum(value for _, value in data["parts"]) == pytest.approx(data["seconds"], rel=1e-3)
    assert 10e6 < max(own for _, own, _ in data["memory"]) < 10e9
    first, bottleneck, memory = data["sentences"]
    assert "ran programs 21 times" in first and "20 batches of 80 samples" in first
    assert all(sentence in errors for sentence in data["sentences"]) and "memory" in memory
    assert "bottleneck" in bottleneck or "takes most" in bottleneck
    reading = data["names"].index("reading")
    assert sum(column[reading] for column in data["strips"][1][1]) > 0


def test_worker_processes_have_lanes_of_their_own(tmp_path):
    status, _, _, data = profiled(tmp_path, "0", "many")
    assert status == 0 and len(data["strips"]) == 2
    name, columns = data["strips"][1]
    assert "worker" in name and 0 < sum(map(sum, columns)) <= len(columns)


@needs_browser
def test_the_page_draws_itself(tmp_path):
    profiled(tmp_path, "0")
    page = drawn(tmp_path / "train.profile.html")
    assert "<h1>train.py trace.json 0</h1>" in page
    assert page.count("<svg") >= 7 and page.count("<circle") == 21
    assert 'viewBox="0 0 -' not in page
    assert re.search("<td[^>]*>softmax_with_cross_entropy_grad</td>", page)


def test_what_is_inside_of_a_span_is_taken_off_it():
    spans = [
        Span("relu", Kind.OPERATOR, 20, 10),
        Span("Executor.run", Kind.OTHER, 10, 40),
        Span("DataLoader.next", Kind.OTHER, 60, 5),
    ]
    assert list(profile.segments(spans)) == [
        (10, 20, "executor"), (20, 30, "computing"), (30, 50, "executor"), (60, 65, "waiting")
    ]  # fmt: skip
    columns = profile.columns(profile.segments(spans), 0, 80, 4)
    assert columns == [
        {"executor": 0.5},
        {"computing": 0.5, "executor": 0.5},
        {"executor": 0.5},
        {"waiting": 0.25},
    ]


def test_workers_are_placed_by_their_clocks():
    """The second message came late; the third is of another process."""
    second = 10**9
    heard = [(3 * second, (2.0, 0.5, 0.0)), (9 * second, (3.0, 1.0, 0.5)), (20 * second, (1.0, 0.0, 0.0))]
    assert [(a / second, b / second, part) for a, b, part in profile.of_workers(heard)] == [
        (0.5, 2.5, "reading"), (2.5, 3.0, "sending"), (3.5, 4.5, "reading"), (4.5, 5.0, "sending"),
        (19.0, 20.0, "reading"), (20.0, 20.0, "sending"),
    ]  # fmt: skip


def test_loaders_record_nothing_without_a_profile():
    assert profiling.active is None
    with fluid.program_guard(fluid.Program()):
        loader = fluid.io.DataLoader.from_generator(feed_list=[fluid.data("x", [1])], capacity=2)
    loader.set_batch_generator(lambda: iter([[np.ones(1, "float32")]] * 3), places=fluid.CPUPlace())
    counted = []
    for detailed in (False, True):
        recorder = Recorder(ProfilerState.kCPU, detailed)
        profiling.switch(recorder)
        try:
            assert len(list(loader())) == 3
        finally:
            profiling.switch(None)
        names = {name for lane in recorder.lanes for name in lane.rows}
        counted.append((names >= {"reading", "collating"}, recorder.loaders == [loader]))
    assert counted == [(False, False), (True, True)]


def test_a_script_that_is_not_there(tmp_path, capsys):
    assert main(["profile", str(tmp_path / "none.py")]) == 2
    assert "there is no script" in capsys.readouterr().err and profiling.active is None
    assert main(["profile", str(tmp_path)]) == 2
    assert "has no __main__.py to run" in capsys.readouterr().err


def test_a_page_that_cannot_be_written_is_reported_before_the_script_runs(tmp_path, capsys):
    (tmp_path / "train.py").write_text("open('ran', 'w')")
    assert main(["profile", "-o", str(tmp_path / "none" / "page.html"), str(tmp_path / "train.py")]) == 2
    assert "there is no folder" in capsys.readouterr().err and not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("command", "named"), [("profile", "SCRIPT"), ("draw", "MODEL_OR_SCRIPT")])
def test_a_command_alone_asks_for_its_script(command, named, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([command])
    error = capsys.readouterr().err
    assert f"required: {named}" in error and error.count("\n") == 1


FROM_FILES = """
import paddle.fluid as fluid

x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 1], "int64")
loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(fluid.layers.fc(x, 4), y))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
dataset.set_use_var([x, y])
dataset.set_batch_size(5)
dataset.set_thread(2)
dataset.set_filelist(["one.txt", "two.txt"])
exe.train_from_dataset(fluid.default_main_program(), dataset)
"""


def test_training_from_files(tmp_path):
    """The main thread waits for those that train, which read their files and run the program."""
    (tmp_path / "train.py").write_text(FROM_FILES)
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("2 0.5 0.25 1 3\n" * 50)
    done = subprocess.run(
        [sys.executable, "-m", "fluidlite", "profile", "train.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "train.profile.html").read_text(encoding="utf8")
    data = json.loads(re.search("const data = (.*);\n", text)[1])
    assert {name: count for name, count, *_ in data["operators"]}["softmax_with_cross_entropy_grad"] == 20
    assert "trainers" in dict(data["parts"])
    reading, strips = data["names"].index("reading"), dict(data["strips"])
    for number in (0, 1):
        assert sum(column[reading] for column in strips[f"fluidlite trainer {number}"]) > 0


def empty_run():
    """Ten seconds of which nothing has been recorded."""
    run = profile.Run.__new__(profile.Run)
    run.recorder, run.memory = Recorder(ProfilerState.kAll, detailed=True), []
    run.begin, run.end = 0, 10_000_000_000
    return run


def test_without_programs_steps_go_from_update_to_update():
    run = empty_run()
    lane = profiling.Lane("MainThread")
    for name, kind, begin, length in [
        ("relu", Kind.OPERATOR, 3, 1),
        (profiling.UPDATE, Kind.OTHER, 5, 2),
        (profiling.UPDATE, Kind.OTHER, 9, 1),
    ]:
        lane.spans.append(Span(name, kind, begin * 10**6, length * 10**6))
        lane.rows.setdefault(name, profiling.Row(name, kind)).add(length, 0, length)
    run.recorder.lanes.append(lane)
    report = profile.Report(run)
    assert [(span.begin, span.length) for span in report.steps()] == [
        (3 * 10**6, 4 * 10**6),
        (7 * 10**6, 3 * 10**6),
    ]
    assert "updated parameters twice" in report.sentences()[0]


@pytest.mark.parametrize(("steps", "advice"), [(2, "Longer runs say more"), (10, "A DataLoader reads")])
def test_what_helps_a_script_depends_on_how_many_steps_it_has(steps, advice):
    run = empty_run()
    lane = profiling.Lane("MainThread")
    for number in range(steps):
        length = 10**6 if number else 3 * 10**6
        lane.spans.append(Span(profiling.STEP, Kind.OTHER, number * 10**8, length))
        lane.rows.setdefault(profiling.STEP, profiling.Row(profiling.STEP, Kind.OTHER)).add(length, 0, length)
    run.recorder.lanes.append(lane)
    done, bottleneck, _ = profile.Report(run).sentences()
    assert "half of them in at most 1 ms, the slowest in 3 ms" in done
    assert "own Python takes most" in bottleneck and advice in bottleneck


def test_what_comes_before_the_first_step_is_no_bottleneck():
    run = empty_run()
    run.end = run.begin + 10 * 10**9
    lane = profiling.Lane("MainThread")
    row = lane.rows.setdefault("relu", profiling.Row("relu", Kind.OPERATOR))
    for number in range(20):
        begin = run.begin + (8 + number / 10) * 10**9
        lane.spans.append(Span(profiling.STEP, Kind.OTHER, int(begin), 10**8))
        row.add(9 * 10**7, 0, 9 * 10**7)
    run.recorder.lanes.append(lane)
    bottleneck = profile.Report(run).sentences()[1]
    assert "operators take 90% of the time after the 8.0 s before the first step" in bottleneck


def test_the_work_of_trainers_stands_for_the_wait_for_them():
    run = empty_run()
    lanes = run.recorder.lanes
    for name, spans in {
        "MainThread": [(profiling.TRAINERS, Kind.OTHER, 8)],
        f"{profiling.TRAINER} 0": [("reading", Kind.OTHER, 6), ("mul", Kind.OPERATOR, 1)],
        f"{profiling.TRAINER} 1": [("reading", Kind.OTHER, 4), ("mul", Kind.OPERATOR, 3)],
    }.items():
        lanes.append(profiling.Lane(name))
        for what, kind, seconds in spans:
            row = lanes[-1].rows[what] = profiling.Row(what, kind)
            row.add(seconds * 10**9, 0, seconds * 10**9)
    report = profile.Report(run)
    work = report.work()
    assert [work[part] for part in ("reading", "computing", "executor", "script")] == [5, 2, 1, 2]
    assert "Reading is the bottleneck: 50% of the time" in report.sentences()[1]
