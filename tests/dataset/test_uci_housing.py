"""`paddle.dataset.uci_housing`: normalised as Paddle does."""

import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest

from fluidlite.base.errors import DownloadError, FormatError
from fluidlite.dataset import common, uci_housing


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch, tmp_path):
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(uci_housing, "UCI_TRAIN_DATA", None)
    monkeypatch.setattr(uci_housing, "UCI_TEST_DATA", None)
    monkeypatch.setenv("FLUIDLITE_DATA", str(tmp_path / "data"))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "data" / "uci_housing" / "housing.data"
    path.parent.mkdir(parents=True)
    rows = np.arange(50 * 14, dtype=np.float64).reshape(50, 14) ** 1.5 % 97
    path.write_text("\n".join(" ".join(f"{x:.17g}" for x in row) for row in rows))
    return rows


def test_samples(table):
    train, test = list(uci_housing.train()()), list(uci_housing.test()())
    assert (len(train), len(test)) == (40, 10)
    features, price = train[0]
    assert (features.shape, features.dtype, price.shape, price.dtype) == ((13,), np.float64, (1,), np.float64)
    x = table[:, :13]
    expected = (x - x.mean(axis=0)) / (x.max(axis=0) - x.min(axis=0))
    assert np.array_equal(np.stack([f for f, _ in train + test]), expected)
    assert np.array_equal(np.stack([p for _, p in train + test]), table[:, 13:])


def test_load_data(table, tmp_path):
    path = str(tmp_path / "data" / "uci_housing" / "housing.data")
    uci_housing.load_data(path, feature_num=7, ratio=0.5)
    assert uci_housing.UCI_TRAIN_DATA.shape == uci_housing.UCI_TEST_DATA.shape == (50, 7)


@pytest.mark.parametrize("text", ["", "1 2 3", "1 2 3 x " * 14])
def test_wrong_contents(tmp_path, text):
    path = tmp_path / "housing.data"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"housing\.data is damaged"):
        uci_housing.load_data(str(path))


def test_without_data():
    with pytest.raises(DownloadError, match=r"put the file at \$FLUIDLITE_DATA/uci_housing/housing\.data"):
        uci_housing.train()


def test_a_house_to_predict_and_the_ranges_of_features(table, tmp_path, monkeypatch):
    (features,) = uci_housing.predict_reader()
    assert np.array_equal(features, next(uci_housing.test()())[0])
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    uci_housing.feature_range(table.max(0)[:-1], table.min(0)[:-1])
    assert (tmp_path / "image" / "ranges.png").read_bytes()[1:4] == b"PNG"


def test_the_model_of_the_book(tmp_path, monkeypatch):
    packed = tmp_path / "data" / "uci_housing" / "fit_a_line.fluid.tar"
    packed.parent.mkdir(parents=True)
    (tmp_path / "model").write_text("hi")
    with tarfile.open(packed, "w") as archive:
        archive.add(tmp_path / "model", "model")
    folder = uci_housing.fluid_model()
    assert [path.read_text() for path in Path(folder).iterdir()] == ["hi"]
    shutil.rmtree(folder)
