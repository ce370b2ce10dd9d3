"""Two trainers with two parameter servers: with barriers they train like one process on the whole batch."""

import threading

import numpy as np
import pytest

pytest.importorskip("grpc", reason="parameter servers need grpcio")

import fluidlite as fluid
from fluidlite import layers
from fluidlite.distributed.rpc.client import client
from fluidlite.executor.tensor_files import read_tensors

from ...rpc.ports import free_port

Constant = fluid.initializer.Constant


def images():
    x = fluid.data("x", [None, 1, 12, 12], "float32")
    h = layers.conv2d(x, 20, 5, act="relu", param_attr=fluid.ParamAttr(initializer=Constant(0.02)))
    h = layers.pool2d(h, 2, pool_stride=2)
    return layers.fc(h, 30, act="tanh", param_attr=fluid.ParamAttr(initializer=Constant(0.01)))


def clicks():
    ids = fluid.data("ids", [None, 1], "int64")
    rows = layers.embedding(
        ids, [3000, 8], is_sparse=True, param_attr=fluid.ParamAttr("emb", initializer=Constant(0.1))
    )
    return layers.fc(rows, 16, act="tanh", param_attr=fluid.ParamAttr(initializer=Constant(0.05)))


def repeated():
    """Clicks with repeated ids in a batch."""
    return clicks()


def tied():
    """A table that is used by lookups and as a weight matrix."""
    ids = fluid.data("ids", [None, 1], "int64")
    initial = fluid.ParamAttr("emb", initializer=Constant(0.01))
    rows = layers.embedding(ids, [3000, 8], is_sparse=True, param_attr=initial)
    scores = layers.matmul(rows, fluid.default_main_program().global_block().var("emb"), transpose_y=True)
    return layers.fc(scores, 4, param_attr=fluid.ParamAttr(initializer=Constant(0.02)))


def marked_as_distributed():
    """A table with dense gradients."""
    ids = fluid.data("ids", [None, 1], "int64")
    initial = fluid.ParamAttr("emb", initializer=Constant(0.1))
    rows = layers.embedding(ids, [3000, 8], is_distributed=True, param_attr=initial)
    return layers.fc(rows, 4, param_attr=fluid.ParamAttr(initializer=Constant(0.02)))


def words():
    ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
    rows = layers.embedding(
        ids, [3000, 8], is_sparse=True, param_attr=fluid.ParamAttr("emb", initializer=Constant(0.1))
    )
    gates = layers.fc(rows, 32, param_attr=fluid.ParamAttr(initializer=Constant(0.03)))
    hidden, _ = layers.dynamic_lstm(gates, 32, param_attr=fluid.ParamAttr(initializer=Constant(0.02)))
    return layers.sequence_pool(hidden, "last")


def build(net, optimizer):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        out = layers.fc(net(), 1, param_attr=fluid.ParamAttr(initializer=Constant(0.1)))
        loss = layers.mean(layers.square_error_cost(out, fluid.data("y", [None, 1], "float32")))
        optimizer().minimize(loss)
    return main, startup, loss.name


def feeds(net, steps=4):
    rng = np.random.RandomState(0)
    for _ in range(steps):
        feed = {"y": rng.rand(8, 1).astype("float32")}
        if net is images:
            feed["x"] = rng.rand(8, 1, 12, 12).astype("float32")
        elif net is repeated:
            feed["ids"] = np.arange(8).reshape(8, 1) // 3 + 1490
        elif net is not words:
            feed["ids"] = rng.randint(0, 3000, (8, 1))
        else:
            feed["ids"] = [rng.randint(0, 3000, 1 + k % 3) for k in range(8)]
        yield feed


def part(feed, begin, end):
    """Some samples of a batch."""
    out = {}
    for name, value in feed.items():
        value = value[begin:end]
        if isinstance(value, list):
            lengths = [[len(one) for one in value]]
            value = fluid.create_lod_tensor(np.concatenate(value).reshape(-1, 1), lengths, fluid.CPUPlace())
        out[name] = value
    return out


class Cluster:
    """Servers and trainers, each in a thread with a scope of its own."""

    def __init__(self, net, optimizer, sync=True, trainers=2, servers=2, **config):
        self.net, self.sync, self.trainers = net, sync, trainers
        self.endpoints = [f"127.0.0.1:{free_port()}" for _ in range(servers)]
        self.config = config
        self.made = [self.transpiled(k, optimizer) for k in range(trainers)]
        self.programs = [self.transpiled(0, optimizer)[0].get_pserver_programs(one) for one in self.endpoints]
        self.server_scopes = [fluid.Scope() for _ in self.endpoints]
        self.scopes = [fluid.Scope() for _ in range(trainers)]
        self.losses = [[] for _ in range(trainers)]
        self.errors = []

    def transpiled(self, number, optimizer):
        main, startup, loss = build(self.net, optimizer)
        settings = fluid.DistributeTranspilerConfig()
        for name, value in self.config.items():
            setattr(settings, name, value)
        t = fluid.DistributeTranspiler(settings)
        t.transpile(
            number,
            main,
            ",".join(self.endpoints),
            self.trainers,
            sync_mode=self.sync,
            startup_program=startup,
        )
        return t, startup, loss

    def run(self, then=lambda number, scope: None):
        def serve(number):
            exe, scope = fluid.Executor(), self.server_scopes[number]
            program, startup = self.programs[number]
            exe.run(startup, scope=scope)
            exe.run(program, scope=scope)

        def train(number):
            t, startup, loss = self.made[number]
            program = t.get_trainer_program(wait_port=False)
            exe, scope = fluid.Executor(), self.scopes[number]
            exe.run(startup, scope=scope)
            share = 8 // self.trainers
            for feed in feeds(self.net):
                mine = part(feed, number * share, (number + 1) * share)
                (value,) = exe.run(program, feed=mine, fetch_list=[loss], scope=scope)
                self.losses[number].append(float(value[0]))
            then(number, scope)
            client(number).complete()

        def guarded(work, number):
            try:
                work(number)
            except Exception as error:
                self.errors.append(error)

        threads = [
            threading.Thread(target=guarded, args=(work, k), daemon=True)
            for work, count in ((serve, len(self.endpoints)), (train, self.trainers))
            for k in range(count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        if self.errors:
            raise self.errors[0]
        assert not any(thread.is_alive() for thread in threads)
        return self

    def trained(self, name):
        return np.array(self.scopes[0].find_var(name).get_tensor())

    def table(self):
        found = [scope.find_var(f"emb.block{k}") for k, scope in enumerate(self.server_scopes)]
        return np.concatenate([np.array(var.get_tensor()) for var in found])


def alone(net, optimizer):
    """One process on whole batches: its losses and its scope."""
    main, startup, loss = build(net, optimizer)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    batches = (part(feed, 0, 8) for feed in feeds(net))
    losses = [float(exe.run(main, feed=feed, fetch_list=[loss], scope=scope)[0][0]) for feed in batches]
    return losses, scope


def adam():
    return fluid.optimizer.Adam(layers.exponential_decay(0.01, 2, 0.9))


def momentum():
    return fluid.optimizer.Momentum(0.01, 0.9, regularization=fluid.regularizer.L2Decay(1e-2))


def adagrad():
    return fluid.optimizer.Adagrad(0.05)


@pytest.mark.parametrize(("net", "optimizer"), [(images, momentum), (clicks, adam), (words, adagrad)])
def test_with_barriers_training_equals_one_process(net, optimizer):
    cluster = Cluster(net, optimizer).run()
    losses, scope = alone(net, optimizer)
    np.testing.assert_allclose(np.mean(cluster.losses, axis=0), losses, rtol=1e-5)
    np.testing.assert_allclose(
        cluster.trained("fc_0.w_0"), np.array(scope.find_var("fc_0.w_0").get_tensor()), rtol=1e-5, atol=1e-6
    )
    if net is not images:
        np.testing.assert_allclose(
            cluster.table(), np.array(scope.find_var("emb").get_tensor()), rtol=1e-5, atol=1e-6
        )


def by_norm(gradients, limit=0.1):
    return [g * (limit / max(limit, np.sqrt((g * g).sum()))) for g in gradients]


def by_global_norm(gradients, limit=0.1):
    norm = np.sqrt(sum((g * g).sum() for g in gradients))
    return [g * (limit / max(limit, norm)) for g in gradients]


def by_hand(net, clipped):
    """The losses of two trainers that clip their own gradients; servers take the mean, add decay and update."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        out = layers.fc(net(), 1, param_attr=fluid.ParamAttr(initializer=Constant(0.1)))
        loss = layers.mean(layers.square_error_cost(out, fluid.data("y", [None, 1], "float32")))
        pairs = fluid.backward.append_backward(loss)
    exe, losses = fluid.Executor(), []
    exe.run(startup, scope=scope)
    for feed in feeds(net):
        halves = []
        for begin in (0, 4):
            fetched = [loss, *(gradient for _, gradient in pairs)]
            value, *gradients = exe.run(
                main, feed=part(feed, begin, begin + 4), fetch_list=fetched, scope=scope
            )
            losses.append(value.item())
            halves.append(clipped(gradients))
        for (parameter, _), mine, theirs in zip(pairs, *halves, strict=True):
            held = scope.find_var(parameter.name).get_tensor()
            value = np.array(held)
            held.set(
                value - np.float32(0.1) * ((mine + theirs) / 2 + np.float32(0.01) * value), fluid.CPUPlace()
            )
    return [losses[::2], losses[1::2]]


@pytest.mark.parametrize("ahead", [False, True], ids=["grad_clip", "set_gradient_clip"])
@pytest.mark.parametrize(
    ("clip", "clipped"),
    [
        (
            lambda: fluid.clip.GradientClipByValue(0.02, -0.01),
            lambda them: [np.clip(g, -0.01, 0.02) for g in them],
        ),
        (lambda: fluid.clip.GradientClipByNorm(0.1), by_norm),
        (lambda: fluid.clip.GradientClipByGlobalNorm(0.1), by_global_norm),
    ],
    ids=["value", "norm", "global norm"],
)
def test_each_trainer_clips_its_own_gradients(clip, clipped, ahead):
    """Before servers add the decay of weights; rows that come twice are clipped together."""

    def sgd():
        if ahead:
            fluid.clip.set_gradient_clip(clip())
        decay = fluid.regularizer.L2Decay(0.01)
        return fluid.optimizer.SGD(0.1, regularization=decay, grad_clip=None if ahead else clip())

    cluster = Cluster(repeated, sgd).run()
    np.testing.assert_allclose(cluster.losses, by_hand(repeated, clipped), rtol=1e-5)


@pytest.mark.parametrize("net", [tied, marked_as_distributed])
def test_tables_with_dense_gradients_are_ordinary_parameters(net):
    def sgd():
        return fluid.optimizer.SGD(0.1)

    cluster = Cluster(net, sgd).run()
    np.testing.assert_allclose(np.mean(cluster.losses, axis=0), alone(net, sgd)[0], rtol=1e-5)


def test_rates_decay_for_one_trainer_as_in_one_process():
    def decaying():
        return fluid.optimizer.SGD(layers.exponential_decay(0.1, 1, 0.3))

    cluster = Cluster(images, decaying, trainers=1, servers=1).run()
    np.testing.assert_allclose(cluster.losses[0], alone(images, decaying)[0], rtol=0, atol=1e-5)


def test_one_trainer_without_barriers_equals_one_process():
    def sgd():
        return fluid.optimizer.SGD(0.1)

    cluster = Cluster(clicks, sgd, sync=False, trainers=1, sync_mode=False).run()
    losses, scope = alone(clicks, sgd)
    np.testing.assert_allclose(cluster.losses[0], losses, rtol=1e-5)
    np.testing.assert_allclose(
        cluster.table(), np.array(scope.find_var("emb").get_tensor()), rtol=1e-5, atol=1e-6
    )


def loss_of_all(net, parameters=None):
    """The mean loss of all batches with the parameters of a scope, or with initial ones."""
    main, startup, loss = build(net, lambda: fluid.optimizer.SGD(0.1))
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    for parameter in main.all_parameters() if parameters is not None else ():
        value = np.array(parameters.find_var(parameter.name).get_tensor())
        scope.find_var(parameter.name).get_tensor().set(value, fluid.CPUPlace())
    test = main.clone(for_test=True)
    batches = (part(feed, 0, 8) for feed in feeds(net))
    return np.mean([exe.run(test, feed=feed, fetch_list=[loss], scope=scope)[0] for feed in batches])


@pytest.mark.parametrize("config", [{}, {"enable_dc_asgd": True}])
def test_without_barriers_all_trainers_train(config):
    """The order of gradients is random, but the loss of all batches decreases."""
    cluster = Cluster(images, lambda: fluid.optimizer.SGD(0.05), sync=False, sync_mode=False, **config).run()
    assert np.isfinite(cluster.losses).all()
    assert all(loss_of_all(images, scope) < loss_of_all(images) for scope in cluster.scopes)


def test_servers_save_their_parameters(tmp_path):
    def save(number, scope):
        if number == 0:
            program = fluid.Program()
            program.global_block().append_op(
                type="checkpoint_notify",
                attrs={
                    "epmap": cluster.endpoints,
                    "dir": str(tmp_path),
                    "lookup_table": "emb",
                    "trainer_id": 0,
                },
            )
            program.global_block().append_op(
                type="recv_save",
                attrs={
                    "endpoints": cluster.endpoints, "remote_varnames": ["emb.block0", "emb.block1"], "trainer_id": 0,
                    "shape": [3000, 8], "file_path": str(tmp_path / "whole"),
                },
            )  # fmt: skip
            fluid.Executor().run(program, scope=scope)

    cluster = Cluster(clicks, adagrad)
    cluster.run(save)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["emb.block0", "emb.block1", "whole"]
    with open(tmp_path / "whole", "rb") as file:
        saved = read_tensors(file, ["emb"], "whole")["emb"]
    np.testing.assert_array_equal(np.array(saved), cluster.table())


def test_distributed_tables_are_saved_from_the_servers(tmp_path):
    def save(number, scope):
        if number == 0:
            program = cluster.made[0][0].origin_program
            with fluid.scope_guard(scope):
                fluid.io.save_params(None, tmp_path, program)

    cluster = Cluster(clicks, adagrad)
    cluster.run(save)
    with open(tmp_path / "emb", "rb") as file:
        saved = read_tensors(file, ["emb"], "emb")["emb"]
    np.testing.assert_array_equal(np.array(saved), cluster.table())
    assert len(list(tmp_path.iterdir())) == 5


def test_ids_out_of_range_are_named():
    cluster = Cluster(clicks, adagrad, trainers=1)
    t, startup, loss = cluster.made[0]
    program = t.get_trainer_program(wait_port=False)
    feed = {"ids": np.array([[3000]]), "y": np.zeros((1, 1), "float32")}
    with pytest.raises(fluid.core.EnforceNotMet, match="Ids must be from 0 to 2999, got 3000 to 3000"):
        fluid.Executor().run(program, feed=feed, fetch_list=[loss], scope=fluid.Scope())
