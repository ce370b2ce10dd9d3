"""Files and models by URL: what is written there comes back, through every way to write and read."""

import uuid

import numpy as np
import pytest

pytest.importorskip("fsspec", reason="URLs need fsspec")

import fsspec

import fluidlite as fluid
from fluidlite.base.errors import NotSupportedError
from fluidlite.contrib.utils import HDFSClient, multi_download, multi_upload


@pytest.fixture
def place():
    """A folder of its own in memory."""
    root = f"memory://{uuid.uuid4().hex}"
    yield root
    fs, path = fsspec.core.url_to_fs(root)
    if fs.exists(path):
        fs.rm(path, recursive=True)


@pytest.fixture
def trained():
    """A program, its result, and an executor in a scope of its own."""
    main, startup = fluid.Program(), fluid.Program()
    scope = fluid.Scope()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(scope):
        out = fluid.layers.fc(fluid.data("x", [-1, 3]), 2, param_attr=fluid.ParamAttr("w"))
        fluid.optimizer.Adam(0.1).minimize(fluid.layers.mean(out))
        exe = fluid.Executor()
        exe.run(startup)
        yield main, out, exe


def weights():
    return np.array(fluid.global_scope().find_var("w").get_tensor())


def forget():
    fluid.global_scope().find_var("w").get_tensor().set(np.zeros((3, 2), "float32"), fluid.CPUPlace())


def named(place):
    fs, path = fsspec.core.url_to_fs(place)
    return sorted(name.rpartition("/")[2] for name in fs.find(path))


WAYS = {
    "persistables": (
        lambda at, main, out, exe: fluid.io.save_persistables(exe, at, main),
        lambda at, main, exe: fluid.io.load_persistables(exe, at, main),
    ),
    "one file": (
        lambda at, main, out, exe: fluid.io.save_params(exe, dirname=at, main_program=main, filename="all"),
        lambda at, main, exe: fluid.io.load_params(exe, dirname=at, main_program=main, filename="all"),
    ),
    "save": (
        lambda at, main, out, exe: fluid.save(main, f"{at}/model"),
        lambda at, main, exe: fluid.load(main, f"{at}/model", exe),
    ),
    "inference": (
        lambda at, main, out, exe: fluid.io.save_inference_model(at, ["x"], [out], exe, main),
        lambda at, main, exe: fluid.io.load_inference_model(at, exe),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_models(place, trained, way):
    main, out, exe = trained
    save, load = WAYS[way]
    expected = weights()
    save(f"{place}/deep/er", main, out, exe)
    assert named(place)
    forget()
    load(f"{place}/deep/er", main, exe)
    np.testing.assert_array_equal(weights(), expected)
    with pytest.raises((FileNotFoundError, ValueError)):
        load(f"{place}/other", main, exe)


def test_names_that_lead_out_of_a_folder(place, trained, monkeypatch):
    _, path = fsspec.core.url_to_fs(place)
    monkeypatch.setattr(fsspec.get_filesystem_class("memory"), "find", lambda fs, root: [f"{path}/../../w"])
    with pytest.raises(ValueError, match="leads out of the folder"):
        fluid.io.load_persistables(trained[2], place, trained[0])


def test_states_of_layers(place):
    with fluid.dygraph.guard():
        layer = fluid.dygraph.Linear(2, 2)
        fluid.save_dygraph(layer.state_dict(), f"{place}/layer")
        assert named(place) == ["layer.pdparams"]
        state, _ = fluid.load_dygraph(f"{place}/layer")
        np.testing.assert_array_equal(state["weight"], layer.weight.numpy())


@pytest.mark.parametrize("command", ["cat", "sed s/7/9/"])
def test_files_of_samples(place, command):
    for k in range(2):
        with fsspec.open(f"{place}/part-{k}", "w") as file:
            file.write(f"1 {k}7\n2 1 {k}\n")
    data = fluid.DatasetFactory().create_dataset("QueueDataset")
    with fluid.program_guard(fluid.Program()):
        data.set_use_var([fluid.data("ids", [-1, 1], "int64", lod_level=1)])
    data.set_batch_size(2)
    data.set_pipe_command(command)
    data.set_filelist([f"{place}/part-0", f"{place}/part-1"])
    last = 7 if command == "cat" else 9
    got = [np.array(feed["ids"]).ravel().tolist() for feed in data._feeds()]
    assert got == [[last, 1, 0], [10 + last, 1, 1]]


@pytest.mark.parametrize("by_config", [True, False])
def test_a_client_of_hdfs(place, tmp_path, by_config):
    client = HDFSClient(str(tmp_path / "nowhere"), {"fs.default.name": place} if by_config else {})
    at = "/user/data" if by_config else f"{place}/user/data"
    (tmp_path / "one").write_text("1")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "two").write_text("22")
    assert not client.is_exist(at) and client.ls(at) == []
    multi_upload(client, at, str(tmp_path))
    assert client.is_dir(at) and not client.is_dir(f"{at}/one")
    assert sorted(client.lsr(at)) == [f"{at}/one", f"{at}/sub/two"]
    assert client.ls(f"{at}/sub") == [f"{at}/sub/two"]
    assert not client.upload(at, str(tmp_path / "one")) and client.upload(
        at, str(tmp_path / "one"), overwrite=True
    )
    assert client.rename(f"{at}/one", f"{at}/three") and not client.is_exist(f"{at}/one")
    fetched = [multi_download(client, at, str(tmp_path / "got"), rank, 2) for rank in range(2)]
    assert sorted(map(len, fetched)) == [1, 1]
    assert (tmp_path / "got" / "three").read_text() == "1"
    assert (tmp_path / "got" / "sub" / "two").read_text() == "22"
    assert client.delete(at) and not client.is_exist(at)


def test_without_fsspec(monkeypatch, trained):
    monkeypatch.setitem(__import__("sys").modules, "fsspec.core", None)
    main, _, exe = trained
    with pytest.raises(NotSupportedError, match=r"pip install 'fluidlite\[urls\]'"):
        fluid.io.save_params(exe, "memory://x", main)
