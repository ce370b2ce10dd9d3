"""Predictors: both ways of running, configurations, what tensors hold, clones, and what goes wrong."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fluidlite import core, layers
from fluidlite.base.errors import EnforceNotMet, NotSupportedError
from fluidlite.base.place import CPUPlace
from fluidlite.core import (
    AnalysisConfig,
    NativeConfig,
    PaddleBuf,
    PaddleDType,
    PaddlePlace,
    PaddleTensor,
    create_paddle_predictor,
)
from fluidlite.data import data
from fluidlite.executor import Executor, Scope, global_scope, scope_guard
from fluidlite.io import save_inference_model

from ...refusals import refuses

IDS, LOD = np.array([[1], [4], [0], [4]], "int64"), [[0, 3, 4]]
DENSE = np.array([[0.5, -1, 2], [3, 0.25, 1]], "float32")


@pytest.fixture
def model(programs, tmp_path):
    """Two folders of a model, in separate files and in two files, and the outputs for IDS and DENSE."""
    ids, dense = data("ids", [None, 1], "int64", lod_level=1), data("dense", [None, 3], "float32")
    pooled = layers.sequence_pool(layers.embedding(ids, [5, 3]), "sum")
    out = [layers.fc([pooled, dense], 2), layers.embedding(ids, [5, 3])]
    with scope_guard(Scope()):
        executor = Executor(CPUPlace())
        executor.run(programs[1])
        weights = {
            p.name: np.array(global_scope().find_var(p.name).get_tensor())
            for p in programs[0].all_parameters()
        }
        for folder, files in (("separate", {}), ("two", {"model_filename": "m", "params_filename": "p"})):
            save_inference_model(
                str(tmp_path / folder), ["ids", "dense"], out, executor, programs[0], **files
            )
    first, w0, w1, bias, second = weights.values()
    assert [w.shape for w in (first, w0, w1, bias, second)] == [(5, 3), (3, 2), (3, 2), (2,), (5, 3)]
    looked = first[IDS.ravel()]
    sums = np.stack([looked[:3].sum(0), looked[3]])
    return tmp_path, (sums @ w0 + DENSE @ w1 + bias, second[IDS.ravel()])


def inputs(order=1):
    return [PaddleTensor(IDS, "ids", LOD), PaddleTensor(DENSE, "dense")][::order]


def check(found, expected):
    assert [tensor.lod for tensor in found] == [[], LOD]
    for tensor, want in zip(found, expected, strict=True):
        assert tensor.dtype == PaddleDType.FLOAT32 and tensor.shape == list(want.shape)
        np.testing.assert_allclose(tensor.as_ndarray(), want, rtol=1e-5, atol=1e-6)


def configured(folder, how):
    if how == "separate":
        return AnalysisConfig(str(folder / "separate"))
    if how == "two":
        return AnalysisConfig(str(folder / "two" / "m"), str(folder / "two" / "p"))
    program, params = (folder / "two" / "m").read_bytes(), (folder / "two" / "p").read_bytes()
    config = AnalysisConfig()
    config.set_model_buffer(program, len(program), params, len(params))
    assert config.model_from_memory()
    return config


@pytest.mark.parametrize("how", ["separate", "two", "memory"])
def test_outputs_of_tensors(model, how):
    predictor = create_paddle_predictor(configured(model[0], how))
    assert isinstance(predictor, core.PaddlePredictor) and type(predictor) is core.AnalysisPredictor
    assert predictor.get_input_names() == ["ids", "dense"]
    assert predictor.get_input_tensor_shape() == {"dense": [-1, 3], "ids": [-1, 1]}
    found = predictor.run(inputs())
    check(found, model[1])
    assert [tensor.name for tensor in found] == predictor.get_output_names()
    check(predictor.run([PaddleTensor(IDS, lod=LOD), PaddleTensor(DENSE)]), model[1])


def test_inputs_by_name(model):
    config = configured(model[0], "separate")
    config.switch_specify_input_names(True)
    predictor = create_paddle_predictor(config)
    check(predictor.run(inputs(-1)), model[1])
    assert predictor.run([PaddleTensor(IDS, "ids", LOD), PaddleTensor(DENSE, "other")]) == []
    assert predictor.run([PaddleTensor(IDS, "ids", LOD)] * 2) == []


def test_without_copies(model):
    config = configured(model[0], "two")
    config.switch_use_feed_fetch_ops(False)
    predictor = create_paddle_predictor(config)
    ids, dense = predictor.get_input_tensor("ids"), predictor.get_input_tensor("dense")
    assert ids.shape() == [0] and ids.lod() == []
    refuses(ids.type, EnforceNotMet, "'ids' not initialized")
    refuses(predictor.zero_copy_run, EnforceNotMet, "'ids' is not initialized")
    first, second = (predictor.get_output_tensor(name) for name in predictor.get_output_names())
    for rows in (2, 1):  # the same tensors serve every run
        ids.copy_from_cpu(IDS[: LOD[0][rows]])
        ids.set_lod([LOD[0][: rows + 1]])
        dense.reshape([rows, 3])
        dense.copy_from_cpu(DENSE[:rows])
        assert predictor.zero_copy_run() is True
        np.testing.assert_allclose(first.copy_to_cpu(), model[1][0][:rows], rtol=1e-5, atol=1e-6)
        assert second.lod() == [LOD[0][: rows + 1]] and second.type() == PaddleDType.FLOAT32
    ids.set_lod([[0, 9]])
    refuses(predictor.zero_copy_run, EnforceNotMet, "ends at 9 but the tensor has 3 rows")
    refuses(lambda: predictor.get_output_tensor("nothing"), EnforceNotMet, "no name called nothing")


def test_other_variables_can_be_looked_at(model):
    predictor = create_paddle_predictor(configured(model[0], "two"))
    pooled = next(
        op.output("Out")[0] for op in predictor._program.global_block().ops if op.type == "sequence_pool"
    )
    between = predictor.get_output_tensor(pooled)
    for tensor in inputs():
        held = predictor.get_input_tensor(tensor.name)
        held.copy_from_cpu(tensor.as_ndarray())
        held.set_lod(tensor.lod)
    predictor.zero_copy_run()
    assert between.shape() == [2, 3]
    names = [var.name for var in predictor._program.list_vars() if var.persistable and var.shape == (5, 3)]
    assert predictor.get_output_tensor(names[0]).shape() == [5, 3]


def test_clones_run_side_by_side(model):
    predictor = create_paddle_predictor(configured(model[0], "separate"))
    clones = [predictor.clone() for _ in range(3)]
    failed = []

    def use(clone):
        try:
            for _ in range(20):
                check(clone.run(inputs()), model[1])
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test is to show it
            failed.append(error)

    with ThreadPoolExecutor(len(clones)) as pool:
        list(pool.map(use, clones))
    assert not failed
    assert type(clones[0]) is core.AnalysisPredictor
    name = next(name for name in predictor.scope().local_var_names() if name.startswith("fc"))
    assert clones[0].scope().find_var(name) is predictor.scope().find_var(name)


def test_a_saved_predictor_is_a_model(model, tmp_path):
    create_paddle_predictor(configured(model[0], "separate")).SaveOptimModel(str(tmp_path / "saved"))
    config = AnalysisConfig(str(tmp_path / "saved" / "model"), str(tmp_path / "saved" / "params"))
    check(create_paddle_predictor(config).run(inputs()), model[1])


def test_native_predictor(model):
    config = NativeConfig()
    config.model_dir = str(model[0] / "separate")
    predictor = create_paddle_predictor(config)
    assert type(predictor) is core.NativePaddlePredictor
    check(predictor.run(inputs()), model[1])
    config = NativeConfig()
    config.prog_file, config.param_file = str(model[0] / "two" / "m"), str(model[0] / "two" / "p")
    config.specify_input_name = True
    check(create_paddle_predictor(config).run(inputs(-1)), model[1])


def test_wrong_inputs(model):
    predictor = create_paddle_predictor(configured(model[0], "separate"))
    assert predictor.run(inputs()[:1]) == []
    refuses(lambda: predictor.run([IDS, DENSE]), TypeError, "list of PaddleTensor")
    with pytest.raises(EnforceNotMet):
        predictor.run([PaddleTensor(IDS.astype("float32"), "ids", LOD), PaddleTensor(DENSE)])
    with pytest.raises(EnforceNotMet, match="ends at 7"):
        predictor.run([PaddleTensor(IDS, "ids", [[0, 7]]), PaddleTensor(DENSE)])
    refuses(lambda: predictor.run([PaddleTensor(IDS, "ids", LOD), PaddleTensor(DENSE[:, :2])]), EnforceNotMet)


def test_wrong_models(model, caplog):
    folder = model[0]
    assert create_paddle_predictor(AnalysisConfig()) is None
    assert "Either model_dir or" in caplog.text
    with pytest.raises(FileNotFoundError, match="Cannot open file .*nothing/__model__"):
        create_paddle_predictor(AnalysisConfig(str(folder / "nothing")))
    with pytest.raises(EnforceNotMet, match="nothing"):
        create_paddle_predictor(AnalysisConfig(str(folder / "two" / "m"), str(folder / "nothing")))
    (folder / "cut").write_bytes((folder / "two" / "p").read_bytes()[:-5])
    with pytest.raises(EnforceNotMet, match="cut"):
        create_paddle_predictor(AnalysisConfig(str(folder / "two" / "m"), str(folder / "cut")))
    config = configured(folder, "separate")
    create_paddle_predictor(config)
    refuses(lambda: create_paddle_predictor(config), EnforceNotMet, "only be used for one predictor")
    create_paddle_predictor(AnalysisConfig(config))
    refuses(lambda: create_paddle_predictor("model"), TypeError, "got str")


def test_switches_can_be_asked_for():
    config = AnalysisConfig("program", "parameters")
    assert (config.model_dir(), config.prog_file(), config.params_file()) == ("", "program", "parameters")
    asked = {
        "ir_optim": True, "use_feed_fetch_ops_enabled": True, "specify_input_name": False, "mkldnn_enabled": False,
        "use_gpu": False, "gpu_device_id": 0, "memory_pool_init_size_mb": 100, "cpu_math_library_num_threads": 1,
        "tensorrt_engine_enabled": False, "lite_engine_enabled": False, "glog_info_disabled": False,
        "model_from_memory": False,
    }  # fmt: skip
    assert {name: getattr(config, name)() for name in asked} == asked
    config.switch_ir_optim(False)
    config.enable_mkldnn()
    config.disable_glog_info()
    config.set_cpu_math_library_num_threads(4)
    config.enable_tensorrt_engine(precision_mode=AnalysisConfig.Precision.Int8)
    copied = AnalysisConfig(config)
    assert not copied.ir_optim() and copied.mkldnn_enabled() and copied.glog_info_disabled()
    assert copied.cpu_math_library_num_threads() == 4 and not copied.tensorrt_engine_enabled()
    assert copied.to_native_config().prog_file == "program"
    passes = copied.pass_builder()
    copied.delete_pass("fc_fuse_pass")
    assert "fc_fuse_pass" not in passes.all_passes() and "fc_fuse_pass" in config.pass_builder().all_passes()
    refuses(config.quantizer_config, EnforceNotMet, "call enable_quantizer first")
    refuses(config.enable_lite_engine, NotSupportedError, "Paddle Lite")
    builder = core.PaddlePassBuilder(["x", "y"])
    builder.turn_on_debug()
    assert builder.debug_string() == (
        "Passes to apply:\n  - x\n  - graph_viz_pass\n  - y\n  - graph_viz_pass\n"
    )


def test_tensors():
    tensor = PaddleTensor()
    assert (tensor.name, tensor.shape, tensor.dtype, tensor.lod) == ("", [], PaddleDType.FLOAT32, [])
    assert tensor.as_ndarray() == 0 and tensor.data.empty()
    tensor.shape, tensor.data = (2, 2), PaddleBuf([1.0, 2.0, 3.0, 4.0])
    assert tensor.as_ndarray().tolist() == [[1, 2], [3, 4]] and tensor.shape == [2, 2]
    tensor.dtype = PaddleDType.INT64
    refuses(tensor.as_ndarray, EnforceNotMet, "needs 4 elements, but its data have 2")
    shared, copied = np.ones((2, 2), "float32"), np.ones(3, "int64")
    views = PaddleTensor(shared, copy=False), PaddleTensor(copied)
    shared[0, 0] = copied[0] = 7
    assert views[0].as_ndarray()[0, 0] == 7 and views[1].as_ndarray()[0] == 1
    assert PaddleTensor(np.arange(6, dtype="float32").reshape(2, 3).T).as_ndarray()[0].tolist() == [0, 3]
    for whole in ([1, 2], np.ones(2), np.ones(2, "uint8"), np.ones(2, bool)):
        assert PaddleTensor(whole).dtype == PaddleDType.INT32
    for lost in ([0.5], np.array([2.0**40]), np.array([np.nan]), ["a"]):
        with pytest.raises(TypeError, match="a predictor takes float32, int64 and int32"):
            PaddleTensor(lost)


def test_buffers_and_types():
    buffer = PaddleBuf(16)
    assert buffer.length() == 16
    buffer.resize(32)
    buffer.reset(np.arange(3))
    assert buffer.length() == 24 and buffer.int64_data() == [0, 1, 2] and buffer.int32_data()[2] == 1
    assert buffer.tolist("int64") == [0, 1, 2]
    refuses(lambda: buffer.tolist("float"), ValueError, "unsupported dtype 'float'")
    assert [core.paddle_dtype_size(dtype) for dtype in PaddleDType] == [4, 8, 4]
    assert (str(PaddlePlace.CPU), repr(PaddleDType.INT64), PaddleDType(1)) == (
        "PaddlePlace.CPU",
        "PaddleDType.INT64",
        PaddleDType.INT64,
    )


def test_bytes_of_a_tensor_are_those_of_fluid():
    tensor = PaddleTensor(np.array([[1, 2], [3, 4]], "int64"), "ab", [[0, 1, 2], [0, 2]])
    words = [0, 2, b"ab", 2, 24, 0, 1, 2, 16, 0, 2, 2, (2, 2, 1), 32, 1, 2, 3, 4]  # recorded on Paddle 1.8.5
    expected = b"\0\0\0\0" + b"".join(
        word if isinstance(word, bytes)
        else np.array(word, "<i4").tobytes() if isinstance(word, tuple)
        else np.array(word, "<i8").tobytes()
        for word in words[1:]
    )  # fmt: skip
    assert core.paddle_tensor_to_bytes(tensor) == expected
