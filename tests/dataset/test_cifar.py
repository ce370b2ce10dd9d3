"""`paddle.dataset.cifar`: pickled batches in a tar file, read without running anything."""

import io
import itertools
import os
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest

from fluidlite.base.errors import DownloadError, FormatError
from fluidlite.dataset import cifar, common


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch, tmp_path):
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FLUIDLITE_DATA", str(tmp_path / "data"))
    cifar._decode.cache_clear()


@pytest.fixture
def pack(tmp_path):
    def write(name, members, mode="w:gz"):
        path = tmp_path / "data" / "cifar" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, mode) as tar:
            for member, value in members.items():
                data = pickle.dumps(value, 2)
                info = tarfile.TarInfo(member)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        return str(path)

    return write


def batch(labels, key=b"labels", seed=0):
    pixels = np.random.default_rng(seed).integers(0, 256, (len(labels), 3072), dtype=np.uint8)
    return {b"data": pixels, key: labels, b"batch_label": b"x"}


@pytest.mark.parametrize("name, mode", [("cifar-10-python.tar.gz", "w:gz"), ("cifar-10-python.tar", "w")])
def test_cifar10(pack, name, mode):
    first = batch([3, 1])
    folder = "cifar-10-batches-py"
    members = {
        f"{folder}/data_batch_2": first,
        f"{folder}/data_batch_1": batch([4]),
        f"{folder}/test_batch": batch([5, 9]),
    }
    pack(name, members, mode)
    found = list(cifar.train10()())
    assert [label for _, label in found] == [3, 1, 4]
    image, label = found[0]
    assert (image.dtype, image.shape, type(label)) == (np.float32, (3072,), int)
    assert np.array_equal(image, (first[b"data"][0] / 255.0).astype("float32"))
    assert [label for _, label in cifar.test10()()] == [5, 9]
    assert [label for _, label in itertools.islice(cifar.test10(cycle=True)(), 5)] == [5, 9, 5, 9, 5]


def test_cifar100(pack):
    members = {
        "cifar-100-python/train": batch([99, 0, 7], b"fine_labels"),
        "cifar-100-python/test": batch([8], b"fine_labels"),
    }
    pack("cifar-100-python.tar.gz", members)
    assert [label for _, label in cifar.train100()()] == [99, 0, 7]
    assert [label for _, label in cifar.test100()()] == [8]


class Evil:
    def __reduce__(self):
        return os.mkdir, ("made by a pickle",)


@pytest.mark.parametrize(
    "members, message",
    [
        ({}, "none of its members has 'data_batch'"),
        ({"data_batch": [1]}, "data_batch holds no dictionary"),
        ({"data_batch": {b"labels": [1]}}, r"no bytes of shape \[n, 3072\]"),
        ({"data_batch": {**batch([1]), b"labels": [1, 2]}}, "one label for each of its 1 images"),
        ({"data_batch": Evil()}, "data_batch in .* is refused"),
    ],
)
def test_unsound_contents(pack, tmp_path, monkeypatch, members, message):
    monkeypatch.chdir(tmp_path)
    pack("cifar-10-python.tar.gz", members)
    with pytest.raises(FormatError, match=message):
        cifar.train10()
    assert not os.path.exists("made by a pickle")


def test_truncated_file(pack):
    path = pack("cifar-10-python.tar.gz", {"data_batch": batch([1] * 20)})
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[: len(data) // 2])
    with pytest.raises(FormatError, match=r"cifar-10-python\.tar\.gz is damaged"):
        cifar.train10()


def test_without_data():
    with pytest.raises(DownloadError, match=r"\$FLUIDLITE_DATA/cifar/cifar-100-python\.tar\.gz"):
        cifar.train100()
