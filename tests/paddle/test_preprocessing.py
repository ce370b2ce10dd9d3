"""`paddle.utils.preprocess_util`, `paddle.utils.preprocess_img`."""

import io
import random
from pathlib import Path

import numpy as np
import pytest

from fluidlite.io.pickles import read_pickle
from fluidlite.paddle.utils import image_util, preprocess_img, preprocess_util

pillow = pytest.importorskip("PIL.Image")


@pytest.fixture
def seeded():
    state = random.getstate()
    random.seed(1)
    yield
    random.setstate(state)


def test_folders(tmp_path):
    for name in ("cat", "ant", ".git"):
        (tmp_path / name).mkdir()
    for name in ("a.png", "b.txt", "c.jpg", ".d.png", "e.png~"):
        (tmp_path / name).write_text("")
    path = str(tmp_path)
    assert sorted(preprocess_util.list_dirs(path)) == [f"{path}/ant", f"{path}/cat"]
    assert sorted(preprocess_util.list_files(path)) == [
        f"{path}/{name}" for name in ("a.png", "b.txt", "c.jpg")
    ]
    assert sorted(preprocess_util.list_images(path)) == [f"{path}/a.png", f"{path}/c.jpg"]
    assert preprocess_util.list_images(path, {"txt"}) == [f"{path}/b.txt"]
    assert preprocess_util.get_label_set_from_dir(path) == {"ant": 0, "cat": 1}
    preprocess_util.save_list(["a", "b"], f"{path}/list")
    assert (tmp_path / "list").read_text() == "a\nb"


def test_labels_are_spread_as_paddle_spreads_them(seeded):
    data = preprocess_util.Dataset([(preprocess_util.Label(i % 3, "n"), i) for i in range(30)], ["l", "x"])
    data.permute(0, 9)
    # What Paddle 1.8.5 gives for random.seed(1).
    assert [item[1] for item in data.data] == [
        18, 24, 27, 13, 25, 7, 23, 26, 20, 21, 15, 9, 19, 16, 28, 29, 17, 2, 0, 12, 3, 1, 22, 4, 8, 5, 11, 6, 10, 14,
    ]  # fmt: skip
    with pytest.raises(ValueError, match="less than two of each of 3 labels"):
        data.permute(0, 3)
    random.seed(1)
    data.permute(None, 9)
    assert [item[1] for item in data.data][:8] == [11, 17, 9, 15, 4, 24, 7, 14]


def test_data_sets_that_do_not_fit():
    label = preprocess_util.Label(1, "a")
    with pytest.raises(AssertionError, match="1 objects, expected images, labels"):
        preprocess_util.Dataset([(label,)], ["images", "labels"]).check_valid()
    with pytest.raises(AssertionError, match="keys"):
        preprocess_util.DataBatcher(preprocess_util.Dataset([], "a"), preprocess_util.Dataset([], "b"), {})


@pytest.fixture
def folders(tmp_path):
    draw = np.random.RandomState(0)
    for part, count in (("train", 5), ("test", 2)):
        for label in ("ant", "bee"):
            (tmp_path / part / label).mkdir(parents=True)
            for number in range(count):
                image = draw.randint(0, 255, (20 + number, 30, 3), "uint8")
                pillow.fromarray(image).save(tmp_path / part / label / f"{number}.png")
    return tmp_path


def test_images_become_batches(folders, seeded):
    maker = preprocess_img.ImageClassificationDatasetCreater(str(folders), 16)
    maker.num_per_batch = 4
    made = Path(maker.create_batches())
    train = (made / "train.list").read_text().split("\n")
    assert [Path(name).name for name in train] == ["train_batch_000", "train_batch_001", "train_batch_002"]
    batches = [read_pickle(name) for name in train]
    assert [sorted(batch["labels"]) for batch in batches] == [[0, 0, 1, 1], [0, 0, 1, 1], [0, 1]]
    assert {min(pillow.open(io.BytesIO(image)).size) for image in batches[0]["images"]} == {16}
    assert read_pickle(made / "labels.pkl") == {"ant": 0, "bee": 1}
    meta = read_pickle(made / "batches.meta")
    assert (meta["image_size"], meta["num_classes"], meta["color"]) == (16, 2, True)
    read = [
        preprocess_img.DiskImage(str(path), 16).convert_to_array()
        for path in (folders / "train").rglob("*.png")
    ]
    wanted = np.mean([image_util.crop_img(image, 16) for image in read], axis=0, dtype="float64")
    np.testing.assert_array_equal(meta["data_mean"], wanted.astype("int32").ravel())
    part = image_util.load_meta(str(made / "batches.meta"), 16, 8)
    np.testing.assert_array_equal(part, wanted.astype("int32")[:, 4:12, 4:12])
    written = (made / "train_batch_000").stat().st_mtime_ns
    maker.create_batches()  # nothing is made twice
    assert (made / "train_batch_000").stat().st_mtime_ns == written


def test_images_from_a_list(folders):
    (folders / "list").write_text(f"{folders}/train/bee/0.png bee\n{folders}/train/ant/0.png ant\n")
    maker = preprocess_img.ImageClassificationDatasetCreater(str(folders), 16)
    maker.from_list = True
    data, labels = maker.create_dataset(str(folders / "list"))
    assert labels == {"bee": 0, "ant": 1} and [item[1].label for item in data.data] == [0, 1]
    assert data.data[0][0].convert_to_array().shape == (3, 16, 24)
    with pytest.raises(NotImplementedError):
        preprocess_util.DatasetCreater(str(folders)).create_batches()
