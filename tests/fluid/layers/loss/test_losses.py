"""Losses, probabilities and metrics: appended operators, as in Fluid 1.8, and errors."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from fluidlite import input as any_shape
from fluidlite import layers
from fluidlite.base.dtypes import VarType
from fluidlite.base.place import CPUPlace
from fluidlite.data import data
from fluidlite.executor import Executor, Scope, scope_guard

rng = np.random.default_rng(0)


@pytest.fixture
def scores(programs):
    return data("scores", [None, 4], "float32")


@pytest.fixture
def label(programs):
    return data("label", [None, 1], "int64")


def run(programs, fetch, **feed):
    """The values of `fetch`, after the startup program."""
    with scope_guard(Scope()):
        executor = Executor(CPUPlace())
        executor.run(programs[1])
        return executor.run(programs[0], feed=feed, fetch_list=list(fetch))


def types(programs):
    return [op.type for op in programs[0].global_block().ops]


def test_cross_entropy(programs, scores, label):
    hard = layers.cross_entropy(scores, label, ignore_index=3)
    assert hard.name == "cross_entropy2_0.tmp_0" and hard.shape == (-1, 1)
    assert hard.op.output("MatchX") == ["cross_entropy2_0.tmp_2"] and hard.op.attr("ignore_index") == 3
    soft = layers.cross_entropy(scores, data("soft", [None, 4], "float32"), soft_label=True)
    assert soft.name == "cross_entropy_0.tmp_0"
    assert types(programs) == ["cross_entropy2", "cross_entropy"]


def test_softmax_with_cross_entropy(scores, label):
    loss, shares = layers.softmax_with_cross_entropy(scores, label, return_softmax=True)
    assert loss.name == "softmax_with_cross_entropy_0.tmp_1"
    assert shares.name == "softmax_with_cross_entropy_0.tmp_0" and shares.shape == (-1, 4)


def test_losses_of_numbers(programs):
    x, y = data("x", [None, 3], "float32"), data("y", [None, 3], "float32")
    made = {
        "square_error_cost_0.tmp_1": layers.square_error_cost(x, y),
        "reduce_mean_0.tmp_0": layers.mse_loss(x, y),
        "huber_loss_0.tmp_1": layers.huber_loss(x, y, 0.5),
        "smooth_l1_loss_0.tmp_1": layers.smooth_l1(x, y),
        "log_loss_0.tmp_0": layers.log_loss(x, y),
        "kldiv_loss_0.tmp_0": layers.kldiv_loss(x, y),
        "sigmoid_cross_entropy_with_logits_0.tmp_0": layers.sigmoid_cross_entropy_with_logits(x, y),
        "rank_loss_0.tmp_0": layers.rank_loss(*(data(name, [None, 1], "float32") for name in "lrs")),
        "margin_rank_loss_0.tmp_0": layers.margin_rank_loss(y, x, x),
        "_generated_var_0": layers.teacher_student_sigmoid_loss(x, y),
        "label_smooth_0.tmp_0": layers.label_smooth(y),
    }
    assert {var.name for var in made.values()} == set(made)
    assert y.stop_gradient
    assert made["reduce_mean_0.tmp_0"].shape == (1,) and made["smooth_l1_loss_0.tmp_1"].shape == (-1, 1)


def test_bpr_loss(scores, label):
    assert layers.bpr_loss(scores, label).shape == (-1, 1)


def test_dice_loss(programs):
    x, y = softmax(rng.normal(size=(2, 3, 2)), axis=2).astype("float32"), rng.integers(0, 2, (2, 3, 1))
    loss = layers.dice_loss(data("x", [None, 3, 2], "float32"), data("y", [None, 3, 1], "int64"))
    hot = np.eye(2)[y[..., 0]]
    score = 2 * (x * hot).sum((1, 2)) / (x.sum((1, 2)) + hot.sum((1, 2)) + 1e-5)
    np.testing.assert_allclose(run(programs, [loss], x=x, y=y)[0], [(1 - score).mean()], rtol=1e-5)


@pytest.mark.parametrize("kind", ["float32", "int64"])
def test_npair_loss(programs, kind):
    anchor, positive = (rng.normal(size=(6, 4)).astype("float32") for _ in range(2))
    labels = np.array([0, 1, 1, 2, 0, 3], kind)
    made = [data("a", [6, 4], "float32"), data("p", [6, 4], "float32"), data("l", [6], kind)]
    loss = layers.npair_loss(*made)
    same = (labels[:, None] == labels).astype(float)
    same /= same.sum(1, keepdims=True)
    cost = -(same * log_softmax(anchor @ positive.T, axis=1)).sum(1, keepdims=True)
    squares = (anchor**2).sum(1).mean() + (positive**2).sum(1).mean()
    want = 0.25 * 0.002 * squares + (same * cost).sum(0).mean()
    np.testing.assert_allclose(run(programs, [loss], a=anchor, p=positive, l=labels)[0], [want], rtol=1e-5)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda s: layers.cross_entropy(s, 3), TypeError, "'label' in cross_entropy must be a Variable"),
        (lambda s: layers.cross_entropy(s.astype("int64"), s), TypeError,
         "'input' in cross_entropy must be"),
        (lambda s: layers.cross_entropy(s, s), ValueError, "one class number a row.*test_losses.py"),
        (lambda s: layers.square_error_cost(s, 3), TypeError, "'label' in square_error_cost"),
        (lambda s: layers.kldiv_loss(s, s, "max"), ValueError, "'reduction' of kldiv_loss must be one of"),
        (lambda s: layers.label_smooth(s, epsilon=2.0), ValueError,
         "epsilon must be between 0 and 1, got 2.0"),
        (lambda s: layers.dropout(s, 1.5), ValueError,
         r"'dropout_prob' of dropout must be in \[0, 1\], got 1.5"),
        (lambda s: layers.dropout(s, 0.5, dropout_implementation="q"), ValueError,
         "'dropout_implementation'"),
        (lambda s: layers.topk(s, 5), ValueError, r"k must be in \[1, 4\]"),
        (lambda s: layers.one_hot(s, 3), TypeError, "'input' in one_hot must be .*float32"),
        (lambda s: layers.accuracy(s.astype("int64"), s), TypeError, "'input' in accuracy must be"),
        (lambda s: layers.log_softmax(s, dtype="int32"), ValueError, "'dtype' of log_softmax must be"),
    ],
)  # fmt: skip
def test_what_is_refused(scores, build, error, message):
    with pytest.raises(error, match=message):
        build(scores)


def test_softmax_and_log_softmax(programs, scores):
    x = rng.normal(size=(3, 4)).astype("float32")
    made = [
        layers.softmax(scores, axis=0),
        layers.log_softmax(scores),
        layers.log_softmax(scores, dtype="float64"),
    ]
    assert made[2].dtype == VarType.FP64 and types(programs)[-3:] == ["cast", "softmax", "log"]
    got = run(programs, made, scores=x)
    for value, want in zip(
        got, (softmax(x, 0), log_softmax(x, 1), log_softmax(x.astype(float), 1)), strict=True
    ):
        np.testing.assert_allclose(value, want, rtol=1e-5)


def test_dropout_takes_the_seed_of_the_program(programs, scores):
    out = layers.dropout(scores, 0.3)
    assert (out.op.attr("seed"), out.op.attr("fix_seed")) == (90, True)
    assert layers.dropout(scores, 0.3, seed=5).op.attr("seed") == 5
    programs[0].random_seed = 0
    free = layers.dropout(scores, 0.3)
    assert (free.op.attr("seed"), free.op.attr("fix_seed")) == (0, False)


def test_one_hot(programs, label):
    assert layers.one_hot(label, 5).stop_gradient
    assert any_shape.one_hot(data("grid", [None, 3], "int64"), 5).shape == (-1, 3, 5)
    assert layers.one_hot(label, layers.fill_constant([1], "int32", 2)).shape == (-1, -1)


def test_topk_and_accuracy(programs, scores, label):
    values, places = layers.topk(scores, 2)
    assert values.stop_gradient and places.stop_gradient and places.dtype == VarType.INT64
    share = layers.accuracy(scores, label, k=2)
    assert share.op.output("Correct") == ["accuracy_0.tmp_1"] and types(programs) == [
        "top_k",
        "top_k",
        "accuracy",
    ]
    x = np.array([[4, 3, 2, 1], [1, 2, 3, 4], [1, 2, 3, 4]], "float32")
    got = run(programs, [share, places], scores=x, label=np.array([[1], [0], [3]]))
    np.testing.assert_allclose(got[0], [2 / 3], rtol=1e-6)
    np.testing.assert_array_equal(got[1], [[0, 1], [3, 2], [3, 2]])


@pytest.mark.parametrize("curve", ["ROC", "PR", "roc", "any word"])
def test_auc_remembers(programs, label, curve):
    area, batch_area, counters = layers.auc(data("p", [None, 2], "float32"), label, curve, num_thresholds=7)
    assert [c.name for c in counters] == [f"_generated_var_{k}" for k in range(4)]
    assert [c.shape for c in counters] == [(17,), (17,), (1, 8), (1, 8)]
    assert all(c.persistable for c in counters)
    p = np.array([[0.2, 0.8], [0.9, 0.1]], "float32")
    with scope_guard(Scope()):
        executor = Executor(CPUPlace())
        executor.run(programs[1])
        for labels, want in (([[1], [0]], (1, 1)), ([[0], [1]], (0.5, 0))):
            feed = {"p": p, "label": np.array(labels)}
            got = executor.run(programs[0], feed=feed, fetch_list=[area, batch_area])
            np.testing.assert_allclose(np.concatenate(got), want)


def test_mean_iou(programs):
    ids = data("ids", [None, 3], "int64")
    mean, wrong, correct = layers.mean_iou(ids, ids, 4)
    assert (mean.shape, wrong.shape, correct.dtype) == ((1,), (4,), VarType.INT32)


def test_print_passes_on(programs, scores, capsys):
    out = layers.Print(scores, message="here", first_n=1)
    assert out.name == "print_scores_0.tmp_0"
    x = np.ones((1, 4), "float32")
    for _ in range(2):
        np.testing.assert_array_equal(run(programs, [out], scores=x)[0], x)
    assert capsys.readouterr().out.count("Tensor[scores]") == 1
    with pytest.raises(ValueError, match="'print_phase' of Print must be one of"):
        layers.Print(scores, print_phase="never")
