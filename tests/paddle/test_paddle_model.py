"""`paddle.Model`, its callbacks and its log; `paddle.summary`."""

import re
import sys

import numpy as np
import pytest

import fluidlite.paddle as paddle
from fluidlite.base.errors import FormatError
from fluidlite.paddle import callbacks, nn
from tests.refusals import refuses

InputSpec = paddle.static.InputSpec


class Halves(paddle.io.Dataset):
    """Points, and on which side of a plane they lie."""

    def __init__(self, count=60, seed=0):
        draw = np.random.RandomState(seed)
        self.points = draw.uniform(-1, 1, (count, 4)).astype("float32")
        self.sides = (self.points.sum(1) > 0).astype("int64")

    def __getitem__(self, index):
        return self.points[index], self.sides[index]

    def __len__(self):
        return len(self.sides)


def make(rate=0.05, metrics=None, **more):
    paddle.seed(7)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    model = paddle.Model(net, **more)
    metrics = paddle.metric.Accuracy() if metrics is None else metrics
    model.prepare(paddle.optimizer.Adam(rate, parameters=model.parameters()), nn.CrossEntropyLoss(), metrics)
    return model


def test_fit_evaluate_predict(capsys):
    model = make()
    model.fit(Halves(), Halves(20, 1), batch_size=10, epochs=15, verbose=2, log_freq=3)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Epoch 1/15"
    assert re.fullmatch(r"step 3/6 - loss: \d+\.\d{4} - acc: \d\.\d{4} - \d+[mu]s/step", lines[1])
    assert lines[3] == "Eval begin..." and lines[4].startswith("step 2/2 - loss: ")
    assert lines[5] == "Eval samples: 20" and len(lines) == 15 * 6
    result = model.evaluate(Halves(), batch_size=30, verbose=0)
    assert set(result) == {"loss", "acc"} and result["acc"] > 0.9
    stacked = model.predict(Halves(), batch_size=25, stack_outputs=True, verbose=0)
    assert [part.shape for part in stacked] == [(60, 2)]
    parts = model.predict(Halves(), batch_size=25, verbose=0)
    assert [part.shape for part in parts[0]] == [(25, 2), (25, 2), (10, 2)]
    right = (stacked[0].argmax(1) == Halves().sides).mean()
    assert right == pytest.approx(result["acc"], abs=1e-6)


def test_predict_takes_as_many_inputs_as_there_are_specs():
    model = make(inputs=InputSpec([None, 4], "float32", "x"), labels=InputSpec([None], "int64", "y"))
    assert model.predict(Halves(), batch_size=60, verbose=0)[0][0].shape == (60, 2)


def test_batches():
    model = make()
    points, sides = Halves().points[:8], Halves().sides[:8]
    before = model.parameters()[0].numpy()
    (loss,), (accuracy,) = model.eval_batch([points], [sides])
    assert loss.shape == (1,) and 0 <= accuracy <= 1
    np.testing.assert_array_equal(model.parameters()[0].numpy(), before)
    model.train_batch([points], [sides], update=False)
    np.testing.assert_array_equal(model.parameters()[0].numpy(), before)
    model.train_batch([points], [sides])
    assert (model.parameters()[0].numpy() != before).any()
    np.testing.assert_array_equal(
        model.predict_batch([points])[0], model.network(paddle.to_tensor(points)).numpy()
    )


def test_gradients_of_several_batches_add_up():
    whole, parts = make(), make()
    whole.prepare(
        paddle.optimizer.SGD(0.1, parameters=whole.parameters()), nn.CrossEntropyLoss(reduction="sum")
    )
    parts.prepare(
        paddle.optimizer.SGD(0.1, parameters=parts.parameters()), nn.CrossEntropyLoss(reduction="sum")
    )
    whole.fit(Halves(), batch_size=60, shuffle=False, verbose=0)
    parts.fit(Halves(), batch_size=16, shuffle=False, verbose=0, accumulate_grad_batches=9)
    for one, other in zip(whole.parameters(), parts.parameters(), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-5)


def test_save_and_load(tmp_path):
    model, other = make(), make()
    model.fit(Halves(), batch_size=20, verbose=0)
    model.save(str(tmp_path / "folder" / "m"))
    assert sorted(path.name for path in (tmp_path / "folder").iterdir()) == ["m.pdopt", "m.pdparams"]
    other.load(str(tmp_path / "folder" / "m"))
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_array_equal(one.numpy(), two.numpy())
    fewer = paddle.Model(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))
    refuses(lambda: fewer.load(str(tmp_path / "folder" / "m")), (AssertionError, RuntimeError))
    with pytest.warns(UserWarning):
        fewer.load(str(tmp_path / "folder" / "m"), skip_mismatch=True)
    np.testing.assert_array_equal(fewer.parameters()[0].numpy(), model.parameters()[0].numpy())


def test_save_for_inference(tmp_path):
    model = make(inputs=InputSpec([None, 4], "float32", "x"))
    model.save(str(tmp_path / "m"), training=False)
    loaded = paddle.jit.load(str(tmp_path / "m"))
    points = Halves().points[:5]
    got = loaded(paddle.to_tensor(points)).numpy()
    np.testing.assert_allclose(got, model.predict_batch([points])[0], rtol=1e-5, atol=1e-6)


def test_worker_processes():
    model = make()
    alone = model.predict(Halves(), batch_size=25, stack_outputs=True, verbose=0)[0]
    helped = model.predict(Halves(), batch_size=25, stack_outputs=True, verbose=0, num_workers=1)[0]
    np.testing.assert_array_equal(alone, helped)


def test_checkpoints(tmp_path):
    make().fit(Halves(), batch_size=30, epochs=3, save_dir=str(tmp_path), save_freq=2, verbose=0)
    assert sorted(path.name for path in tmp_path.glob("*.pdparams")) == [
        "0.pdparams",
        "2.pdparams",
        "final.pdparams",
    ]


def test_early_stopping(tmp_path, capsys):
    model = make(rate=0.0)
    stop = callbacks.EarlyStopping("loss", patience=1)
    model.fit(Halves(), Halves(), batch_size=60, epochs=50, verbose=0, callbacks=stop, save_dir=str(tmp_path))
    assert model.stop_training and stop.stopped_epoch == 1
    assert (tmp_path / "best_model.pdparams").exists()
    assert "Epoch 2: Early stopping, loss was best at" in capsys.readouterr().out
    callbacks.EarlyStopping("nothing").on_eval_end({"loss": 1})
    assert "watches 'nothing', but there are only ['loss']" in capsys.readouterr().out


def test_learning_rates():
    schedule = paddle.optimizer.lr.StepDecay(1.0, step_size=2, gamma=0.1)
    model = make()
    model.prepare(paddle.optimizer.SGD(schedule, parameters=model.parameters()), nn.CrossEntropyLoss())
    model.fit(Halves(), batch_size=15, verbose=0)
    assert schedule() == pytest.approx(0.01)
    model.fit(Halves(), batch_size=15, epochs=2, verbose=0, callbacks=callbacks.LRScheduler(False, True))
    assert schedule() == pytest.approx(0.001)
    refuses(lambda: callbacks.LRScheduler(True, True), ValueError, "not both")
    model = make(rate=0.5)
    lower = callbacks.ReduceLROnPlateau("acc", factor=0.1, patience=1, min_lr=0.01, verbose=0)
    model._optimizer.set_lr(0.5)
    lower.set_model(model)
    for value in (0.5, 0.6, 0.6, 0.6, 0.6):
        lower.on_eval_end({"acc": value})
    assert model._optimizer.get_lr() == pytest.approx(0.01)


class Notes(callbacks.Callback):
    """Records the names of the called methods."""

    def __init__(self):
        self.calls = []

    def __getattribute__(self, name):
        if name.startswith("on_") or name == "close":
            self.calls.append(name)
        return object.__getattribute__(self, name)


def test_order_of_calls():
    notes = Notes()
    make().fit(Halves(), Halves(), batch_size=60, callbacks=[notes], verbose=0)
    assert notes.calls == [
        "on_train_begin", "on_epoch_begin", "on_train_batch_begin", "on_train_batch_end", "on_epoch_end",
        "on_eval_begin", "on_eval_batch_begin", "on_eval_batch_end", "on_eval_end", "on_train_end", "close",
    ]  # fmt: skip


def test_iterations_are_limited():
    notes = Notes()
    make().fit(Halves(), batch_size=10, epochs=5, num_iters=8, callbacks=notes, verbose=0)
    assert notes.calls.count("on_train_batch_end") == 8 and notes.calls.count("on_epoch_end") == 2


def test_failures_close_the_log(capsys):
    class Failing(callbacks.Callback):
        def on_train_batch_end(self, step, logs=None):
            raise KeyError("mine")

    notes = Notes()
    with pytest.raises(KeyError, match="mine"):
        make().fit(Halves(), batch_size=10, callbacks=[notes, Failing()], verbose=1)
    assert notes.calls[-1] == "close"


def test_bar_and_lines(capsys, monkeypatch):
    make().fit(Halves(), batch_size=10, verbose=1)
    piped = capsys.readouterr().out
    assert "\r" not in piped and "step 6/6 - loss: " in piped
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    make().fit(Halves(), batch_size=10, verbose=1)
    assert "Epoch 1/1: 100%" in capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    make().fit(Halves(), batch_size=10, verbose=1, log_freq=6)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Epoch 1/1" and lines[1].startswith("step 6/6 - loss: ") and len(lines) == 2


def test_several_outputs_losses_and_metrics():
    class Two(nn.Layer):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 2), nn.Linear(4, 2)

        def forward(self, x):
            return self.one(x), self.two(x)

    class Both(paddle.metric.Metric):
        def __init__(self):
            self.reset()

        def reset(self):
            self.seen = 0

        def compute(self, one, two, label):
            return (one + two).sum(1)

        def update(self, total):
            self.seen += len(total)

        def accumulate(self):
            return self.seen, -self.seen

        def name(self):
            return ["plus", "minus"]

    model = paddle.Model(Two())

    def loss(one, two, label):
        return [nn.functional.cross_entropy(one, label), nn.functional.cross_entropy(two, label)]

    model.prepare(paddle.optimizer.SGD(0.1, parameters=model.parameters()), loss, [Both()])
    model.fit(Halves(), batch_size=20, verbose=0)
    result = model.evaluate(Halves(), batch_size=20, verbose=0)
    assert len(result["loss"]) == 2 and result["plus"] == 60 and result["minus"] == -60
    assert all(np.abs(parameter.numpy()).any() for parameter in model.parameters())


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: paddle.Model(lambda x: x), TypeError, "needs a Layer"),
        (lambda: make(metrics="acc"), TypeError, "not sub class of Metric"),
        (lambda: paddle.Model(nn.Linear(1, 1)).train_batch([0]), RuntimeError, "prepare"),
        (lambda: paddle.Model(nn.Linear(1, 1)).prepare(loss=3), TypeError, "function"),
        (lambda: paddle.Model(nn.Linear(1, 1)).summary(), ValueError, "input_size"),
        (lambda: make().fit(), ValueError, "train_data"),
        (lambda: make().load("nowhere"), FileNotFoundError, "nowhere.pdparams"),
        (lambda: callbacks.ProgBarLogger(0), ValueError, "log_freq"),
    ],
)
def test_errors(call, error, message):
    refuses(call, error, message)


def test_static_mode_is_refused():
    paddle.enable_static()
    try:
        refuses(lambda: paddle.Model(nn.ReLU()), RuntimeError, "disable_static")
    finally:
        paddle.disable_static()


def test_damaged_checkpoint(tmp_path):
    (tmp_path / "m.pdparams").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    refuses(lambda: make().load(str(tmp_path / "m")), FormatError, "os.system")


def test_summary(capsys):
    net = nn.Sequential(nn.Conv2D(1, 2, 3), nn.BatchNorm2D(2), nn.Flatten(), nn.Linear(8, 3))
    assert paddle.summary(net, (None, 1, 4, 4)) == {
        "total_params": 20 + 8 + 27,
        "trainable_params": 20 + 4 + 27,
    }
    lines = capsys.readouterr().out.splitlines()
    assert "Conv2D-1" in lines[3] and "[1, 1, 4, 4]" in lines[3] and "[1, 2, 2, 2]" in lines[3]
    assert lines[-4:-1] == ["Total params: 55", "Trainable params: 51", "Non-trainable params: 4"]
    assert net.training and net[1].training
    twice = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2), nn.ReLU())
    paddle.summary(twice, (1, 2))
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[3:7]]
    assert names == ["Linear-1", "ReLU-1", "Linear-2", "ReLU-2"]
    model = paddle.Model(net, InputSpec([None, 1, 4, 4]))
    assert model.summary() == paddle.summary(net, input=paddle.ones([2, 1, 4, 4]))


def test_early_stopping_bears_fewer_evaluations_than_patience():
    def stops_after(patience):
        stop = callbacks.EarlyStopping(patience=patience, verbose=0, save_best_model=False)
        model = make()
        stop.set_model(model)
        stop.set_params({})
        stop.on_train_begin()
        for count, loss in enumerate([0.5, 0.4, 0.4, 0.4, 0.4, 0.4], 1):
            stop.on_eval_end({"loss": [loss]})
            if model.stop_training:
                return count
        return None

    assert [stops_after(patience) for patience in (0, 1, 2, 3)] == [3, 3, 4, 5]
