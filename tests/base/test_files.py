"""Files that are whole or not there (`base/storage/files.py`)."""

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fluidlite.base.storage import files
from fluidlite.base.storage.files import atomic_files, atomic_writer
from tests.refusals import refuses


@pytest.fixture(autouse=True)
def unswept(monkeypatch):
    """Folders are swept at the first write of each test."""
    monkeypatch.setattr(files, "_swept", {})


def write(path, data=b"new"):
    with atomic_writer(path) as file:
        file.write(data)


def names(folder):
    return sorted(os.listdir(folder))


KILLED = """
import os, sys
from fluidlite.base.storage import files
with files.atomic_files():
    for name in ("first", "second"):
        with files.atomic_writer(os.path.join(sys.argv[1], name)) as file:
            file.write(b"half")
    print("written", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writing(tmp_path):
    """A process that has written drafts of `first` and `second` to tmp_path, and waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"written\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_drafts_are_swept_only_after_their_process_has_ended(tmp_path, writing, monkeypatch, number):
    (tmp_path / "first").write_bytes(b"old")
    assert len(names(tmp_path)) == 3
    write(tmp_path / "other")
    assert len([name for name in names(tmp_path) if files.is_draft(name)]) == 2
    writing.send_signal(number)
    writing.wait()
    monkeypatch.setattr(files, "_swept", {})
    write(tmp_path / "first")
    assert names(tmp_path) == ["first", "other"]
    assert (tmp_path / "first").read_bytes() == b"new"


def test_a_process_that_goes_on_is_not_disturbed_by_one_that_sweeps(tmp_path, writing):
    write(tmp_path / "other")
    writing.communicate(b"")
    assert writing.returncode == 0
    assert names(tmp_path) == ["first", "other", "second"]
    assert (tmp_path / "first").read_bytes() == b"half"


def test_drafts_of_a_process_of_the_same_number_are_in_nobodys_way(tmp_path):
    for number in range(3):  # as earlier versions called them
        (tmp_path / f".fluidlite-{os.getpid()}-{number}.tmp").write_bytes(b"half")
    (tmp_path / ".fluidlite.tmp").write_bytes(b"the user's")
    for _ in range(3):
        write(tmp_path / "model")
    assert names(tmp_path) == [".fluidlite.tmp", "model"]


def test_several_files_take_their_places_together_and_the_first_last(tmp_path, monkeypatch):
    order = []
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda self, to: (order.append(to.name), replace(self, to))[1])
    with atomic_files():
        for name in ("__model__", "a", "sub/b", "sub/c"):
            with atomic_writer(tmp_path / name) as file:
                file.write(name.encode())
        assert names(tmp_path / "sub") and not (tmp_path / "a").exists()
    assert order == ["a", "__model__", "c", "b"]
    assert (tmp_path / "sub/c").read_bytes() == b"sub/c"


def test_if_one_of_several_files_fails_none_is_changed(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), atomic_files():
        with atomic_writer(tmp_path / "a") as file:
            file.write(b"new")
        with atomic_writer(tmp_path / "b") as file:
            file.write(b"new")
            raise ZeroDivisionError
    assert names(tmp_path) == ["a", "b"]
    assert {(tmp_path / name).read_bytes() for name in ("a", "b")} == {b"old"}


def test_what_fails_and_is_caught_is_no_part_of_several_files(tmp_path):
    with atomic_files():
        with pytest.raises(ZeroDivisionError), atomic_writer(tmp_path / "a") as file:
            file.write(b"half")
            raise ZeroDivisionError
        write(tmp_path / "b")
    assert names(tmp_path) == ["b"]


def test_of_several_files_of_one_name_the_last_counts(tmp_path):
    with atomic_files():
        for data in (b"1", b"2", b"3"):
            write(tmp_path / "a", data)
        with pytest.raises(ZeroDivisionError), atomic_writer(tmp_path / "a") as file:
            file.write(b"half")
            raise ZeroDivisionError
    assert names(tmp_path) == ["a"] and (tmp_path / "a").read_bytes() == b"3"


def test_folders_that_were_made_for_nothing_are_removed(tmp_path):
    with pytest.raises(ZeroDivisionError), atomic_files():
        for name in ("a/b/c", "a/d"):
            write(tmp_path / name)
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_bytes_are_on_the_disk_before_the_name_and_the_name_before_the_end(tmp_path, monkeypatch):
    events = []
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(
        os,
        "fsync",
        lambda fd: (events.append(stat.S_ISDIR(os.fstat(fd).st_mode) and "folder" or "file"), sync(fd)),
    )
    monkeypatch.setattr(Path, "replace", lambda self, to: (events.append("replace"), replace(self, to))[1])
    write(tmp_path / "a")
    assert events == ["file", "replace", "folder"]


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_what_is_replaced_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(mode)
    write(path)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)


def test_a_new_file_has_the_mode_that_open_gives(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "a")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_is_replaced_keeps_its_owner(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    os.chown(path, 1234, 2345)
    path.chmod(0o4750)
    write(path)
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 2345, 0o4750)


def test_what_is_replaced_keeps_its_attributes(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, "user.note", b"best so far")
    except OSError:
        pytest.skip("a file system without attributes")
    write(path)
    assert os.getxattr(path, "user.note") == b"best so far"


def test_links_are_followed(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/7").write_bytes(b"old")
    (tmp_path / "latest").symlink_to("runs/7")
    (tmp_path / "next").symlink_to("runs/8")  # is not there yet
    write(tmp_path / "latest")
    write(tmp_path / "next")
    assert (tmp_path / "latest").is_symlink() and (tmp_path / "next").is_symlink()
    assert names(tmp_path / "runs") == ["7", "8"]
    assert {(tmp_path / "runs" / name).read_bytes() for name in "78"} == {b"new"}


def test_a_device_stays_one(tmp_path):
    write("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(OSError, match="cannot write the file /dev/full: No space left") as caught:
        write("/dev/full")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/dev/full")


def test_a_pipe_gets_the_bytes(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    found = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    write(path, b"x" * 100_000)
    reader.join()
    assert found == [b"x" * 100_000] and stat.S_ISFIFO(path.stat().st_mode)
    read, written = os.pipe()
    write(f"/dev/fd/{written}")
    os.close(written)
    with open(read, "rb") as end:
        assert end.read() == b"new"


def test_a_full_disk_leaves_the_old_file_and_is_named(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        refuses(lambda: write(path, b"x" * 200_000), OSError, f"cannot write the file {path}: File too large")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(tmp_path) == ["a"] and path.read_bytes() == b"old"


REFUSED = {
    "a folder that takes no files": ("__init__", errno.EACCES, "xb"),
    "a folder of a disk that is read only": ("__init__", errno.EROFS, "xb"),
    "a mount point, as containers have files of the host": ("replace", errno.EBUSY, None),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_in_a_folder_that_takes_no_draft_is_written_in_place(tmp_path, monkeypatch, case):
    """Root may write everywhere: the system's refusals are made up."""
    function, number, refused = REFUSED[case]
    owner = files._Raw if function == "__init__" else Path
    usual = getattr(owner, function)

    def refuse(self, *args):
        if refused in (None, *args):
            raise OSError(number, os.strerror(number), "?")
        return usual(self, *args)

    monkeypatch.setattr(owner, function, refuse)
    path = tmp_path / "a"
    path.write_bytes(b"an old and longer one")
    number_of_file = path.stat().st_ino
    write(path)
    assert (path.read_bytes(), path.stat().st_ino, names(tmp_path)) == (b"new", number_of_file, ["a"])
    with pytest.raises(ZeroDivisionError), atomic_writer(path) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert (path.read_bytes(), names(tmp_path)) == (b"new", ["a"])
    with pytest.raises(OSError, match=f"cannot write the file {tmp_path}/b: ") as caught:
        write(tmp_path / "b")
    assert caught.value.errno == number and names(tmp_path) == ["a"]


def test_a_file_that_may_not_be_written_is_left_alone(tmp_path, monkeypatch):
    path = tmp_path / "best"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as for anybody but root
    refuses(lambda: write(path), PermissionError, f"cannot write the file {path}: Permission denied")
    assert path.read_bytes() == b"old" and names(tmp_path) == ["best"]


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path):
    (tmp_path / "a").mkdir()
    refuses(lambda: write(tmp_path / "a"), IsADirectoryError, f"cannot write the file {tmp_path}/a: ")
    (tmp_path / "b").write_bytes(b"")
    refuses(lambda: write(tmp_path / "b/c"), OSError, f"cannot make the folder {tmp_path}/b to write in")


def test_a_draft_that_was_swept_before_it_was_locked_is_recreated(tmp_path, monkeypatch):
    lock = files._Files._lock
    taken = []

    def swept(self, path, descriptor):
        if not taken:
            taken.append(path)
            path.unlink()
        return lock(self, path, descriptor)

    monkeypatch.setattr(files._Files, "_lock", swept)
    write(tmp_path / "a")
    assert taken and names(tmp_path) == ["a"]


def test_no_descriptors_stay_open(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        write(tmp_path / "a")
        refuses(lambda: write(tmp_path), IsADirectoryError)
    assert len(os.listdir("/proc/self/fd")) == before


def test_folders_are_made_where_that_is_wanted(tmp_path):
    write(tmp_path / "a/b")
    with pytest.raises(FileNotFoundError, match=f"cannot write the file {tmp_path}/c/d: No such file"):
        files.write_file(tmp_path / "c/d", "text", folders=False)
    files.write_file(tmp_path / "a/b", "täxt", folders=False)
    assert names(tmp_path) == ["a"] and (tmp_path / "a/b").read_text("utf8") == "täxt"
