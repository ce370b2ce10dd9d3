"""HDFSClient over a stand-in for `hadoop`, which works on a local folder and logs its arguments."""

import pytest

from fluidlite.contrib.utils import HDFSClient, multi_download, multi_upload
from fluidlite.contrib.utils.hdfs_utils import getfilelist

HADOOP = """#!/bin/bash
cd {root}/hdfs
echo "$@" >> {root}/log
shift 2  # fs -Dname=value
case $1 in
-test) exec test $2 .$3;;
-ls) echo "Found 2 items"; ls -l --time-style=long-iso .$2 | sed -n 's/\\([^ ]*$\\)/\\/data\\/\\1/p';;
-lsr) find .$2 -mindepth 1 -printf '%M 1 u g %s %TY-%Tm-%Td %TH:%TM %p\\n' | sed 's/ \\.\\// \\//';;
-rm) rm .$2;;
-rmr) rm -r .$2;;
-mv) mv .$2 .$3;;
-mkdir) mkdir -p .$2;;
-put) cp $2 .$3;;
-get) cp -r .$2 $3;;
*) exit 2;;
esac
"""


@pytest.fixture
def client(tmp_path):
    command = tmp_path / "home" / "bin" / "hadoop"
    command.parent.mkdir(parents=True)
    command.write_text(HADOOP.format(root=tmp_path))
    command.chmod(0o755)
    (tmp_path / "hdfs" / "data" / "sub").mkdir(parents=True)
    for name in ("a", "b", "sub/c"):
        (tmp_path / "hdfs" / "data" / name).write_text(name)
    return HDFSClient(str(tmp_path / "home"), {"fs.default.name": "hdfs://x:1"})


def test_questions(client, tmp_path):
    assert client.pre_commands == [f"{tmp_path}/home/bin/hadoop", "fs", "-Dfs.default.name=hdfs://x:1"]
    assert client.is_exist("/data/a") and not client.is_exist("/none")
    assert client.is_dir("/data/sub") and not client.is_dir("/data/a") and not client.is_dir("/none")
    assert client.ls("/data") == ["/data/a", "/data/b", "/data/sub"] and client.ls("/none") == []
    assert sorted(client.lsr("/data")) == ["/data/a", "/data/b", "/data/sub/c"]
    assert "/data/sub" in client.lsr("/data", only_file=False) and client.lsr("/none") == []
    first = (tmp_path / "log").read_text().splitlines()[0]
    assert first == "fs -Dfs.default.name=hdfs://x:1 -test -e /data/a"


def test_changes(client, tmp_path):
    hdfs = tmp_path / "hdfs" / "data"
    assert client.rename("/data/a", "/data/z") and (hdfs / "z").exists()
    assert not client.rename("/none", "/data/y")
    assert client.delete("/data/z") and client.delete("/data/sub") and client.delete("/none")
    assert sorted(path.name for path in hdfs.iterdir()) == ["b"]
    assert client.makedirs("/data/new") and client.makedirs("/data/new") and (hdfs / "new").is_dir()


def test_files_go_both_ways(client, tmp_path):
    local = tmp_path / "local"
    local.write_text("one")
    assert client.upload("/data/up", str(local)) and (tmp_path / "hdfs/data/up/local").read_text() == "one"
    local.write_text("two")
    assert not client.upload("/data/up", str(local)) and not client.upload("/data/up", str(tmp_path))
    assert client.upload("/data/up", str(local), overwrite=True)
    assert (tmp_path / "hdfs/data/up/local").read_text() == "two"
    with pytest.raises(AssertionError, match="no file"):
        client.upload("/data/up", str(tmp_path / "none"))
    assert client.download("/data/b", str(local), overwrite=True) and local.read_text() == "b"
    assert not client.download("/none", str(local))


def test_many_files(client, tmp_path):
    target = tmp_path / "here"
    both = [multi_download(client, "/data", str(target), number, 2, multi_processes=2) for number in range(2)]
    assert sorted(both[0] + both[1]) == sorted(getfilelist(str(target)))
    assert abs(len(both[0]) - len(both[1])) == 1
    assert (target / "sub" / "c").read_text() == "sub/c"
    multi_upload(client, "/copy", str(target), multi_processes=2)
    assert sorted(client.lsr("/copy")) == ["/copy/a", "/copy/b", "/copy/sub/c"]
    with pytest.raises(OSError, match="could not be put into /copy"):
        multi_upload(client, "/copy", str(target))
