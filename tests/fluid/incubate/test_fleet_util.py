"""`fluid.incubate.fleet.utils`: FleetUtil, HDFSClient and barriers by files; metrics are those of Paddle 1.8.5."""

import json
import logging
import os
import types

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.base.errors import NotSupportedError
from fluidlite.incubate.fleet.base import role_maker
from fluidlite.incubate.fleet.parameter_server.distribute_transpiler import fleet
from fluidlite.incubate.fleet.utils import fleet_barrier_util, fleet_util, hdfs
from fluidlite.incubate.fleet.utils.click_metrics import area_under_curve, bucket_error

pytest.importorskip("fsspec")
ROOT = "memory://fleet"
WHERE = (ROOT, "user,password", "/nowhere")


@pytest.fixture
def worker(monkeypatch):
    """The only worker."""
    roles = role_maker.UserDefinedRoleMaker(worker_num=1, server_endpoints=["127.0.0.1:1"])
    monkeypatch.setattr(fleet, "_role_maker", roles)
    return fleet_util.FleetUtil("transpiler")


@pytest.fixture
def client():
    made = hdfs.HDFSClient("/nowhere", {"fs.default.name": ROOT})
    yield made
    made.delete("/out")


@pytest.mark.parametrize(
    ("seed", "buckets", "most", "area", "error"),
    [
        (0, 1001, 3000, 0.8393851257151068, 0.08934999153035948),
        (1, 4096, 500, 0.8294591670250394, 0.06866747496924802),
        (2, 11, 100000, 0.8565457489027725, 0.06664557460372814),
        (3, 101, 20, 0.8338572569976554, 0.08054024507644364),
    ],
)
def test_metrics_of_counts(seed, buckets, most, area, error):
    draw = np.random.RandomState(seed)
    number = np.arange(buckets)
    total = draw.randint(0, most, buckets)
    rate = number / buckets * draw.uniform(0.8, 1.2, buckets)
    pos = (total * rate).astype("int64").clip(0, total)
    np.testing.assert_allclose(area_under_curve(pos, total - pos), area, rtol=1e-12)
    np.testing.assert_allclose(bucket_error(pos, total - pos), error, rtol=1e-9)


def test_metrics_of_workers(worker, capsys):
    scope = fluid.Scope()
    pos = np.array([[12, 1, 6, 7, 14, 17, 5, 13, 8, 9, 19]])
    neg = np.array([[16, 19, 5, 15, 15, 0, 18, 3, 17, 19, 19]])
    sums = {"sqrerr": 3.5, "abserr": 2.5, "prob": 20.25, "q": 7.5, "pos": 30.0, "total": 80.0}
    assert worker.get_global_auc(scope, "p", "n") is None
    assert worker.get_global_metrics(scope, "p", "n") == [None] * 9
    for name, value in {"p": pos, "n": neg, **{k: np.array([v], "float32") for k, v in sums.items()}}.items():
        scope.var(name).get_tensor().set(value, fluid.CPUPlace())
    found = worker.get_global_metrics(scope, "p", "n")
    recorded = [
        0.5398926323583858, 0.0, 0.03125, 0.20916500485248946, 0.375, 0.253125, 1.4814814, 0.09375, 80,
    ]  # fmt: skip
    np.testing.assert_allclose(found, recorded, rtol=1e-7)
    capsys.readouterr()
    worker.print_global_auc(scope, "p", "n", "pre")
    worker.print_global_metrics(scope, "p", "n", print_prefix="PRE")
    assert capsys.readouterr().out == (
        "pre global auc = 0.5398926323583858\n"
        "PRE global AUC=0.539893 BUCKET_ERROR=0.000000 MAE=0.031250 RMSE=0.209165 Actural_CTR=0.375000 "
        "Predicted_CTR=0.253125 COPC=1.481481 MEAN Q_VALUE=0.093750 Ins number=80\n"
    )
    worker.set_zero("p", scope, param_type="float32")
    held = np.array(scope.find_var("p").get_tensor())
    assert held.dtype == np.float32 and held.shape == (1, 11) and not held.any()


def test_lists_of_models(worker, client):
    for pass_id, key in ((3, 1563600000), (3, 1563600000), (4, 1563600001), (-1, 1563600002)):
        worker.write_model_donefile("/out", 20190720, pass_id, key, *WHERE)
    assert client.cat("/out/donefile.txt").split("\n") == [
        "20190720\t1563600000\t/out/20190720/3/\t3\t0",
        "20190720\t1563600001\t/out/20190720/4/\t4\t0",
        "20190720\t1563600002\t/out/20190720/0/\t-1\t0",
    ]
    assert worker.get_last_save_model("/out", *WHERE) == [20190720, -1, "/out/20190720/0/", 1563600002]
    for pass_id in (2, 3, 3, -1):
        worker.write_xbox_donefile(
            "/out", "20190720", pass_id, 1563600003, "/data", *WHERE[:2], {"auc": "0.5"}, WHERE[2]
        )
    entries = [json.loads(line) for line in client.cat("/out/xbox_patch_done.txt").split("\n")]
    assert [one["input"] for one in entries] == [f"{ROOT}/out/20190720/delta-{k}/000" for k in (2, 3)]
    assert (
        entries[0]["monitor_data"] == "auc:0.5"
        and entries[0]["mpi_size"] == "1"
        and entries[0]["key"] == "1563600003"
    )
    found = worker.get_last_save_xbox("/out", *WHERE)
    assert found == [20190720, 3, f"{ROOT}/out/20190720/delta-3", 1563600003]
    assert worker.get_last_save_xbox_base("/out", *WHERE) == [
        20190720,
        f"{ROOT}/out/20190720/base",
        1563600003,
    ]
    assert worker.get_last_save_model("/nothing", *WHERE)[:3] == [-1, -1, ""]
    assert worker.get_last_save_xbox("/nothing", *WHERE)[:3] == [-1, -1, ""]
    assert worker.get_last_save_xbox_base("/nothing", *WHERE)[:2] == [-1, -1]
    worker.write_cache_donefile("/out", "20190720", 3, 17, *WHERE)
    cache = client.cat("/out/20190720/delta-3/000_cache/sparse_cache.meta")
    assert cache == "file_prefix:part\npart_num:16\nkey_num:17"


def test_models_are_put_where_their_pass_is(worker, client, tmp_path):
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [-1, 2])
        y = layers.fc(x, 1, param_attr="w", bias_attr="b")
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup, scope=scope)
    worker.save_paddle_inference_model(exe, scope, main, [x], [y], "/out", 20190720, 3, *WHERE)
    worker.save_paddle_params(exe, scope, main, "part", "/out", 20190720, -1, *WHERE, var_names=["w"])
    worker.save_paddle_params(exe, scope, main, "all", "/out", 20190720, -1, *WHERE, save_combine=False)
    names = {path[len("/out/20190720/") :] for path in client.lsr("/out/20190720")}
    assert names == {
        "delta-3/dnn_plugin/inference_model/__model__", "delta-3/dnn_plugin/inference_model/params",
        "base/dnn_plugin/part/params", "base/dnn_plugin/all/w", "base/dnn_plugin/all/b",
    }  # fmt: skip
    client.download("/out/20190720/delta-3/dnn_plugin/inference_model", str(tmp_path))
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path), exe, params_filename="params")
        given = np.array([[1.0, 2.0]], "float32")
        (found,) = exe.run(program, feed={feeds[0]: given}, fetch_list=fetches)
    (expected,) = exe.run(main, feed={"x": given}, fetch_list=[y], scope=scope)
    np.testing.assert_array_equal(found, expected)


def test_files_and_folders(client, tmp_path):
    (tmp_path / "a").mkdir()
    for name in ("one", "two", "a/three"):
        (tmp_path / name).write_text(f"{name}\n")
    assert client.upload("/out/files", str(tmp_path)) and client.upload(
        "/out/files", str(tmp_path / "one"), overwrite=True
    )
    assert not client.upload("/out/files", str(tmp_path / "one"))
    assert (
        client.is_file("/out/files/one") and not client.is_file("/out/files") and not client.is_file("/out/x")
    )
    assert client.cat("/out/files/one") == "one" and client.cat("/out/files") == ""
    assert client.upload_dir("/out/all", str(tmp_path)) and not client.upload_dir("/out/all", str(tmp_path))
    top = f"/out/all/{tmp_path.name}"
    assert sorted(client.lsr("/out/all")) == [f"{top}/{name}" for name in ("a/three", "one", "two")]
    assert client.lsr("/out/all", ["/a/", "two"]) == [f"{top}/one"]
    assert (
        client.rename("/out/files/one", "/out/files/two", overwrite=True)
        and client.cat("/out/files/two") == "one"
    )
    here = tmp_path / "here"
    assert client.download(top, str(here)) and sorted(os.listdir(here)) == ["one", "two"]
    with pytest.raises(AssertionError, match="nothing"):
        client.upload("/out", str(tmp_path / "nothing"))
    parts = [hdfs.HDFSClient.split_files("abcdefg", k, 3) for k in range(3)]
    assert parts == [["a", "b", "c"], ["d", "e"], ["f", "g"]]


def test_workers_wait_for_each_other(worker, client, monkeypatch, capsys):
    with pytest.raises(NotSupportedError, match="needs FS_NAME"):
        fleet_barrier_util.check_all_trainers_ready("/out/ready", 1)
    for name, value in (("HADOOP_HOME", "/nowhere"), ("FS_NAME", ROOT), ("FS_UGI", "u,p")):
        monkeypatch.setenv(name, value)
    fleet_barrier_util.check_all_trainers_ready("/out/ready", 1)
    assert capsys.readouterr().out == "epoch 1: 1 of 1 trainers are ready\n"
    assert client.ls("/out/ready") == ["/out/ready/ready.1.0.done"]


def test_passes_over_a_day(worker):
    passes = worker.get_online_pass_interval("{20190720..20190729}", "{0..23}", 5, 2, False)
    assert (
        len(passes) == 144
        and passes[:2] == [["0000", "0005"], ["0010", "0015"]]
        and passes[-1] == ["2350", "2355"]
    )
    assert worker.get_online_pass_interval("20190720", "3 4 5", 30, 2, True) == [
        ["03", "03"],
        ["04", "04"],
        ["05", "05"],
    ]


def test_methods_for_pslib_are_refused(worker, capsys, caplog):
    with pytest.raises(NotSupportedError, match=r"FleetUtil\.save_model needs servers of PSLib"):
        worker.save_model("/out", 20190720, 3)
    with pytest.raises(ValueError, match="choose one mode"):
        fleet_util.FleetUtil("other")
    with caplog.at_level(logging.INFO):
        worker.rank0_print("printed")
        worker.rank0_info("told")
        worker.rank0_error("wrong")
    assert capsys.readouterr().out == "printed\n" and [one.message for one in caplog.records] == [
        "told",
        "wrong",
    ]


def test_programs_in_files(worker, tmp_path):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        layers.fc(fluid.data("x", [-1, 2]), 1)
    path = tmp_path / "__model__"
    path.write_bytes(main.desc.serialize_to_string())
    made = worker.program_type_trans(str(tmp_path), "__model__", False)
    config = types.SimpleNamespace(
        train_prog_path=str(path), is_text_train_program=False, pruned_prog_path=str(tmp_path / made),
        is_text_pruned_program=True, draw=True, draw_dir=str(tmp_path), draw_out_name="drawn",
    )  # fmt: skip
    assert worker.check_two_programs(config)
    worker.parse_program_proto(str(path), False, str(tmp_path))
    assert {"drawn_train.dot", "drawn_pruned.dot"} <= set(os.listdir(tmp_path))
