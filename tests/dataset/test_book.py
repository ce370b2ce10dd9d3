"""The book's data sets give what Fluid 1.8.5 gives, for archives in the true formats."""

import importlib
import json
import os
import re
import tarfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from fluidlite.base.errors import DownloadError, FormatError
from fluidlite.dataset import common

from ..refusals import refuses
from . import archives, book

NAMES = [results.__name__ for results in book.DATASETS]
NEEDS = {"voc2012": "PIL", "flowers": "cv2", "image": "cv2"}
FOLDERS = {"conll05": "conll05st", "sentiment": "corpora", "mq2007": "MQ2007"}


def dataset(name):
    return importlib.import_module(f"fluidlite.dataset.{name}")


@cache
def recorded():
    return json.loads(Path(__file__).with_name("book.json").read_text(encoding="utf8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("archives")
    archives.make(path)
    return path


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    """Nothing at hand, nothing remembered."""
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FLUIDLITE_DATA", str(tmp_path / "data"))
    for name in ("USER_INFO", "MOVIE_INFO", "MOVIE_TITLE_DICT", "CATEGORIES_DICT"):
        monkeypatch.setattr(dataset("movielens"), name, None)
    monkeypatch.setattr(dataset("sentiment"), "NUM_TRAINING_INSTANCES", 1600)
    return tmp_path


@pytest.fixture
def at_hand(folder, fresh):
    """The archives in `$FLUIDLITE_DATA`, for a data set."""

    def link(name):
        place = fresh / "data" / FOLDERS.get(name, name)
        place.mkdir(parents=True)
        for path in folder.iterdir():
            (place / path.name.rpartition("%2F")[2]).symlink_to(path)

    return link


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_those_of_fluid(name, at_hand, folder):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    at_hand(name)
    found = json.loads(
        json.dumps(book.plain(getattr(book, name)(dataset(name), lambda file: str(folder / file))))
    )
    expected = dict(map(tuple, recorded()[name]))
    assert [key for key, _ in found] == sorted(expected, key=lambda key: repr([key, expected[key]]))
    for key, value in found:
        assert value == expected[key], key


@pytest.mark.parametrize("name", [name for name in NAMES if name != "image"])
def test_without_data_the_error_says_where_to_put_it(name):
    module = dataset(name)
    fetch = getattr(module, "fetch", None) or module.train
    refuses(fetch, DownloadError, rf"FLUIDLITE_OFFLINE is set.*\$FLUIDLITE_DATA/{FOLDERS.get(name, name)}/")


@pytest.mark.parametrize("name", ["imdb", "imikolov", "movielens", "conll05", "wmt14", "wmt16", "sentiment"])
def test_damaged_files_are_named(name, at_hand, fresh):
    at_hand(name)
    for path in (fresh / "data" / FOLDERS.get(name, name)).iterdir():
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data[: len(data) // 2] if path.suffix in (".gz", ".tgz", ".zip") else data)
    uses = {
        "imdb": lambda m: m.build_dict(re.compile(".*"), 0),
        "imikolov": lambda m: m.build_dict(0),
        "movielens": lambda m: list(m.train()()),
        "sentiment": lambda m: list(m.train()),
        "conll05": lambda m: list(m.test()()),
        "wmt14": lambda m: list(m.train(5)()),
        "wmt16": lambda m: list(m.train(5, 5)()),
    }
    with pytest.raises(FormatError, match=r"data/.* is damaged or not the expected data file"):
        uses[name](dataset(name))


def test_a_damaged_picture_is_named(at_hand, fresh):
    pytest.importorskip("PIL")
    at_hand("voc2012")
    path = fresh / "data" / "voc2012" / "VOCtrainval_11-May-2012.tar"
    data = path.read_bytes().replace(b"\x89PNG", b"\x89pNG")
    path.unlink()
    path.write_bytes(data)
    with pytest.raises(FormatError, match=f"{path} is damaged .* the picture 2007_"):
        list(dataset("voc2012").train()())


def test_ratings_are_counted(at_hand, fresh, capsys):
    at_hand("movielens")
    module = dataset("movielens")
    module.unittest()
    counts = [len(list(reader())) for reader in (module.train(), module.test())]
    assert capsys.readouterr().out == "{} {}\n".format(*counts) and sum(counts) > 0


def test_the_cache_is_used(folder, fresh):
    place = fresh / "cache/wmt16"
    place.mkdir(parents=True)
    path = place / "wmt16.tar.gz"
    path.write_bytes((folder / path.name).read_bytes())
    refuses(lambda: dataset("wmt16").train(5, 5), DownloadError)
    assert common.download("http://nowhere/wmt16.tar.gz", "wmt16", common.md5file(str(path))) == str(path)


def test_members_are_never_unpacked_by_name(fresh, monkeypatch):
    monkeypatch.chdir(fresh)
    path = fresh / "data/wmt14/wmt14.tgz"
    path.parent.mkdir(parents=True)
    members = {
        "../evil": "x",
        "/tmp/evil/train/train": archives.PAIRS_14,
        "src.dict": "<s>\n<e>\n",
        "trg.dict": "<s>\n<e>\n",
    }
    path.write_bytes(archives.tar(members))
    before = {str(p) for p in fresh.rglob("*")}
    assert len(list(dataset("wmt14").train(5)())) == 3
    assert {str(p) for p in fresh.rglob("*")} == before and not os.path.exists("/tmp/evil")


@pytest.mark.parametrize(
    "name, call, error, message",
    [
        ("imikolov", lambda m: list(m.train({"<unk>": 0}, 2, 3)()), AssertionError, "data_type must be"),
        ("imikolov", lambda m: list(m.train({"<unk>": 0}, -1)()), AssertionError, "n must not be negative"),
        ("wmt16", lambda m: m.train(5, 5, "fr"), ValueError, "'en' .* or 'de'"),
        ("wmt16", lambda m: m.get_dict("fr", 5), ValueError, "got 'fr'"),
        ("mq2007", lambda m: m.train(format="rows"), ValueError, "format must be one of plain_txt"),
        ("wmt14", lambda m: list(m.reader_creator("/nowhere", "train/train", 5)()), FileNotFoundError,
         "nowhere"),
        ("wmt14", lambda m: list(m.reader_creator(m._download(), "no/such", 5)()), FormatError,
         "no member no/such"),
    ],
)  # fmt: skip
def test_errors(name, call, error, message, at_hand):
    at_hand(name)
    refuses(lambda: call(dataset(name)), error, message)


@pytest.mark.parametrize(
    "props, message",
    [
        ("x (V*)\ny A0\n\n", r"expected a bracket such as \(A0\*\), got A0"),
        ("x (V*)\ny\n\n", "fewer columns than verbs"),
    ],
)
def test_odd_brackets(props, message, fresh):
    import gzip

    path = fresh / "c.tar"
    path.write_bytes(
        archives.tar({"w.gz": gzip.compress(b"a\nb\n\n"), "p.gz": gzip.compress(props.encode())}, "w")
    )
    refuses(lambda: list(dataset("conll05").corpus_reader(str(path), "w.gz", "p.gz")()), FormatError, message)


def test_missing_features_and_odd_lines(fresh):
    path = fresh / "rank.txt"
    features = " ".join(f"{i}:{'NULL' if i == 3 else 0.5}" for i in range(1, 47))
    path.write_text(f"2 qid:7 {features} #docid = 1\n")
    [[query]] = dataset("mq2007").load_from_text(str(path), fill_missing=-2)
    assert (query.query_id, query.feature_vector[:4]) == (7, [0.5, 0.5, -2, 0.5])
    for line in ("2 qid:7 1:0.5\n", "x\n", f"2 qid {features}\n"):
        path.write_text(line)
        with pytest.raises(FormatError, match=r"rank\.txt is damaged .*in the line"):
            dataset("mq2007").load_from_text(str(path))


def test_mq2007_without_rarfile(fresh, monkeypatch):
    path = fresh / "data/MQ2007" / dataset("mq2007").URL.rpartition("/")[2]
    path.parent.mkdir(parents=True)
    path.write_bytes(b"Rar!")
    monkeypatch.setitem(__import__("sys").modules, "rarfile", None)
    with pytest.raises(ImportError, match="is a RAR file: unpack it, or install the package rarfile"):
        list(dataset("mq2007").train())
    unpacked = path.parent / "MQ2007/MQ2007/Fold1/train.txt"
    unpacked.parent.mkdir(parents=True)
    unpacked.write_text(archives.ranking())
    assert len(list(dataset("mq2007").train(format="listwise"))) == 3


@pytest.mark.parametrize("name, module", [("image", "cv2"), ("voc2012", "PIL")])
def test_packages_that_are_missing_are_named(name, module, at_hand, monkeypatch):
    at_hand(name)
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(ImportError, match="pip install"):
        dataset("image").resize_short(np.zeros((2, 2, 3), "uint8"), 3) if name == "image" else list(
            dataset(name).val()()
        )


def test_pictures_from_files(fresh):
    pytest.importorskip("cv2")
    module, path = dataset("image"), fresh / "p.png"
    path.write_bytes(archives.png(5, 7, 1))
    colour = module.load_image(str(path))
    assert colour[0, :2].tolist() == [[130, 32, 68], [230, 253, 60]]
    assert (
        module.load_image(str(path), is_color=False).shape
        == module.load_image_bytes(path.read_bytes(), False).shape
        == (5, 7)
    )
    assert [module.resize_short(colour, n).shape[:2] for n in (3, 10)] == [(3, 4), (10, 14)]
    assert module.load_and_transform(str(path), 6, 4, False).shape == (3, 4, 4)
    for crop in (module.center_crop, module.random_crop):
        with pytest.raises(ValueError, match="5 x 7 has no part of 6 x 6"):
            crop(colour, 6)


def test_pictures_in_batches(folder, fresh):
    path = fresh / "flowers.tgz"
    path.symlink_to(folder / "102flowers.tgz")
    labels = {"jpg/image_00001.jpg": 0, "jpg/image_00006.jpg": 1, "jpg/image_00003.jpg": 5}
    listing = dataset("image").batch_images_from_tar(str(path), "trn", labels, 2)
    assert listing == f"{path}_batch/trn.txt"
    import pickle

    batches = [pickle.loads(Path(name).read_bytes()) for name in Path(listing).read_text().split()]
    assert [batch["label"] for batch in batches] == [[5, 0], [1]] and all(
        b["data"][0][:4] == b"\x89PNG" for b in batches
    )
    Path(listing).write_text("kept")
    assert dataset("image").batch_images_from_tar(str(path), "trn", labels) == listing
    assert Path(listing).read_text() == "kept"


def test_flowers_out_of_range(folder, fresh):
    pytest.importorskip("cv2")
    sets = fresh / "setid.mat"
    sets.write_bytes(archives.matrix(trnid=[7]))
    labels = str(folder / "imagelabels.mat")
    module = dataset("flowers")
    with pytest.raises(FormatError, match=r"trnid has numbers outside of 1 \.\.\. 6"):
        module.reader_creator("x", labels, str(sets), "trnid", module.test_mapper)
    with pytest.raises(FormatError, match="valid"):
        module.reader_creator("x", labels, str(sets), "valid", module.test_mapper)
    sets.write_bytes(b"junk" * 100)
    with pytest.raises(FormatError, match=r"setid\.mat is damaged"):
        module.reader_creator("x", labels, str(sets), "trnid", module.test_mapper)


def test_everything_is_fetched_by_one_call(monkeypatch):
    asked = []
    monkeypatch.setattr(common, "download", lambda url, name, *args: asked.append(name) or f"/{name}")
    monkeypatch.setattr(dataset("conll05"), "load_dict", str)
    monkeypatch.setattr(dataset("conll05"), "load_label_dict", str)
    common.fetch_all()
    assert set(asked) >= {"mnist", "cifar", "imdb", "wmt16", "conll05st", "corpora", "MQ2007", "flowers"}


def test_public_names():
    """Everything that Fluid 1.8's modules define, but for what looks for other packages."""
    from fluidlite.base.names import fluid_modules

    left = {"unittest", "movie_reviews", "_check_cv2", "err", "out", "retcode", "import_cv2_proc"}
    for name in NAMES:
        there = set(fluid_modules.listed()[f"paddle.dataset.{name}"]) - left
        own = {
            row
            for row, origin in fluid_modules.listed()[f"paddle.dataset.{name}"].items()
            if name in origin.module
        }
        assert all(hasattr(dataset(name), row) for row in there), name
        assert own - left <= set(vars(dataset(name))), name


def test_tar_links_are_not_followed_out_of_the_archive(fresh):
    path = fresh / "x.tar"
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo("wmt14/train/train")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(info)
    refuses(lambda: list(dataset("wmt14").reader_creator(str(path), "train/train", 5)()), FormatError)
