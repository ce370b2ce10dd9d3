"""`paddle.dataset.mnist`: the values Paddle gives, from the user's files, the cache or the bundle."""

import bz2
import gzip
import lzma
import pickle
import struct
import warnings

import numpy as np
import pytest

from fluidlite.base.errors import DownloadError, FormatError
from fluidlite.dataset import common, mnist


def images(count, seed=0, side=28):
    pixels = np.random.default_rng(seed).integers(0, 256, (count, side, side), dtype=np.uint8)
    return struct.pack(">4i", 2051, count, side, side) + pixels.tobytes()


def labels(values):
    return struct.pack(">2i", 2049, len(values)) + bytes(values)


def write(folder, split, image_bytes, label_bytes, pack=gzip.compress, ending=".gz"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{split}-images-idx3-ubyte{ending}").write_bytes(pack(image_bytes))
    (folder / f"{split}-labels-idx1-ubyte{ending}").write_bytes(pack(label_bytes))


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch, tmp_path):
    """An empty cache, no files of the user's, and nothing said yet."""
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(mnist, "_unreachable", None)
    monkeypatch.delenv("FLUIDLITE_DATA", raising=False)
    mnist._decode.cache_clear()


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("FLUIDLITE_DATA", str(tmp_path / "data"))
    return tmp_path / "data" / "mnist"


def test_every_pixel_value_is_paddles(tmp_path):
    pixels = np.arange(784, dtype=np.int64).astype(np.uint8)
    header = struct.pack(">4i", 2051, 1, 28, 28)
    write(tmp_path, "train", header + pixels.tobytes(), labels([3]))
    paths = [str(tmp_path / f"train-{kind}-ubyte.gz") for kind in ("images-idx3", "labels-idx1")]
    ((image, label),) = mnist.reader_creator(*paths, 100)()
    assert type(label) is int and label == 3
    assert image.dtype == np.float32 and image.shape == (784,)
    expected = pixels.astype("float32") / 255.0 * 2.0 - 1.0
    assert image.tobytes() == expected.tobytes()
    # Bit patterns that real Paddle 1.8.5 gave for these pixel values.
    recorded = {
        0: 3212836864, 1: 3212705278, 3: 3212442106, 100: 3193756892, 127: 3145760896, 254: 1065221630,
    }  # fmt: skip
    assert {value: int(image[value : value + 1].view(np.uint32)[0]) for value in recorded} == recorded


@pytest.mark.parametrize(
    "pack, ending",
    [(gzip.compress, ".gz"), (bytes, ""), (bytes, ".gz"), (lzma.compress, ".xz"), (bz2.compress, ".bz2")],
)
def test_users_files_whatever_packed_them(home, pack, ending):
    write(home, "train", images(600), labels([i % 10 for i in range(600)]), pack, ending)
    write(home, "t10k", images(5, seed=1), labels([9, 8, 7, 6, 5]), pack, ending)
    assert [label for _, label in mnist.train()()] == [i % 10 for i in range(600)]
    found = list(mnist.test()())
    assert [label for _, label in found] == [9, 8, 7, 6, 5]
    expected = np.frombuffer(images(5, seed=1), np.uint8, offset=16).reshape(5, 784)
    assert np.array_equal(np.stack([image for image, _ in found]), expected.astype("float32") / 255 * 2 - 1)


def test_readers_start_over_and_go_side_by_side(home):
    write(home, "train", images(300), labels([0] * 300))
    reader = mnist.train()
    first, second = reader(), reader()
    a = next(first)[0]
    a[:] = 7
    assert next(second)[0].max() <= 1, "what one reader's user writes is not seen by another"
    assert len(list(reader())) == 300


def test_reader_can_be_sent_to_a_process(home):
    write(home, "train", images(2), labels([1, 2]))
    assert [label for _, label in pickle.loads(pickle.dumps(mnist.train()))()] == [1, 2]


@pytest.mark.parametrize(
    "image_bytes, label_bytes, message",
    [
        (images(4)[:-1], labels([0] * 4), "it has 3135 bytes for 4 items, expected 3136"),
        (labels([0] * 4), labels([0] * 4), "it has 12 bytes, not even a header"),
        (labels([0] * 40), labels([0] * 4), "it begins with 2049, expected 2051"),
        (images(4, side=8), labels([0] * 4), r"items have the shape \(8, 8\), expected \(28, 28\)"),
        (images(4), labels([0] * 3), "3 labels for 4 images"),
        (images(1), labels([10]), "labels must be 0 to 9, one is 10"),
        (b"", labels([1]), "it has 0 bytes"),
    ],
)
def test_unsound_contents_are_refused(home, image_bytes, label_bytes, message):
    write(home, "train", image_bytes, label_bytes)
    with pytest.raises(FormatError, match=message) as caught:
        mnist.train()
    assert str(home) in str(caught.value) and "remove or replace it" in str(caught.value)


def test_damaged_packing_is_refused(home):
    write(home, "train", images(50), labels([0] * 50))
    path = home / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(FormatError, match="images-idx3-ubyte.gz is damaged"):
        mnist.train()


def test_bundle_serves_with_one_warning():
    with pytest.warns(UserWarning, match="a bundled part of it is used") as caught:
        train = mnist.train()
    assert "mnist.fetch() says why" in str(caught[0].message) and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        test = mnist.test()
        second_reader = mnist.train()
    counts = np.bincount([label for _, label in train()], minlength=10)
    assert counts.sum() == 10_000 and counts.min() > 850
    assert sum(1 for _ in test()) == 2_000
    # The first training digits of MNIST are 5 0 4 1 9 2 1 3 1 4 3 5 3 6 ...; every sixth is bundled.
    assert [label for _, (_, label) in zip(range(3), second_reader(), strict=False)] == [5, 1, 3]


def test_fetch_does_not_take_the_bundle():
    with pytest.raises(DownloadError, match="FLUIDLITE_OFFLINE is set"):
        mnist.fetch()


def test_download_may_be_replaced(monkeypatch, tmp_path):
    """Programs written for Paddle do that."""
    write(tmp_path, "train", images(3), labels([4, 5, 6]))
    monkeypatch.setattr(
        common, "download", lambda url, module, md5, save_name=None: str(tmp_path / url.split("/")[-1])
    )
    assert [label for _, label in mnist.train()()] == [4, 5, 6]


def test_cached_test_digits_serve_though_training_digits_do_not(tmp_path, monkeypatch):
    write(tmp_path / "cache" / "mnist", "t10k", images(3), labels([4, 5, 6]))
    for kind, name in (("IMAGE", "images-idx3"), ("LABEL", "labels-idx1")):
        md5 = common.md5file(str(tmp_path / "cache" / "mnist" / f"t10k-{name}-ubyte.gz"))
        monkeypatch.setattr(mnist, f"TEST_{kind}_MD5", md5)
    with pytest.warns(UserWarning, match="bundled"):
        mnist.train()
    assert [label for _, label in mnist.test()()] == [4, 5, 6]
