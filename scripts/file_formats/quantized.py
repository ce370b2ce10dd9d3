"""A network trained with rounded numbers and frozen, or kept as integers of 8 bits; for Fluid 1.8.5 and here."""

import numpy as np
import paddle.fluid as fluid
from nets import PLACE
from paddle.fluid.contrib.slim import quantization

layers = fluid.layers
FEED, KINDS = "image", ("abs_max", "range_abs_max", "moving_average_abs_max")


def _save(kind, channels, integers=False):
    def save(path):
        main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
        main.random_seed = startup.random_seed = 11
        exe = fluid.Executor(PLACE)
        with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
            image = fluid.data(FEED, [None, 1, 8, 8])
            x = layers.conv2d(layers.relu(layers.conv2d(image, 4, 3)), 4, 3, groups=4, use_cudnn=False)
            out = layers.fc(layers.pool2d(x, 2, "avg", 2), 3, act="softmax")
            test = main.clone(for_test=True)
            loss = layers.mean(layers.square(out - 0.2))
            fluid.optimizer.SGD(0.1).minimize(loss)
            exe.run(startup)
            graphs = []
            for program, for_test in ((main, False), (test, True)):
                graph = fluid.framework.IrGraph(fluid.core.Graph(program.desc), for_test=for_test)
                quantization.QuantizationTransformPass(
                    scope=scope,
                    place=PLACE,
                    activation_quantize_type=kind,
                    weight_quantize_type="channel_wise_abs_max" if channels else "abs_max",
                ).apply(graph)
                graphs.append(graph)
            training, random = graphs[0].to_program(), np.random.RandomState(2)
            for _ in range(3):
                exe.run(
                    training, feed={FEED: random.rand(4, 1, 8, 8).astype("float32")}, fetch_list=[loss.name]
                )
            quantization.QuantizationFreezePass(
                scope, PLACE, weight_quantize_type="channel_wise_abs_max" if channels else "abs_max"
            ).apply(graphs[1])
            if integers:
                quantization.ConvertToInt8Pass(scope, PLACE).apply(graphs[1])
            frozen = graphs[1].to_program()
            fluid.io.save_inference_model(path, [FEED], [frozen.global_block().var(out.name)], exe, frozen)
        return _weights(path) if integers else _load(path)

    return save


def _load(path):
    exe, random, found = fluid.Executor(PLACE), np.random.RandomState(3), {}
    with fluid.scope_guard(fluid.Scope()):
        program, _, targets = fluid.io.load_inference_model(path, exe)
        for count in (1, 4):
            images = random.rand(count, 1, 8, 8).astype("float32")
            found[str(count)] = exe.run(program, feed={FEED: images}, fetch_list=targets)[0]
    return found


def _weights(path):
    """What is in the files: Fluid has no kernels on the CPU that run such a model."""
    exe, scope = fluid.Executor(PLACE), fluid.Scope()
    with fluid.scope_guard(scope):
        program, _, _ = fluid.io.load_inference_model(path, exe)
        kept = [v.name for v in program.list_vars() if v.persistable and v.name not in ("feed", "fetch")]
        return {name.replace("/", "_"): np.array(scope.find_var(name).get_tensor()) for name in kept}


FORMS = [
    (
        "save_inference_model, quantised",
        kind + ("_channels" if channels else ""),
        _save(kind, channels),
        _load,
    )
    for kind in KINDS
    for channels in (False, True)
] + [("save_inference_model, int8", kind, _save(kind, False, True), _weights) for kind in KINDS]
