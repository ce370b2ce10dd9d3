"""`DataLoader.from_dataset`: batches of slot files in a loop; and the older names of loaders."""

import numpy as np
import pytest

from fluidlite import DatasetFactory, reader
from fluidlite.base.place import CPUPlace
from fluidlite.data import data
from fluidlite.dygraph import guard
from fluidlite.io import DataLoader


@pytest.fixture
def dataset(programs, tmp_path):
    (tmp_path / "part").write_text("".join(f"2 {k} 1 1 {k}\n" for k in range(7)))
    made = DatasetFactory().create_dataset("InMemoryDataset")
    made.set_use_var([data("x", [None, 2], "float32"), data("ids", [None, 1], "int64", lod_level=1)])
    made.set_batch_size(2)
    made.set_filelist([str(tmp_path / "part")])
    made.load_into_memory()
    return made


@pytest.mark.parametrize(
    ("places", "drop_last", "sizes"),
    [
        (1, True, [[2], [2], [2]]),
        (1, False, [[2], [2], [2], [1]]),
        (2, True, [[2, 2]]),
        (2, False, [[2, 2], [2, 1]]),
    ],
)
def test_items_have_a_batch_for_each_place(dataset, places, drop_last, sizes):
    loader = DataLoader.from_dataset(dataset, [CPUPlace()] * places, drop_last=drop_last)
    assert type(loader) is reader.DatasetLoader
    for _ in range(2):
        items = list(loader())
        assert [[len(np.array(batch["x"])) for batch in item] for item in items] == sizes
        first = items[0][0]["ids"]
        assert first.lod() == [[0, 1, 2]] and np.array(first).tolist() == [[0], [1]]


# Batches of files 0, 1, ... of five samples each, by file and sample; those of real Paddle 1.8.5 with as many files as
# places.
ITEMS = {
    (2, 1, False): [["00 01"], ["02 03"], ["04 10"], ["11 12"], ["13 14"]],
    (2, 2, False): [["00 01", "10 11"], ["02 03", "12 13"], ["04", "14"]],
    (2, 2, True): [["00 01", "10 11"], ["02 03", "12 13"]],
    (3, 3, False): [["00 01", "10 11", "20 21"], ["02 03", "12 13", "22 23"], ["04", "14", "24"]],
    (3, 2, False): [["00 01", "10 11"], ["02 03", "12 13"], ["04 20", "14"], ["21 22", "23 24"]],
    (1, 2, False): [["00 01", "02 03"], ["04"]],
    (1, 2, True): [["00 01", "02 03"]],
}


@pytest.mark.parametrize(("files", "places", "drop_last"), ITEMS)
def test_places_take_files_round_robin(programs, tmp_path, files, places, drop_last):
    made = DatasetFactory().create_dataset("QueueDataset")
    for file in range(files):
        (tmp_path / f"part{file}").write_text("".join(f"2 {file} {sample}\n" for sample in range(5)))
    made.set_use_var([data("x", [None, 2], "int64")])
    made.set_batch_size(2)
    made.set_filelist([str(tmp_path / f"part{file}") for file in range(files)])
    loader = DataLoader.from_dataset(made, [CPUPlace()] * places, drop_last=drop_last)
    for _ in range(2):
        found = [
            [" ".join(f"{file}{sample}" for file, sample in np.array(batch["x"])) for batch in item]
            for item in loader
        ]
        assert found == ITEMS[files, places, drop_last]


def test_parts_of_the_memory_end_together(programs, tmp_path):
    """The last item has a batch for each place."""
    made = DatasetFactory().create_dataset("InMemoryDataset")
    (tmp_path / "part").write_text("".join(f"1 {sample}\n" for sample in range(32)))
    made.set_use_var([data("x", [None, 1], "int64")])
    made.set_batch_size(4)
    made.set_filelist([str(tmp_path / "part")])
    made.load_into_memory()
    items = list(DataLoader.from_dataset(made, [CPUPlace()] * 3, drop_last=False))
    assert [[len(np.array(batch["x"])) for batch in item] for item in items] == [
        [4, 4, 4],
        [4, 4, 4],
        [3, 3, 2],
    ]
    assert [np.array(batch["x"])[0, 0] for batch in items[0]] == [0, 11, 22]


def test_an_epoch_goes_on_where_another_one_stopped(dataset):
    loader = DataLoader.from_dataset(dataset, [CPUPlace()] * 2, drop_last=False)
    epoch = iter(loader)
    (first, _) = next(epoch)
    state = loader.state_dict()
    assert state == {"epoch": 0, "batches": 1} and np.array(first["x"])[0].tolist() == [0, 1]
    stats = loader.stats()
    assert (stats["state"], stats["samples"], stats["batches"]) == ("running", 4, 1)
    del epoch
    assert loader.state.value == "stopped"
    resumed = DataLoader.from_dataset(dataset, [CPUPlace()] * 2, drop_last=False)
    resumed.set_state_dict(state)
    assert [np.array(batch["x"])[:, 0].tolist() for item in resumed for batch in item] == [[2, 3], [6]]
    assert resumed.state_dict() == {"epoch": 1, "batches": 0}
    assert "1 epoch, 1 batch, 3 samples" in resumed.summary()


def test_only_data_sets_of_files_are_taken():
    with pytest.raises(TypeError, match=r"made by fluid.DatasetFactory, got list"):
        DataLoader.from_dataset([], CPUPlace())


def test_older_names(programs):
    x = data("x", [None, 2], "float32")
    loader = reader.GeneratorLoader([x], capacity=2)
    assert type(loader) is type(DataLoader.from_generator([x], capacity=2))
    assert isinstance(loader, reader.DataLoaderBase) and loader.iterable
    assert reader.keep_data_loader_order() is True and reader.QUEUE_GET_TIMEOUT == 60
    reader.keep_data_loader_order(False)
    assert reader.keep_data_loader_order() is False
    reader.keep_data_loader_order(True)
    assert reader.data_loader_unique_name_generator("loader") == "loader_0"
    with guard(CPUPlace()):
        eager = reader.DygraphGeneratorLoader(capacity=2)
        eager.set_batch_generator(lambda: iter([[np.ones((2, 2), "float32")]]), CPUPlace())
        assert [list(batch[0].shape) for batch in eager] == [[2, 2]]
