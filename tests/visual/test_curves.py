"""LogWriter's files are read back, drawn as a page, and damage in them is told."""

import json
import math
import re
import resource
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.__main__ import main
from fluidlite.visual import LogWriter, curves

from .browser import drawn, needs_browser

pytest.importorskip("tensorboardX")


def _written(folder: Path, values: list[float], tag: str = "loss") -> Path:
    with LogWriter(logdir=str(folder)) as writer:
        for step, value in enumerate(values):
            writer.add_scalar(tag=tag, step=step, value=value)
    (file,) = folder.glob("*tfevents*")
    return file


def _data(page: Path) -> dict:
    return json.loads(re.search(r"const data = (.*);\n", page.read_text())[1])


def test_scalars_are_read_back_by_run_and_tag(tmp_path):
    """Numbers, arrays and tensors of one element, in the order of the steps, NaN included."""
    _written(tmp_path / "a", [0.5, math.nan, 0.25])
    with LogWriter(logdir=str(tmp_path / "b" / "c")) as writer, fluid.dygraph.guard():
        writer.add_scalar("acc", np.array([[0.75]], "float32"), 7, walltime=100.0)
        writer.add_scalar("acc", fluid.dygraph.to_variable(np.array([0.125], "float32")), 3, walltime=90.0)
    found = curves.runs(tmp_path)
    assert sorted(found) == ["a", "b/c"]
    assert [(step, str(value)) for step, value, _ in found["a"]["loss"]] == [
        (0, "0.5"),
        (1, "nan"),
        (2, "0.25"),
    ]
    assert found["b/c"]["acc"] == [(3, 0.125, 90.0), (7, 0.75, 100.0)]


def test_other_kinds_are_written(tmp_path):
    """Histograms, pictures, texts, embeddings and precision-recall curves are events with their tags."""
    from tensorboardX.proto.event_pb2 import Event

    random = np.random.RandomState(0)
    with LogWriter(logdir=str(tmp_path), display_name="mine") as writer:
        assert writer.logdir == str(tmp_path)
        writer.add_histogram("weights", random.rand(3, 4), 1, buckets=5)
        writer.add_image("picture", random.randint(0, 255, (4, 5, 3)).astype("uint8"), 2)
        writer.add_text("note", "hello", 3)
        writer.add_pr_curve("pr", [0, 1, 1], [0.1, 0.9, 0.4], 4)
        writer.add_embeddings("words", ["a", "b"], [[1.0, 2.0], [3.0, 4.0]])
    (file,) = tmp_path.glob("*tfevents*")
    values = {
        value.tag: (event.step, value)
        for event in map(Event.FromString, curves._records(file))
        for value in event.summary.value
    }
    assert {"display_name/text_summary", "weights", "picture", "note/text_summary", "pr"} <= set(values)
    assert values["weights"][0] == 1 and sum(values["weights"][1].histo.bucket) == 12
    picture = values["picture"][1].image
    assert (picture.height, picture.width) == (4, 5)
    assert (tmp_path / "projector_config.pbtxt").exists()


def test_bad_values_are_refused_by_name(tmp_path):
    """A scalar of several elements, a folder without events."""
    with LogWriter(logdir=str(tmp_path / "x")) as writer:
        with pytest.raises(
            ValueError, match=r"add_scalar of 'loss': expected one number, got 2 in shape \[2\]"
        ):
            writer.add_scalar("loss", np.zeros(2), 0)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no event file"):
        curves.runs(tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match="no folder .*none"):
        curves.runs(tmp_path / "none")


@pytest.mark.parametrize("place", [12 + 3, 2])
def test_damage_is_reported_and_earlier_records_are_read(tmp_path, place):
    """A flipped bit in a record or in its length ends the file there."""
    file = _written(tmp_path, [1.0, 2.0, 3.0])
    content = bytearray(file.read_bytes())
    starts, at = [], 0
    while at < len(content):
        starts.append(at)
        at += 16 + struct.unpack_from("<Q", content, at)[0]
    content[starts[-1] + place] ^= 4
    file.write_bytes(content)
    with pytest.warns(UserWarning, match="damaged; only the records before"):
        found = curves.runs(tmp_path)
    assert [value for _, value, _ in found["."]["loss"]] == [1.0, 2.0]


def test_a_file_that_still_grows_is_read_up_to_its_end(tmp_path):
    """Cut off anywhere, the records before are read, without a warning."""
    file = _written(tmp_path, [1.0, 2.0])
    whole = file.read_bytes()
    for length in range(0, len(whole), 7):
        file.write_bytes(whole[:length])
        values = [value for _, value, _ in curves.runs(tmp_path).get(".", {}).get("loss", [])]
        assert values == [1.0, 2.0][: len(values)]


def test_the_page_has_every_curve(tmp_path, capsys):
    """`fluidlite plot` writes one page with the points of each run, NaN as null, and texts that cannot end it."""
    _written(tmp_path / "first", [1.0, math.inf, 0.5])
    _written(tmp_path / "second", [2.0], tag="acc")
    assert main(["plot", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"2 curves of 2 runs: {tmp_path / 'curves.html'}\n"
    data = _data(tmp_path / "curves.html")
    assert data["runs"] == ["first", "second"]
    acc, loss = data["charts"]
    assert (acc["tag"], loss["tag"]) == ("acc", "loss")
    assert acc["lines"] == [[], [[0, 2.0, 0.0]]]
    assert [point[:2] for point in loss["lines"][0]] == [[0, 1.0], [1, None], [2, 0.5]]
    page = curves.page({"r": {"</script><b>": [(0, 1.0, 0.0)]}}, "</title>")
    assert page.count("</script>") == 1 and "<b>" not in page.replace("</b>", "")


def test_long_curves_keep_their_extremes():
    """A curve of 10,000 points is drawn with at most MOST_POINTS, its peaks among them."""
    curve = [(step, math.sin(step / 50), float(step)) for step in range(10_000)]
    curve[5003] = (5003, 9.0, 5003.0)
    curve[6007] = (6007, -9.0, 6007.0)
    kept = curves._decimated(curve)
    assert len(kept) <= curves.MOST_POINTS
    assert {curve[0], curve[5003], curve[6007], curve[-1]} <= set(kept)
    assert kept == sorted(kept)


def test_a_full_disk_neither_ends_nor_stops_a_training(tmp_path, caplog):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    writer = LogWriter(logdir=str(tmp_path), flush_secs=0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        for step in range(300):
            writer.add_scalar("loss", 0.5, step)
        writer.flush()
        writer.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (logged,) = [record.getMessage() for record in caplog.records]
    assert logged.startswith(f"LogWriter: the events of {tmp_path} are lost from here on: ")
    assert 10 < len(curves.runs(tmp_path)["."]["loss"]) < 300


def test_writers_that_begin_in_the_same_second_have_files_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1_600_000_000.0)
    for value in (1.0, 2.0):
        with LogWriter(logdir=str(tmp_path)) as writer:
            writer.add_scalar("loss", value, 0)
    assert len(list(tmp_path.glob("*tfevents*"))) == 2
    ((_, points),) = curves.runs(tmp_path)["."].items()
    assert sorted(value for _, value, _ in points) == [1.0, 2.0]


def test_what_is_flushed_is_there_and_what_comes_after_the_end_has_another_file(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1_600_000_000.0)
    writer = LogWriter(logdir=str(tmp_path))
    for step in range(50):
        writer.add_scalar("loss", 0.5, step)
    writer.flush()
    assert len(curves.runs(tmp_path)["."]["loss"]) == 50
    writer.close()
    writer.close()
    writer.flush()
    writer.add_scalar("loss", 0.5, 50)
    writer.close()
    assert [step for step, _, _ in curves.runs(tmp_path)["."]["loss"]] == list(range(51))


def test_plot_says_what_is_wrong(tmp_path, capsys):
    """A folder without events and an output that cannot be written: exit status 2 and one line."""
    assert main(["plot", str(tmp_path)]) == 2
    assert "fluidlite plot" in capsys.readouterr().err
    _written(tmp_path, [1.0])
    assert main(["plot", str(tmp_path), "-o", str(tmp_path / "none" / "x.html")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_scripts_import_visualdl(tmp_path):
    """Under `python -m fluidlite`, `visualdl` is this package if nothing else has the name, and otherwise that."""
    script = tmp_path / "train.py"
    script.write_text(
        "from visualdl import LogWriter\n"
        "with LogWriter('logs') as writer:\n    writer.add_scalar('x', 1, 0)\n"
        "print(LogWriter.__module__)\n"
    )
    command = [sys.executable, "-m", "fluidlite", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "fluidlite.visual.writer\n", done.stderr
    assert curves.runs(tmp_path / "logs")["."]["x"][0][:2] == (0, 1.0)
    (tmp_path / "visualdl.py").write_text("class LogWriter:\n    pass\n")
    script.write_text("from visualdl import LogWriter\nprint(LogWriter.__module__)\n")
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout == "visualdl\n"


@needs_browser
def test_a_browser_draws_the_page(tmp_path):
    """In headless Chromium each run has its line, and nothing is logged as an error."""
    _written(tmp_path / "a", [1.0, 0.5, 0.25])
    _written(tmp_path / "b", [2.0, 1.0])
    assert main(["plot", str(tmp_path)]) == 0
    dom = drawn(tmp_path / "curves.html")
    assert len(re.findall(r'<path class="line" d="M[^"]+', dom)) == 2
    assert "0.25" in dom
