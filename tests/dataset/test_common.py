"""Downloads: checksum, cache, atomic files, quick failure; the small tools beside them, and names of other packages."""

import hashlib
import os
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fluidlite.base.errors import DownloadError, FormatError
from fluidlite.dataset import common, image, reading, sentiment

CONTENTS = bytes(range(256)) * 1000
MD5 = hashlib.md5(CONTENTS).hexdigest()


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FLUIDLITE_OFFLINE", "0")
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    return tmp_path / "cache"


@pytest.fixture
def serve():
    """A function that starts a server on the loopback interface and returns its address."""
    servers = []

    def start(handler):
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()


class Files(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


class Broken(BaseHTTPRequestHandler):
    """Promises more than it sends."""

    requests = 0

    def do_GET(self):
        type(self).requests += 1
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENTS)))
        self.end_headers()
        self.wfile.write(CONTENTS[:1000])

    def log_message(self, *args):
        pass


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "server" / "numbers.bin"
    path.parent.mkdir()
    path.write_bytes(CONTENTS)
    return path


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_download_once_then_from_the_cache(serve, source, cache, scheme):
    base = serve(partial(Files, directory=str(source.parent))) if scheme == "http" else source.parent.as_uri()
    path = common.download(f"{base}/numbers.bin", "numbers", MD5)
    assert path == str(cache / "numbers" / "numbers.bin")
    assert Path(path).read_bytes() == CONTENTS
    source.unlink()
    assert common.download(f"{base}/numbers.bin", "numbers", MD5) == path
    assert os.listdir(cache / "numbers") == ["numbers.bin"]


def test_save_name_and_no_checksum(source, cache):
    path = common.download(source.as_uri(), "numbers", None, "other.bin")
    assert path == str(cache / "numbers" / "other.bin")


def test_wrong_checksum_leaves_no_file(source, cache):
    with pytest.raises(
        DownloadError, match=rf"have the MD5 {MD5}, expected 0123 \(tried 3 times\)"
    ) as caught:
        common.download(source.as_uri(), "numbers", "0123")
    assert "$FLUIDLITE_DATA/numbers/numbers.bin" in str(caught.value)
    assert not list(cache.rglob("*"))


def test_damaged_file_in_the_cache_is_replaced(source, cache):
    (cache / "numbers").mkdir(parents=True)
    (cache / "numbers" / "numbers.bin").write_bytes(CONTENTS[:-1])
    assert Path(common.download(source.as_uri(), "numbers", MD5)).read_bytes() == CONTENTS


def test_broken_connection(serve, cache):
    with pytest.raises(DownloadError, match="the connection broke after 1000 of 256000 bytes"):
        common.download(serve(Broken) + "/numbers.bin", "numbers", MD5)
    assert Broken.requests == 1
    assert not list(cache.rglob("*"))


def test_missing_file_on_the_server(serve, source):
    with pytest.raises(DownloadError, match="404"):
        common.download(serve(partial(Files, directory=str(source.parent))) + "/nothing", "numbers", MD5)


def test_silent_server_is_given_up(monkeypatch):
    monkeypatch.setattr(reading, "CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        with pytest.raises(DownloadError, match="no answer within 0.2 seconds"):
            common.download(f"http://127.0.0.1:{silent.getsockname()[1]}/x", "numbers", MD5)
        assert time.monotonic() - start < 5


def test_refused_connection():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(DownloadError, match="could not be downloaded"):
        common.download(f"http://127.0.0.1:{port}/x", "numbers", MD5)


def test_cache_that_cannot_be_written(monkeypatch, source, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path / "file"))
    with pytest.raises(DownloadError, match="could not be downloaded"):
        common.download(source.as_uri(), "numbers", MD5)


def test_users_directory_comes_first(monkeypatch, tmp_path, source):
    folder = tmp_path / "data" / "numbers"
    folder.mkdir(parents=True)
    (folder / "numbers.bin").write_bytes(b"mine")
    monkeypatch.setenv("FLUIDLITE_DATA", str(tmp_path / "data"))
    assert common.download(source.as_uri(), "numbers", MD5) == str(folder / "numbers.bin")
    assert common.download(source.as_uri(), "others", MD5).startswith(common.DATA_HOME)


def test_offline(monkeypatch, source):
    monkeypatch.setenv("FLUIDLITE_OFFLINE", "1")
    with pytest.raises(DownloadError, match="FLUIDLITE_OFFLINE is set"):
        common.download(source.as_uri(), "numbers", MD5)


def test_md5file(source):
    assert common.md5file(str(source)) == MD5


def test_split_and_read_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    samples = [(np.full(3, i, "float32"), i) for i in range(7)]
    common.split(lambda: iter(samples), 3, suffix="part-%02d.pickle")
    assert sorted(path.name for path in tmp_path.glob("part*")) == [f"part-0{i}.pickle" for i in range(3)]
    found = [label for _, label in common.cluster_files_reader("part-*.pickle", 2, 0)()]
    assert found == [0, 1, 2, 6]
    ((image, label), *_) = common.cluster_files_reader("part-*.pickle", 2, 1)()
    assert (label, image.tolist()) == (3, [3.0, 3.0, 3.0])
    with pytest.raises(TypeError, match="loader must be callable"):
        common.cluster_files_reader("part-*.pickle", 2, 1, loader=3)
    with pytest.raises(TypeError, match="dumper must be callable"):
        common.split(lambda: iter(samples), 3, dumper=3)


class Evil:
    def __reduce__(self):
        return os.mkdir, ("made by a pickle",)


def test_files_of_samples_run_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    common.split(lambda: iter([Evil()]), 3, suffix="part-%d")
    with pytest.raises(FormatError, match=r"part-0 is refused: .*mkdir"):
        list(common.cluster_files_reader("part-*", 1, 0)())
    assert not os.path.exists("made by a pickle")


def test_how_importing_opencv_went():
    started = image.import_cv2_proc
    assert isinstance(started, subprocess.Popen) and started.args[1:] == ["-c", "import cv2"]
    assert image.retcode == started.returncode and isinstance(image.out, bytes)
    assert (image.retcode == 0) == (b"Error" not in image.err)
    assert image.import_cv2_proc is started


def test_the_corpus_is_that_of_nltk(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk.corpus", SimpleNamespace(movie_reviews=["words"]))
    assert sentiment.movie_reviews.index("words") == 0
    monkeypatch.setitem(sys.modules, "nltk.corpus", None)
    with pytest.raises(ImportError, match="pip install nltk"):
        sentiment.movie_reviews.words()
