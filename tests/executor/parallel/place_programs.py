"""Programs on several CPU places whose fetched values real Paddle 1.8.5 has recorded in `places.json`.

Each is a function of the `fluid` module and the number of places, which yields lists of what steps have fetched.
`CPU_NUM=3 python place_programs.py` under Paddle 1.8.5, in this folder, writes the file anew.
"""

import json

import numpy as np

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def rows(seed, places, width=2):
    """Four rows for each place, with another mean at each."""
    count = 4 * places
    drawn = np.random.RandomState(seed).normal(size=(count, width))
    return (drawn + np.arange(count)[:, None] * 0.5).astype("float32")


def linear(fluid, x=None):
    x = fluid.data("x", [None, 2]) if x is None else x
    weight = fluid.ParamAttr("w", initializer=fluid.initializer.Constant(1.0))
    return x, fluid.layers.fc(x, 1, param_attr=weight, bias_attr=False)


def normal(fluid):
    """A batch normalisation and a product; the moving averages are `mean` and `variance`."""
    x = fluid.data("x", [None, 2])
    x.stop_gradient = False
    hidden = fluid.layers.batch_norm(
        x, momentum=0.5, moving_mean_name="mean", moving_variance_name="variance"
    )
    return linear(fluid, hidden)[1]


def started(fluid):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


def parallel(fluid, places, loss=None, main=None, shared=None, strategy=None):
    main = fluid.default_main_program() if main is None else main
    return fluid.CompiledProgram(main).with_data_parallel(
        loss_name=None if loss is None else loss.name,
        share_vars_from=shared,
        places=fluid.cpu_places(places),
        build_strategy=strategy,
    )


def steps(fluid, places, loss, fetched, count=3):
    """The fetched values of `count` steps on different rows."""
    exe, train = started(fluid), parallel(fluid, places, loss)
    for seed in range(count):
        yield exe.run(train, feed={"x": rows(seed, places)}, fetch_list=fetched)


@program
def evaluated_between_steps(fluid, places):
    """Each place evaluates with the statistics that it has trained."""
    out = normal(fluid)
    loss = fluid.layers.mean(fluid.layers.square(out))
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe, train, evaluate = started(fluid), parallel(fluid, places, loss), None
    for seed in range(3):
        yield exe.run(train, feed={"x": rows(seed, places)}, fetch_list=[loss, "mean", "variance"])
        evaluate = evaluate or parallel(fluid, places, main=test, shared=train)
        ones = np.ones((places, 2), "float32")
        yield exe.run(evaluate, feed={"x": ones}, fetch_list=[out, "mean"])


@program
def two_training_programs(fluid, places):
    """Two programs that alternately train the same parameters and statistics."""
    out, layers = normal(fluid), fluid.layers
    losses = [layers.mean(out), layers.mean(layers.square(out))]
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    mains = [main.clone(), main.clone()]
    for at, each in enumerate(mains):
        with fluid.program_guard(each, startup):
            fluid.optimizer.SGD(0.1).minimize(each.global_block().var(losses[at].name))
    exe = started(fluid)
    first = parallel(fluid, places, losses[0], mains[0])
    second = None
    for seed in range(2):
        yield exe.run(first, feed={"x": rows(seed, places)}, fetch_list=["mean", "w"])
        second = second or parallel(fluid, places, losses[1], mains[1], first)
        yield exe.run(second, feed={"x": rows(seed + 5, places)}, fetch_list=[losses[1].name, "mean", "w"])


@program
def counters(fluid, places):
    """A test program continues the counter of training."""
    x, layers = fluid.data("x", [None, 2]), fluid.layers
    count = layers.autoincreased_step_counter(begin=1)
    total = layers.create_global_var([1], 0.0, "float32", persistable=True)
    layers.assign(total + layers.reduce_sum(x), total)
    exe, train = started(fluid), parallel(fluid, places)
    feed = {"x": rows(0, places)}
    yield exe.run(train, feed=feed, fetch_list=[count, total])
    test = parallel(fluid, places, main=fluid.default_main_program().clone(for_test=True), shared=train)
    for each in (test, train, test):
        yield exe.run(each, feed=feed, fetch_list=[count, total])
    yield exe.run(train, feed=[{"x": rows(1, 1)}], fetch_list=[count, total])
    yield exe.run(test, feed=feed, fetch_list=[count, total])


@program
def metrics(fluid, places):
    """A test program continues the counts of an AUC."""
    x, label = fluid.data("x", [None, 2]), fluid.data("label", [None, 1], "int64")
    layers, table = fluid.layers, np.array([[1, -1], [0.5, 0]], "float32")
    weight = fluid.ParamAttr("w", initializer=fluid.initializer.NumpyArrayInitializer(table))
    chances = layers.softmax(layers.fc(x, 2, param_attr=weight, bias_attr=False))
    auc, batch_auc, _ = layers.auc(chances, label, num_thresholds=20)
    test = fluid.default_main_program().clone(for_test=True)
    loss = layers.mean(layers.cross_entropy(chances, label))
    fluid.optimizer.SGD(0.01).minimize(loss)
    exe, train, evaluate = started(fluid), parallel(fluid, places, loss), None
    for seed in range(3):
        labels = np.random.RandomState(seed).randint(0, 2, (4 * places, 1)).astype("int64")
        feed = {"x": rows(seed, places) - 1, "label": labels}
        yield exe.run(train, feed=feed, fetch_list=[auc, batch_auc])
        evaluate = evaluate or parallel(fluid, places, main=test, shared=train)
        yield exe.run(evaluate, feed=feed, fetch_list=[auc, batch_auc])


@program
def draws(fluid, places):
    """Operators with a random state have one for each place."""
    x = fluid.data("x", [None, 1])
    cut = fluid.layers.random_crop(fluid.layers.expand(x, [1, 6]), [2], seed=7)
    mixed = fluid.contrib.layers.shuffle_batch(x, seed=7)
    kept = fluid.layers.dropout(x, 0.5, seed=3)
    exe, compiled = started(fluid), parallel(fluid, places)
    feed = {"x": np.arange(1, 4 * places + 1, dtype="float32").reshape(-1, 1)}
    for _ in range(3):
        yield exe.run(compiled, feed=feed, fetch_list=[mixed, kept])
        yield [value.shape for value in exe.run(compiled, feed=feed, fetch_list=[cut])]


@program
def rate_of_a_counter(fluid, places):
    """A learning rate computed by forward operators is not scaled as gradients are."""
    _, out = linear(fluid)
    loss = fluid.layers.mean(out)
    count = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True)
    fluid.layers.increment(count)
    rate = fluid.layers.scale(count, 0.1)
    fluid.optimizer.SGD(rate).minimize(loss)
    for scale in ("CoeffNumDevice", "One"):
        strategy = fluid.BuildStrategy()
        strategy.gradient_scale_strategy = getattr(fluid.BuildStrategy.GradientScaleStrategy, scale)
        exe, train = started(fluid), parallel(fluid, places, loss, strategy=strategy)
        for seed in range(2):
            yield exe.run(train, feed={"x": rows(seed, places)}, fetch_list=[loss, rate, "w"])


@program
def rate_of_a_batch(fluid, places):
    """A learning rate that differs between places: the parameters differ after the update."""
    x, out = linear(fluid)
    loss = fluid.layers.mean(out)
    rate = fluid.layers.scale(fluid.layers.reduce_mean(x), 0.1)
    fluid.optimizer.Adam(rate).minimize(loss)
    return steps(fluid, places, loss, [loss, rate, "w", "w_moment1_0"])


@program
def read_after_the_update(fluid, places):
    """Operators after the update read updated parameters."""
    x, out = linear(fluid)
    loss = fluid.layers.mean(fluid.layers.square(out))
    fluid.optimizer.SGD(0.01).minimize(loss)
    weight = fluid.default_main_program().global_block().var("w")
    product = fluid.layers.mul(x, weight)
    return steps(fluid, places, loss, [loss, product, fluid.layers.reduce_sum(weight), "w"])


@program
def two_updates(fluid, places):
    """The second network reads parameters that the first one's optimizer has updated."""
    x, out = linear(fluid)
    layers = fluid.layers
    first = layers.mean(layers.square(out))
    fluid.optimizer.SGD(0.01).minimize(first)
    start = fluid.ParamAttr("v", initializer=fluid.initializer.Constant(0.5))
    made = layers.mul(x, fluid.default_main_program().global_block().var("w"))
    second = layers.mean(layers.square(layers.fc(made, 1, param_attr=start, bias_attr=False)) + out)
    fluid.optimizer.Momentum(0.01, 0.9).minimize(second, parameter_list=["v"])
    return steps(fluid, places, second, [first, second, made, "w", "v"])


@program
def weights_clipped_after_the_update(fluid, places):
    _, out = linear(fluid)
    loss = fluid.layers.mean(fluid.layers.square(out))
    fluid.optimizer.SGD(0.01).minimize(loss)
    weight = fluid.default_main_program().global_block().var("w")
    fluid.layers.assign(fluid.layers.clip(weight, 0.4, 0.5), weight)
    return steps(fluid, places, loss, [loss, "w"])


@program
def weights_changed_by_the_batch(fluid, places):
    x, out = linear(fluid)
    loss = fluid.layers.mean(fluid.layers.square(out))
    fluid.optimizer.SGD(0.01).minimize(loss)
    weight = fluid.default_main_program().global_block().var("w")
    fluid.layers.assign(weight + fluid.layers.reduce_mean(x) * 0.1, weight)
    return steps(fluid, places, loss, [loss, "w"])


@program
def lookahead(fluid, places):
    _, out = linear(fluid)
    loss = fluid.layers.mean(fluid.layers.square(out))
    fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.01), alpha=0.5, k=2).minimize(loss)
    return steps(fluid, places, loss, [loss, "w"], 5)


@program
def averages_of_statistics(fluid, places):
    """Averages of local variables are local, those of parameters are shared."""
    out = normal(fluid)
    loss = fluid.layers.mean(fluid.layers.square(out))
    fluid.optimizer.SGD(0.1).minimize(loss)
    fluid.optimizer.ExponentialMovingAverage(0.5).update()
    return steps(fluid, places, loss, ["mean", "w", "mean_ema_0", "variance_ema_0", "w_ema_0"])


@program
def gradients_read_by_the_program(fluid, places):
    """Gradients of parameters are summed over the places wherever they are read, also without an optimizer."""
    _, out = linear(fluid)
    loss = fluid.layers.mean(fluid.layers.square(out))
    gradient = fluid.backward.append_backward(loss)[0][1]
    size = fluid.layers.reduce_sum(fluid.layers.square(gradient))
    return steps(fluid, places, loss, [loss, gradient, size, loss.name + "@GRAD"], 2)


@program
def rate_fed_for_each_place(fluid, places):
    _, out = linear(fluid)
    loss = fluid.layers.mean(out)
    rate = fluid.layers.create_global_var([1], 0.1, "float32", persistable=True, name="rate")
    fluid.optimizer.SGD(rate).minimize(loss)
    exe, train = started(fluid), parallel(fluid, places, loss)
    rates = np.arange(1, places + 1, dtype="float32") * 0.1
    by_place = [{"x": rows(place, 1), "rate": rates[place : place + 1]} for place in range(places)]
    for feed in (
        {"x": rows(0, places), "rate": rates},
        {"x": rows(1, places)},
        {"x": rows(2, places), "rate": np.array([0.1], "float32")},
        by_place,
    ):
        yield exe.run(train, feed=feed, fetch_list=[loss, "rate", "w"])
    yield [np.array(fluid.global_scope().find_var(name).get_tensor()) for name in ("w", "rate")]


@program
def factor_fed_for_each_place(fluid, places):
    _, out = linear(fluid)
    factor = fluid.layers.create_global_var([1], 0.1, "float32", persistable=True, name="factor")
    loss = fluid.layers.mean(out * factor)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe, train = started(fluid), parallel(fluid, places, loss)
    for feed in (
        {"factor": np.arange(1, places + 1, dtype="float32") * 0.1},
        {},
        {"factor": np.array([0.3], "float32")},
        {},
    ):
        yield exe.run(train, feed={"x": rows(0, places), **feed}, fetch_list=[loss, "factor", "w"])


@program
def weights_fed_for_each_place(fluid, places):
    """A test program that shares variables reads those of its place."""
    _, out = linear(fluid)
    loss = fluid.layers.mean(fluid.layers.square(out))
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Momentum(0.01, 0.9).minimize(loss)
    exe, train = started(fluid), parallel(fluid, places, loss)
    yield exe.run(train, feed={"x": rows(0, places)}, fetch_list=[loss, "w"])
    evaluate = parallel(fluid, places, main=test, shared=train)
    yield exe.run(evaluate, feed={"x": rows(0, places)}, fetch_list=[loss])
    weights = [np.full((2, 1), 1.0 + place, "float32") for place in range(places)]
    feed = [{"x": rows(1, 1), "w": weight} for weight in weights]
    yield exe.run(train, feed=feed, fetch_list=[loss, "w"])
    yield exe.run(evaluate, feed={"x": rows(0, places)}, fetch_list=[loss])
    yield exe.run(train, feed={"x": rows(2, places)}, fetch_list=[loss, "w"])


@program
def sparse_rows(fluid, places):
    ids = fluid.data("ids", [None, 1], "int64")
    start = fluid.ParamAttr("table", initializer=fluid.initializer.Constant(1.0))
    found = fluid.embedding(ids, [5, 2], is_sparse=True, param_attr=start)
    loss = fluid.layers.mean(fluid.layers.square(found))
    fluid.optimizer.Adam(0.1, lazy_mode=True).minimize(loss)
    exe, train = started(fluid), parallel(fluid, places, loss)
    for step in range(3):
        numbers = np.arange(2 * places).reshape(-1, 1) * (step + 1) % 5
        yield exe.run(train, feed={"ids": numbers}, fetch_list=[loss, "table"])


@program
def branches_of_a_counter(fluid, places):
    _, out = linear(fluid)
    layers = fluid.layers
    count = layers.autoincreased_step_counter(begin=1)
    even = layers.equal(count % 2, layers.fill_constant([1], "int64", 0))
    loss = layers.mean(layers.cond(even, lambda: layers.scale(out, 2.0), lambda: layers.scale(out, -1.0)))
    fluid.optimizer.SGD(0.01).minimize(loss)
    return steps(fluid, places, loss, [loss, count, "w"], 4)


@program
def arrays_of_tensors(fluid, places):
    x, layers = fluid.data("x", [None, 2]), fluid.layers
    at = layers.fill_constant([1], "int64", 0)
    array = layers.array_write(x, at)
    layers.increment(at)
    layers.array_write(layers.reduce_mean(x), at, array)
    exe = started(fluid)
    feed = {"x": rows(0, places)}
    yield exe.run(parallel(fluid, places), feed=feed, fetch_list=[array])[0]
    by_place = exe.run(parallel(fluid, places), feed=feed, fetch_list=[array], return_merged=False)[0]
    yield [tensor for place in by_place for tensor in place]


def run(fluid, function, places):
    """The fetched values of all steps of a program, as lists."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        return [[np.asarray(value).tolist() for value in step] for step in function(fluid, places)]


if __name__ == "__main__":
    import paddle.fluid

    found = {}
    for name, function in PROGRAMS.items():
        for places in (2, 3):
            made = json.dumps(run(paddle.fluid, function, places))
            found[f"{name} {places}"] = json.loads(made, parse_float=lambda text: float(f"{float(text):.6g}"))
    lines = [f"{json.dumps(name)}: {json.dumps(made, separators=(',', ':'))}" for name, made in found.items()]
    with open("places.json", "w") as file:
        file.write("{\n" + ",\n".join(lines) + "\n}\n")
