"""Writes models in every form, or reads what another program wrote, and compares predictions and training.

    PYTHON exchange.py write FOLDER [NETWORK ...]
    PYTHON exchange.py read FOLDER [NETWORK ...]

PYTHON has `paddle.fluid`: Paddle 1.8.5, or fluidlite (`python -m fluidlite exchange.py ...`). Prints one line for
each form and network: `form | network | ok`, or what is wrong.
"""

import os
import shutil
import sys
import traceback

import numpy as np
import paddle.fluid as fluid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import dygraph_nets
import quantized
from nets import NETS, PLACE

STEPS = 2


class Built:
    """A network with a scope and an executor of its own."""

    def __init__(self, build):
        self.main, self.startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = self.startup.random_seed = 17
        self.exe = fluid.Executor(PLACE)
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard():
            self.net = build()
            self.test = self.main.clone(for_test=True)
            self.net.optimizer.minimize(self.net.loss)
        with fluid.scope_guard(self.scope):
            self.exe.run(self.startup)

    def train(self, random):
        losses = []
        for number in range(STEPS):
            (loss,) = self.exe.run(
                self.main, feed=self.net.batch(random, 3 + number), fetch_list=[self.net.loss]
            )
            losses.append(np.asarray(loss).ravel())
        return np.concatenate(losses)

    def batches(self, random):
        return [
            {name: full[name] for name in self.net.feeds}
            for full in (self.net.batch(random, n) for n in (2, 5))
        ]


def predictions(exe, program, batches, targets):
    """All elements of all targets for all batches, with the lengths of sequences."""
    found = {}
    for number, batch in enumerate(batches):
        for place, value in enumerate(exe.run(program, feed=batch, fetch_list=targets, return_numpy=False)):
            found["%d/%d" % (number, place)] = np.array(value)
            lengths = value.recursive_sequence_lengths()
            found["%d/%d/lengths" % (number, place)] = np.array(lengths[-1] if lengths else [], "int64")
    return found


INFERENCE = {
    "save_inference_model, a file each": {},
    "save_inference_model, one file": dict(model_filename="model", params_filename="params"),
}


def in_scope(step):
    def run(built, path):
        with fluid.scope_guard(built.scope):
            return step(built, path)

    return run


def _load_state(built, path):
    fluid.set_program_state(built.main, fluid.load_program_state(os.path.join(path, "state")))


TRAINING = {
    "save_persistables, a file each": (
        in_scope(lambda b, path: fluid.io.save_persistables(b.exe, path, b.main)),
        in_scope(lambda b, path: fluid.io.load_persistables(b.exe, path, b.main)),
    ),
    "save_persistables, one file": (
        in_scope(lambda b, path: fluid.io.save_persistables(b.exe, path, b.main, "all")),
        in_scope(lambda b, path: fluid.io.load_persistables(b.exe, path, b.main, "all")),
    ),
    "save_vars of all that persists": (
        in_scope(lambda b, path: fluid.io.save_vars(b.exe, path, b.main, predicate=fluid.io.is_persistable)),
        in_scope(lambda b, path: fluid.io.load_vars(b.exe, path, b.main, predicate=fluid.io.is_persistable)),
    ),
    "fluid.save, fluid.load": (
        in_scope(lambda b, path: fluid.save(b.main, os.path.join(path, "state"))),
        in_scope(lambda b, path: fluid.load(b.main, os.path.join(path, "state"), b.exe)),
    ),
    "fluid.save, load_program_state": (
        in_scope(lambda b, path: fluid.save(b.main, os.path.join(path, "state"))),
        in_scope(_load_state),
    ),
}


def form_folder(folder, form, net):
    return os.path.join(folder, form.replace(" ", "_").replace(",", "").replace(".", "_"), net)


def same(got, wanted):
    for key in (key for key in wanted if not key.startswith("feed")):
        if got[key].shape != wanted[key].shape or got[key].dtype != wanted[key].dtype:
            raise ValueError("%s: %s %s instead of %s %s" % (
                key, got[key].dtype, got[key].shape, wanted[key].dtype, wanted[key].shape))  # fmt: skip
        np.testing.assert_allclose(got[key], wanted[key], 1e-4, 1e-5, err_msg=key)


def report(form, net, step):
    try:
        step()
        print("%s | %s | ok" % (form, net))
    except Exception as error:
        if os.environ.get("TRACE"):
            traceback.print_exc()
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        telling = [line for line in lines if "Error:" in line] or lines or [""]
        print("%s | %s | %s: %s" % (form, net, type(error).__name__, telling[0][:200]))
    sys.stdout.flush()


def write_inference(built, path, form):
    with fluid.scope_guard(built.scope), fluid.unique_name.guard():
        targets = [built.test.global_block().var(v.name) for v in built.net.targets]
        fluid.io.save_inference_model(
            path, built.net.feeds, targets, built.exe, built.test, **INFERENCE[form]
        )
    found = predictions_of_file(path, INFERENCE[form], built)
    for number, batch in enumerate(
        built.batches(np.random.RandomState(5))
    ):  # for readers without paddle.fluid
        for name, value in batch.items():
            found["feed%d/%s" % (number, name)] = np.array(value)
            if hasattr(value, "recursive_sequence_lengths"):
                found["feed%d/%s/lengths" % (number, name)] = np.array(value.recursive_sequence_lengths()[-1])
    np.savez(path + ".npz", **found)


def predictions_of_file(path, names, built):
    exe = fluid.Executor(PLACE)
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, targets = fluid.io.load_inference_model(path, exe, **names)
        if list(feeds) != built.net.feeds:
            raise ValueError("feeds %s" % feeds)
        return predictions(exe, program, built.batches(np.random.RandomState(5)), targets)


def read_training(path, form, build):
    built = Built(build)
    TRAINING[form][1](built, path)
    with fluid.scope_guard(built.scope):
        same({"losses": built.train(np.random.RandomState(4))}, dict(np.load(path + ".npz")))


def trained(build):
    built = Built(build)
    with fluid.scope_guard(built.scope):
        built.train(np.random.RandomState(3))
    return built


def wanted(net, chosen):
    return not chosen or net in chosen


def others(chosen):
    return [form for form in dygraph_nets.FORMS + quantized.FORMS if wanted(form[1], chosen)]


def write(folder, chosen):
    shutil.rmtree(folder, ignore_errors=True)
    for build in (build for build in NETS if wanted(build.__name__, chosen)):
        for form in INFERENCE:
            path = form_folder(folder, form, build.__name__)
            report(form, build.__name__, lambda: write_inference(trained(build), path, form))
        for form in TRAINING:
            path = form_folder(folder, form, build.__name__)

            def step(path=path, form=form, build=build):
                built = trained(build)
                os.makedirs(path)
                TRAINING[form][0](built, path)
                with fluid.scope_guard(built.scope):
                    np.savez(path + ".npz", losses=built.train(np.random.RandomState(4)))

            report(form, build.__name__, step)
    for form, net, save, _ in others(chosen):
        path = form_folder(folder, form, net)
        os.makedirs(path)
        report(form, net, lambda: np.savez(path + ".npz", **save(path)))


def read(folder, chosen):
    for build in (build for build in NETS if wanted(build.__name__, chosen)):
        for form in INFERENCE:
            path = form_folder(folder, form, build.__name__)
            report(form, build.__name__, lambda: same(
                predictions_of_file(path, INFERENCE[form], Built(build)), dict(np.load(path + ".npz"))))  # fmt: skip
        for form in TRAINING:
            path = form_folder(folder, form, build.__name__)
            report(form, build.__name__, lambda: read_training(path, form, build))
    for form, net, _, load in others(chosen):
        path = form_folder(folder, form, net)
        report(form, net, lambda: same(load(path), dict(np.load(path + ".npz"))))


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2], sys.argv[3:])
    sys.stdout.flush()
    os._exit(0)
