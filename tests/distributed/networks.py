"""Small networks that one process and several train, and what they are fed."""

import numpy as np

import fluidlite as fluid

ROWS = 8


def lenet(wrapped):
    image, label = fluid.data("image", [-1, 1, 12, 12]), fluid.data("label", [-1, 1], "int64")
    conv = fluid.nets.simple_img_conv_pool(image, 4, 3, 2, 2, act="relu")
    conv = fluid.nets.simple_img_conv_pool(conv, 6, 3, 2, 2, act="relu")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(fluid.layers.fc(conv, 10, act="softmax"), label))
    wrapped(fluid.optimizer.Adam(0.01)).minimize(loss)
    return loss


def ctr(wrapped):
    """Sparse gradients, whose rows and numbers of rows differ between the processes."""
    ids = fluid.data("ids", [-1, 1], "int64", lod_level=1)
    dense, label = fluid.data("dense", [-1, 3]), fluid.data("label", [-1, 1])
    vectors = fluid.layers.embedding(ids, [50, 4], is_sparse=True)
    hidden = fluid.layers.fc([fluid.layers.sequence_pool(vectors, "sum"), dense], 4, act="relu")
    scores = fluid.layers.fc(hidden, 1)
    loss = fluid.layers.mean(fluid.layers.sigmoid_cross_entropy_with_logits(scores, label))
    wrapped(fluid.optimizer.Adagrad(0.1)).minimize(loss)
    return loss


def lstm(wrapped):
    ids, label = fluid.data("ids", [-1, 1], "int64", lod_level=1), fluid.data("label", [-1, 1], "int64")
    projected = fluid.layers.fc(fluid.layers.embedding(ids, [50, 8]), 16)
    hidden, _ = fluid.layers.dynamic_lstm(projected, 16)
    last = fluid.layers.sequence_pool(hidden, "last")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(fluid.layers.fc(last, 2, act="softmax"), label))
    clip = fluid.clip.GradientClipByGlobalNorm(1.0)
    wrapped(fluid.optimizer.SGD(0.5, grad_clip=clip)).minimize(loss)
    return loss


def middle():
    """A variable in the middle of the network of the default program, for recomputation."""
    made = [op.output_arg_names[0] for op in fluid.default_main_program().global_block().ops]
    return fluid.default_main_program().global_block().var(made[len(made) // 2])


BUILT = {"lenet": lenet, "ctr": ctr, "lstm": lstm}


def batch(name, step, part):
    """The samples of one step; `part`: which process wants its share, of how many."""
    draw = np.random.RandomState(step)
    rank, count = part
    mine = slice(rank * ROWS // count, (rank + 1) * ROWS // count)
    if name == "lenet":
        images = draw.rand(ROWS, 1, 12, 12).astype("float32")
        return {"image": images[mine], "label": draw.randint(0, 10, (ROWS, 1))[mine]}
    lengths = draw.randint(1, 6, ROWS)
    words = [draw.randint(0, 50, (n, 1)) for n in lengths][mine]
    ids = fluid.create_lod_tensor(np.concatenate(words), [[len(w) for w in words]], fluid.CPUPlace())
    if name == "lstm":
        return {"ids": ids, "label": draw.randint(0, 2, (ROWS, 1))[mine]}
    dense, label = draw.rand(ROWS, 3).astype("float32"), draw.randint(0, 2, (ROWS, 1)).astype("float32")
    return {"ids": ids, "dense": dense[mine], "label": label[mine]}


def train(name, change=None, part=(0, 1), steps=5, optimizer=lambda made: made, seed=7, place=None):
    """The losses of a few steps; `change(main, startup)` comes before the first and may return what to run."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = seed
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        loss = BUILT[name](optimizer)
        runs = (change(main, startup) if change else None) or main
        exe = fluid.Executor(place or fluid.CPUPlace())
        exe.run(startup)
        return [
            float(np.mean(exe.run(runs, batch(name, step, part), [loss.name])[0])) for step in range(steps)
        ]


class Net(fluid.dygraph.Layer):
    def __init__(self, sparse):
        super().__init__()
        self.words = fluid.dygraph.Embedding([20, 4], is_sparse=sparse)
        self.out = fluid.dygraph.Linear(4, 1)

    def forward(self, ids):
        return self.out(fluid.layers.reduce_sum(fluid.layers.tanh(self.words(ids)), 1))


def train_eager(name, way=None, part=(0, 1), steps=4):
    """The losses of a few steps of `Net`; `way`: "fluid", "hooks" as of Paddle 2.0, or None for one process."""
    rank, count = part
    losses = []
    with fluid.dygraph.guard(fluid.CPUPlace()), fluid.unique_name.guard():
        fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 3 + rank
        net = Net(name == "sparse")
        strategy = fluid.dygraph.prepare_context() if way == "fluid" else None
        model = fluid.dygraph.DataParallel(net, strategy) if way else net
        optimizer = fluid.optimizer.Adagrad(0.1, parameter_list=net.parameters())
        for step in range(steps):
            draw = np.random.RandomState(step)
            mine = slice(rank * ROWS // count, (rank + 1) * ROWS // count)
            ids, target = draw.randint(0, 20, (ROWS, 3))[mine], draw.rand(ROWS, 1).astype("float32")[mine]
            error = fluid.layers.square(
                model(fluid.dygraph.to_variable(ids)) - fluid.dygraph.to_variable(target)
            )
            loss = fluid.layers.mean(error)
            losses.append(float(loss.numpy()[0]))
            if way:
                loss = model.scale_loss(loss)
            loss.backward()
            if way:
                model.apply_collective_grads()
            optimizer.minimize(loss)
            net.clear_gradients()
    return losses
