"""sampled_softmax_with_cross_entropy and continuous_value_model in programs."""

import numpy as np

import fluidlite as fluid

layers = fluid.layers


def test_a_classifier_learns_from_sampled_classes():
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
        x, label = fluid.data("x", [None, 8], "float32"), fluid.data("label", [None, 1], "int64")
        scores = layers.fc(x, 50)
        loss = layers.mean(layers.sampled_softmax_with_cross_entropy(scores, label, num_samples=10))
        fluid.optimizer.Adam(0.1).minimize(loss)
        names = [op.type for op in fluid.default_main_program().global_block().ops]
        assert names[2:5] == ["sample_logits", "one_hot", "softmax_with_cross_entropy"]
        exe, rng = fluid.Executor(fluid.CPUPlace()), np.random.default_rng(0)
        exe.run(fluid.default_startup_program())
        centres = rng.normal(size=(50, 8))
        for _ in range(150):
            labels = rng.integers(0, 50, (32, 1))
            feed = {"x": centres[labels[:, 0]].astype("float32"), "label": labels}
            found, _ = exe.run(feed=feed, fetch_list=[scores, loss])
        assert (found.argmax(axis=1) == labels[:, 0]).mean() > 0.9


def _cost(logits, labels, num_samples, **more):
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        scores, label = (layers.assign(array) for array in (logits, labels))
        more = {k: layers.assign(v) if isinstance(v, np.ndarray) else v for k, v in more.items()}
        cost = layers.sampled_softmax_with_cross_entropy(scores, label, num_samples, **more)
        return fluid.Executor().run(fetch_list=[cost])[0].ravel()


def test_costs_of_classes_drawn_as_in_paddle():
    logits = np.sin(np.arange(100, dtype="float32")).reshape(2, 50)
    labels = np.array([[3], [0]])
    # With this seed the first five classes drawn differ, and Paddle weighs them by how often they come.
    found = _cost(logits, labels, 5, seed=4)
    classes = np.array([[3, 20, 4, 9, 0, 7], [0, 20, 4, 9, 0, 7]])
    once = np.log((classes + 2) / (classes + 1)) / np.log(51)
    scores = np.take_along_axis(logits.astype("float64"), classes, 1) - np.log(5 * once)
    scores[1, 4] = -np.inf  # the true class once more
    np.testing.assert_allclose(found, np.log(np.exp(scores).sum(1)) - scores[:, 0], rtol=1e-5)


def test_hits_are_those_of_the_first_sample():
    logits = np.sin(np.arange(100, dtype="float32")).reshape(2, 50)
    samples, chances = np.array([[29, 29, 5, 16], [12, 18, 18, 49]]), np.full([2, 4], 0.25, "float32")
    found = _cost(
        logits, np.array([[39], [1]]), 3,
        use_customized_samples=True, customized_samples=samples, customized_probabilities=chances,
    )  # fmt: skip
    scores = np.take_along_axis(logits.astype("float64"), samples, 1)
    scores[0, 1] = -np.inf
    np.testing.assert_allclose(found, np.log(np.exp(scores).sum(1)) - scores[:, 0], rtol=1e-5)


def test_counts_of_showing_and_clicking(programs):
    x, counts = (
        fluid.data("x", [None, 5], "float32", lod_level=1),
        fluid.data("counts", [None, 2], "float32"),
    )
    x.stop_gradient = False
    kept, left = layers.continuous_value_model(x, counts), layers.continuous_value_model(x, counts, False)
    assert kept.shape == (-1, 5) and left.shape == (-1, 3) and kept.lod_level == 1
    (slope,) = fluid.gradients(layers.reduce_sum(left), [x])
    rows = np.arange(20, dtype="float32").reshape(4, 5)
    feed = {
        "x": fluid.create_lod_tensor(rows, [[1, 3]], fluid.CPUPlace()),
        "counts": np.array([[1, 2], [3, 1]], "float32"),
    }
    exe = fluid.Executor(fluid.CPUPlace())
    made, gradient = exe.run(feed=feed, fetch_list=[kept, slope], return_numpy=False)
    assert made.lod() == [[0, 1, 4]]
    np.testing.assert_array_equal(np.array(gradient), [[1, 2, 1, 1, 1], *[[3, 1, 1, 1, 1]] * 3])
