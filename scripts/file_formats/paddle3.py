"""What Paddle 3, which has no `paddle.fluid`, makes of the models that `exchange.py write FOLDER` left.

    PYTHON paddle3.py FOLDER

Inference models of one file, by the reader that Paddle 3 keeps for them (FLAGS_enable_pir_api=0), and the files of
save_dygraph.
"""

import os
import sys

os.environ["FLAGS_enable_pir_api"] = "0"

import numpy as np
import paddle

MODELS = "save_inference_model_one_file"


def predicted(path):
    exe, scope = paddle.static.Executor(paddle.CPUPlace()), paddle.static.Scope()
    recorded = dict(np.load(path + ".npz"))
    with paddle.static.scope_guard(scope):
        program, feeds, targets = paddle.static.load_inference_model(
            path, exe, model_filename="model", params_filename="params"
        )
        for number in range(2):
            batch = {name: _tensor(recorded, "feed%d/%s" % (number, name)) for name in feeds}
            values = exe.run(program, feed=batch, fetch_list=targets, return_numpy=False)
            for place, value in enumerate(values):
                np.testing.assert_allclose(np.array(value), recorded["%d/%d" % (number, place)], 1e-4, 1e-5)


def _tensor(recorded, key):
    if key + "/lengths" not in recorded:
        return recorded[key]
    tensor = (
        paddle.base.core.LoDTensor()
        if hasattr(paddle.base.core, "LoDTensor")
        else paddle.base.core.DenseTensor()
    )
    tensor.set(recorded[key], paddle.CPUPlace())
    tensor.set_recursive_sequence_lengths([recorded[key + "/lengths"].tolist()])
    return tensor


def state(path):
    for kind in (".pdparams", ".pdopt"):
        found = paddle.load(os.path.join(path, "model" + kind), return_numpy=True)
        if not found or not all(np.asarray(value).size for value in found.values()):
            raise ValueError("%s: %s" % (kind, sorted(found)))


def main(folder):
    paddle.enable_static()
    for form, label, step in (
        (MODELS, "save_inference_model, one file", predicted),
        ("save_dygraph", "save_dygraph", state),
    ):
        for net in sorted(
            name[:-4] for name in os.listdir(os.path.join(folder, form)) if name.endswith(".npz")
        ):
            try:
                step(os.path.join(folder, form, net))
                print("%s | %s | ok" % (label, net))
            except Exception as error:
                told = [line for line in str(error).splitlines() if "Error" in line] or [str(error)]
                print("%s | %s | %s: %s" % (label, net, type(error).__name__, told[0].strip()[:200]))
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
