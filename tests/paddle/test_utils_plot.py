"""paddle.utils.Ploter, and batches for several processes; those are recorded on Paddle 1.8.5."""

import sys
import types

import pytest

from fluidlite.paddle.incubate.hapi.distributed import DistributedBatchSampler
from fluidlite.paddle.utils import Ploter
from fluidlite.reader import Dataset


def test_curves_are_collected_without_drawing(monkeypatch):
    monkeypatch.setenv("DISABLE_PLOT", "True")
    plotter = Ploter("train", "test")
    plotter.append("train", 1, 0.5)
    plotter.append("train", 2, 0.25)
    plotter.plot()
    data = plotter.__plot_data__["train"]
    assert (data.step, data.value) == ([1, 2], [0.5, 0.25])
    plotter.reset()
    assert (data.step, data.value) == ([], [])
    with pytest.raises(AssertionError, match="there is no curve 'other'"):
        plotter.append("other", 1, 2)


def test_without_matplotlib(monkeypatch):
    monkeypatch.delenv("DISABLE_PLOT", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.warns(UserWarning, match="matplotlib is not installed"):
        plotter = Ploter("train")
    plotter.append("train", 1, 2)
    plotter.plot()


def test_curves_are_drawn_to_a_file(monkeypatch, tmp_path):
    monkeypatch.delenv("DISABLE_PLOT", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    calls = []
    figure = types.SimpleNamespace(clear=lambda: calls.append("clear"))
    pyplot = types.ModuleType("pyplot")
    pyplot.plot = lambda step, value: calls.append((list(step), list(value)))
    pyplot.legend = lambda titles, loc: calls.append((titles, loc))
    pyplot.savefig = lambda file, format: calls.append(format) or file.write(b"a picture")
    pyplot.gcf = lambda: figure
    matplotlib = types.ModuleType("matplotlib")
    matplotlib.pyplot = pyplot
    monkeypatch.setitem(sys.modules, "matplotlib", matplotlib)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    plotter = Ploter("train", "test")
    plotter.append("test", 3, 0.5)
    plotter.plot(str(tmp_path / "curves.png"))
    assert calls == [([3], [0.5]), (["test"], "upper left"), "png", "clear"]
    assert (tmp_path / "curves.png").read_bytes() == b"a picture"


class Numbers(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index


def processes(monkeypatch, count, rank):
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", str(count))
    monkeypatch.setenv("PADDLE_TRAINER_ID", str(rank))


def test_one_process(monkeypatch):
    processes(monkeypatch, 1, 0)
    sampler = DistributedBatchSampler(Numbers(10), 3)
    assert len(sampler) == 4 and list(sampler) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    shuffled = DistributedBatchSampler(Numbers(10), 3, shuffle=True)
    assert list(shuffled) == [[2, 8, 4], [9, 1, 6], [7, 3, 0], [5]]
    assert list(shuffled) == [[2, 9, 6], [4, 0, 3], [1, 7, 8], [5]]
    shuffled.set_epoch(5)
    assert list(shuffled) == [[9, 5, 2], [4, 7, 1], [0, 8, 6], [3]]


def test_several_processes(monkeypatch):
    found = []
    for rank in range(3):
        processes(monkeypatch, 3, rank)
        sampler = DistributedBatchSampler(Numbers(10), 3, drop_last=rank == 2)
        assert len(sampler) == (1 if rank == 2 else 2)
        found.append(list(sampler))
    assert found == [[[0, 1, 2], [9]], [[3, 4, 5], [0]], [[6, 7, 8]]]


def test_what_samplers_refuse():
    for arguments in (
        {"batch_size": 0},
        {"batch_size": 2, "shuffle": 1},
        {"batch_size": 2, "drop_last": None},
    ):
        with pytest.raises(AssertionError, match="should be a"):
            DistributedBatchSampler(Numbers(3), **arguments)
