"""contrib.slim.quantization.QuantizationStrategy: operators are those recorded on Paddle 1.8.5."""

import numpy as np

import fluidlite as fluid
from fluidlite import layers
from fluidlite.base.dtypes import VarType
from fluidlite.contrib.slim import Compressor
from fluidlite.contrib.slim.quantization import QuantizationStrategy

PLACE = fluid.CPUPlace()
ROUND = "fake_quantize_moving_average_abs_max"


def test_a_model_is_trained_with_rounded_numbers_and_written(tmp_path):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 2, 4, 4]), fluid.data("y", [None, 1], "int64")
        out = layers.conv2d(x, 3, 3, bias_attr=False, act="relu")
        scores = layers.fc(out, 3, act="softmax")
        loss = layers.mean(layers.cross_entropy(scores, y))
        test = main.clone(for_test=True)
    scope, exe = fluid.Scope(), fluid.Executor(PLACE)
    with fluid.scope_guard(scope):
        exe.run(startup)
    samples = np.random.RandomState(0).randn(12, 2, 4, 4).astype("float32")
    batch = [(sample, [number % 3]) for number, sample in enumerate(samples)]
    feeds, fetches = [("x", "x"), ("y", "y")], [("loss", loss.name)]
    compressor = Compressor(
        PLACE,
        scope,
        main,
        lambda: iter([batch] * 20),
        feeds,
        fetches,
        test,
        lambda: iter([batch]),
        feeds,
        fetches,
        train_optimizer=fluid.optimizer.SGD(0.5),
    )
    paths = {kind: str(tmp_path / kind) for kind in ("float", "int8", "mobile")}
    strategy = QuantizationStrategy(
        1,
        2,
        *(paths[kind] for kind in ("float", "mobile", "int8")),
        activation_quantize_type="moving_average_abs_max",
        save_in_nodes=["x"],
        save_out_nodes=[scores.name],
    )
    seen = []
    strategy.on_batch_end = lambda context: seen.append(
        (context.epoch_id, ROUND in [op.type() for op in context.optimize_graph.ops()])
    )
    compressor.strategies, compressor.epoch = [strategy], 3
    graph = compressor.run()
    assert set(seen) == {(0, False), (1, True), (2, True)}
    body = [ROUND, "conv2d", "fake_dequantize_max_abs", "relu", ROUND, "mul", "fake_dequantize_max_abs"]
    assert [op.type() for op in graph.ops()][:7] == body
    for kind, whole in (("float", 0), ("int8", 2)):
        with fluid.scope_guard(fluid.Scope()):
            program, names, targets = fluid.io.load_inference_model(paths[kind], exe, "model", "weights")
            assert [op.type for op in program.global_block().ops][1:8] == body and names == ["x"]
            assert [var.dtype for var in program.list_vars()].count(VarType.INT8) == whole
            if kind == "float":
                (found,) = exe.run(program, {"x": samples}, targets)
                assert (found.argmax(axis=1) == np.arange(12) % 3).mean() > 0.6
    mobile = (tmp_path / "mobile" / "model").read_bytes()
    assert (
        b"fake_" not in mobile
        and b"dequantize" in mobile
        and (tmp_path / "mobile" / "weights").stat().st_size
    )
