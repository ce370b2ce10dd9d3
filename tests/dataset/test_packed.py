"""Packed data sets that are damaged, or hold more than any data set: an error that names the file, in little memory."""

import bz2
import gzip
import io
import lzma
import tarfile
import tracemalloc
import zipfile

import pytest

from fluidlite.base.errors import FormatError
from fluidlite.dataset import cifar, conll05, mnist, reading, uci_housing

HUGE = 16 << 20
"""Of zeros. More than `room` allows for the few bytes into which they pack, with `AT_LEAST` as here."""
ALLOWED = 8 << 20


@pytest.fixture(autouse=True)
def a_small_machine(monkeypatch):
    """1.5 GB of zeros, and the memory that may be taken for them, made smaller: tests are to be quick."""
    assert reading.room(1_500_000) < 100 << 20  # as many bytes as 1.5 GB of zeros pack into
    monkeypatch.setattr(reading, "AT_LEAST", 1 << 20)


def packed(pack):
    """HUGE zeros, packed piece by piece."""
    chunk = bytes(1 << 20)
    if pack == "gz":
        made = io.BytesIO()
        with gzip.GzipFile(fileobj=made, mode="wb", compresslevel=1) as file:
            for _ in range(HUGE >> 20):
                file.write(chunk)
        return made.getvalue()
    maker = lzma.LZMACompressor(preset=0) if pack == "xz" else bz2.BZ2Compressor(1)
    return b"".join([*(maker.compress(chunk) for _ in range(HUGE >> 20)), maker.flush()])


def header(name, size, kind=tarfile.REGTYPE):
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def tar_of_zeros(kind):
    """A compressed tar file with a member, or a member's name, of HUGE zeros."""
    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="wb", compresslevel=1) as file:
        file.write(header("data_batch_1", HUGE, kind))
        for _ in range(HUGE >> 20):
            file.write(bytes(1 << 20))
        file.write(bytes(1024))
    return made.getvalue()


def sparse_tar():
    """A tar file of 2 KB whose member has HUGE zeros, says a header of GNU tar."""
    data = bytearray(header("data_batch_1", 0, tarfile.GNUTYPE_SPARSE))
    data[386 : 386 + 24] = b"%011o\0%011o\0" % (0, 0)
    data[483 : 483 + 12] = b"%011o\0" % HUGE
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data) + bytes(1024)


def zip_of_zeros():
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("ml-1m/users.dat", bytes(HUGE))
    return made.getvalue()


def of_mnist(path):
    mnist.reader_creator(path, path)()
    next(mnist.reader_creator(path, path)())


CASES = {
    "mnist.gz": (lambda: packed("gz"), of_mnist),
    "mnist.xz": (lambda: packed("xz"), of_mnist),
    "mnist.bz2": (lambda: packed("bz2"), of_mnist),
    "housing.gz": (lambda: packed("gz"), uci_housing.load_data),
    "cifar.tar.gz": (lambda: tar_of_zeros(tarfile.REGTYPE),
        lambda path: cifar.reader_creator(path, "data_batch")),
    "a long name.tar.gz": (lambda: tar_of_zeros(tarfile.GNUTYPE_LONGNAME),
        lambda path: cifar.reader_creator(path, "data_batch")),
    "sparse.tar": (sparse_tar, lambda path: cifar.reader_creator(path, "data_batch")),
    "movies.zip": (zip_of_zeros, lambda path: reading.zip_members(path)),
    "one of the movies.zip": (zip_of_zeros, lambda path: reading.zip_member(path, "ml-1m/users.dat")),
    "model.tar.gz": (lambda: tar_of_zeros(tarfile.REGTYPE),
        lambda path: reading.unpack(path, str(path) + ".unpacked")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_holds_far_more_than_a_data_set_is_refused_in_little_memory(name, tmp_path):
    make, read = CASES[name]
    path = tmp_path / name
    path.write_bytes(make())
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=f"{path} is damaged .*packed"):
            read(str(path))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < ALLOWED


def test_a_packed_member_of_an_archive_is_limited_as_well(tmp_path):
    path, data = tmp_path / "conll.tar", packed("gz")
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo("words.gz")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    with pytest.raises(FormatError, match=f"words.gz in {path} is damaged .*packed"):
        list(conll05.corpus_reader(str(path), "words.gz", "words.gz")())
