"""`paddle.nn.functional` against NumPy, each computed at once and as a program; gradients against differences."""

import numpy as np
import pytest
from scipy import special

import fluidlite.paddle as paddle
import fluidlite.paddle.nn.functional as F

R = np.random.RandomState(7)


def floats(*shape):
    return R.uniform(-1, 1, shape).astype("float32")


X, Y, ROW, COL = floats(3, 4), floats(3, 4), floats(4), floats(3, 1)
IMAGE, SEQUENCE = floats(2, 4, 5, 6), floats(2, 4, 7)
LABEL, TRUTH = np.array([1, 3, 0]), (floats(3, 4) > 0).astype("float32")
SOFT = special.softmax(Y, -1)


def one(value):
    return np.asarray(value).reshape(1)


def entropy(x, label):
    """Minus the log of the softmax at the label, along axis 1."""
    return -np.take_along_axis(
        special.log_softmax(x.astype("float64"), 1), np.expand_dims(label, 1), 1
    ).squeeze(1)


def windows(x, size, step, kind):
    """Pooling of [N, C, H, W] without padding."""
    rows, columns = ((n - size) // step + 1 for n in x.shape[2:])
    out = np.empty((*x.shape[:2], rows, columns))
    for i in range(rows):
        for j in range(columns):
            out[:, :, i, j] = kind(
                x[:, :, i * step : i * step + size, j * step : j * step + size], axis=(2, 3)
            )
    return out


def convolved(x, w, stride=1, pad=0, dilation=1):
    """Convolution of [N, C, H, W]."""
    x = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)]).astype("float64")
    reach = [dilation * (n - 1) + 1 for n in w.shape[2:]]
    rows, columns = ((n - r) // stride + 1 for n, r in zip(x.shape[2:], reach, strict=True))
    out = np.empty((len(x), len(w), rows, columns))
    for i in range(rows):
        for j in range(columns):
            top, left = i * stride, j * stride
            part = x[:, :, top : top + reach[0] : dilation, left : left + reach[1] : dilation]
            out[:, :, i, j] = np.einsum("nchw,fchw->nf", part, w)
    return out


def normal(x, axes, eps=1e-5):
    x = x.astype("float64")
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


FILTERS, LONG = floats(2, 4, 3, 3), floats(2, 4, 3)
REL = np.maximum
CASES = {
    "relu": (F.relu, (X,), REL(X, 0)),
    "relu6": (lambda x: F.relu6(x * 9), (X,), np.clip(X * 9, 0, 6)),
    "elu": (lambda x: F.elu(x, 0.5), (X,), np.where(X > 0, X, 0.5 * np.expm1(X))),
    "celu": (lambda x: F.celu(x, 0.7), (X,), np.where(X > 0, X, 0.7 * np.expm1(X / 0.7))),
    "selu": (F.selu, (X,), 1.0507009873554805 * np.where(X > 0, X, 1.6732632423543772 * np.expm1(X))),
    "gelu": (F.gelu, (X,), X * special.ndtr(X)),
    "hardshrink": (F.hardshrink, (X,), np.where(np.abs(X) > 0.5, X, 0)),
    "softshrink": (F.softshrink, (X,), np.sign(X) * REL(np.abs(X) - 0.5, 0)),
    "hardsigmoid": (lambda x: F.hardsigmoid(x * 4), (X,), np.clip(X * 4 / 6 + 0.5, 0, 1)),
    "hardswish": (lambda x: F.hardswish(x * 4), (X,), X * 4 * np.clip(X * 4 + 3, 0, 6) / 6),
    "hardtanh": (lambda x: F.hardtanh(x, -0.5, 0.25), (X,), np.clip(X, -0.5, 0.25)),
    "leaky_relu": (F.leaky_relu, (X,), np.where(X > 0, X, 0.01 * X)),
    "thresholded_relu": (lambda x: F.thresholded_relu(x, 0.3), (X,), np.where(X > 0.3, X, 0)),
    "softplus": (lambda x: F.softplus(x, 2), (X,), np.log1p(np.exp(2 * X)) / 2),
    "maxout": (lambda x: F.maxout(x, 2), (IMAGE,), IMAGE.reshape(2, 2, 2, 5, 6).max(2)),
    "prelu": (F.prelu, (IMAGE, ROW), np.where(IMAGE > 0, IMAGE, IMAGE * ROW[:, None, None])),
    "glu": (F.glu, (X,), X[:, :2] * special.expit(X[:, 2:])),
    "softmax": (lambda x: F.softmax(x, 0), (X,), special.softmax(X, 0)),
    "log_softmax": (lambda x: F.log_softmax(x * 500), (X,), special.log_softmax(X * 500, -1)),
    "log_sigmoid": (F.log_sigmoid, (X,), special.log_expit(X)),
    "mish": (F.mish, (X,), X * np.tanh(np.log1p(np.exp(X)))),
    "silu": (F.silu, (X,), X * special.expit(X)),
    "softsign": (F.softsign, (X,), X / (1 + np.abs(X))),
    "tanhshrink": (F.tanhshrink, (X,), X - np.tanh(X)),
    "linear": (F.linear, (X, Y.T, COL[:, 0]), X @ Y.T + COL[:, 0]),
    "embedding": (lambda i, w: F.embedding(i, w, padding_idx=-3), (LABEL, Y[[0, 1, 2, 0]]),
        Y[[1, 0, 0]] * [[0], [1], [1]]),
    "one_hot": (lambda i: F.one_hot(i, 5), (LABEL,), np.eye(5)[LABEL]),
    "label_smooth": (F.label_smooth, (TRUTH,), 0.9 * TRUTH + 0.025),
    "normalize": (F.normalize, (X,), X / np.linalg.norm(X, axis=1, keepdims=True)),
    "cosine_similarity": (F.cosine_similarity, (X, Y),
        (X * Y).sum(1) / np.linalg.norm(X, axis=1) / np.linalg.norm(Y, axis=1)),
    "pairwise_distance": (F.pairwise_distance, (X, Y), np.linalg.norm(X - Y + 1e-6, axis=1)),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), (IMAGE,),
        IMAGE.reshape(2, 1, 2, 2, 5, 6).transpose(0, 1, 4, 2, 5, 3).reshape(2, 1, 10, 12)),
    "pad": (lambda x: F.pad(x, [1, 2, 0, 1], value=3.0), (IMAGE,),
        np.pad(IMAGE, [(0, 0), (0, 0), (0, 1), (1, 2)], constant_values=3)),
    "pad all axes": (lambda x: F.pad(x, [0, 1, 1, 1]), (X,), np.pad(X, [(0, 1), (1, 1)])),
    "pad reflect": (lambda x: F.pad(x, [1, 2, 0, 1], "reflect"), (IMAGE,),
        np.pad(IMAGE, [(0, 0), (0, 0), (0, 1), (1, 2)], "reflect")),
    "pad replicate": (lambda x: F.pad(x, [2, 1], "replicate", data_format="NLC"), (SEQUENCE,),
        np.pad(SEQUENCE, [(0, 0), (2, 1), (0, 0)], "edge")),
    "pad circular": (lambda x: F.pad(x, [1, 2, 3, 0], "circular"), (IMAGE,),
        np.pad(IMAGE, [(0, 0), (0, 0), (3, 0), (1, 2)], "wrap")),
    "interpolate nearest": (lambda x: F.interpolate(x, scale_factor=2), (IMAGE,),
        IMAGE.repeat(2, 2).repeat(2, 3)),
    "interpolate sequence": (lambda x: F.interpolate(x, [14], data_format="NCL"), (SEQUENCE,),
        SEQUENCE.repeat(2, 2)),
    "conv2d": (F.conv2d, (IMAGE, FILTERS, floats(2) * 0), convolved(IMAGE, FILTERS)),
    "conv2d strided": (lambda x, w: F.conv2d(x, w, None, 2, 1, 2), (IMAGE, FILTERS),
        convolved(IMAGE, FILTERS, 2, 1, 2)),
    "conv2d same": (lambda x, w: F.conv2d(x, w, padding="same"), (IMAGE, FILTERS),
        convolved(IMAGE, FILTERS, 1, 1)),
    "conv2d channels last": (lambda x, w: F.conv2d(x, w, data_format="NHWC"),
        (IMAGE.transpose(0, 2, 3, 1), FILTERS), convolved(IMAGE, FILTERS).transpose(0, 2, 3, 1)),
    "conv1d": (lambda x, w: F.conv1d(x, w, stride=2), (SEQUENCE, LONG),
        convolved(SEQUENCE.repeat(3, 1).reshape(2, 4, 3, 7)[:, :, :1], LONG[:, :, None], 1)[:, :, 0, ::2]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), (IMAGE,), windows(IMAGE, 2, 2, np.max)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 1), (IMAGE,), windows(IMAGE, 3, 1, np.mean)),
    "avg_pool2d divisor": (lambda x: F.avg_pool2d(x, 2, divisor_override=3), (IMAGE,),
        windows(IMAGE, 2, 2, np.sum) / 3),
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, 2), (SEQUENCE,),
        np.stack([SEQUENCE[..., i : i + 3].max(-1) for i in (0, 2, 4)], -1)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 7), (SEQUENCE,), SEQUENCE.mean(-1, keepdims=True)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, [None, 2]), (IMAGE,),
        IMAGE.reshape(2, 4, 5, 2, 3).mean(-1)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 1), (IMAGE,),
        IMAGE.max((2, 3), keepdims=True)),
    "adaptive_max_pool1d": (lambda x: F.adaptive_max_pool1d(x, 1), (SEQUENCE,),
        SEQUENCE.max(-1, keepdims=True)),
    "layer_norm": (lambda x, w: F.layer_norm(x, 4, w, w), (X, ROW), normal(X, -1) * ROW + ROW),
    "layer_norm last two": (lambda x: F.layer_norm(x, [5, 6]), (IMAGE,), normal(IMAGE, (2, 3))),
    "instance_norm": (F.instance_norm, (IMAGE,), normal(IMAGE, (2, 3))),
    "group_norm": (lambda x: F.group_norm(x, 2), (IMAGE,),
        normal(IMAGE.reshape(2, 2, 60), -1).reshape(IMAGE.shape)),
    "batch_norm training": (lambda x, m, v: F.batch_norm(x, m, v, training=True), (IMAGE, ROW * 0, ROW * 0),
        normal(IMAGE, (0, 2, 3))),
    "batch_norm": (F.batch_norm, (X, ROW, ROW**2), (X - ROW) / np.sqrt(ROW**2 + 1e-5)),
    "square_error_cost": (F.square_error_cost, (COL, ROW), (COL - ROW) ** 2),
    "mse_loss": (F.mse_loss, (X, Y), one(((X - Y) ** 2).mean())),
    "l1_loss": (lambda x, y: F.l1_loss(x, y, "sum"), (X, Y), one(np.abs(X - Y).sum())),
    "smooth_l1_loss": (lambda x, y: F.smooth_l1_loss(x, y, "none", 0.5), (X, Y),
        np.where(np.abs(X - Y) < 0.5, (X - Y) ** 2 / 2, 0.5 * (np.abs(X - Y) - 0.25))),
    "cross_entropy": (F.cross_entropy, (X, LABEL), one(entropy(X, LABEL).mean())),
    "cross_entropy columns": (lambda x, y: F.cross_entropy(x, y, reduction="none"), (X, LABEL[:, None]),
        entropy(X, LABEL)[:, None]),
    "cross_entropy rows": (lambda x, y: F.cross_entropy(x, y, reduction="none"), (X, LABEL),
        entropy(X, LABEL)),
    "cross_entropy weight": (lambda x, y, w: F.cross_entropy(x, y, w), (X, LABEL, SOFT[0]),
        one((entropy(X, LABEL) * SOFT[0][LABEL]).sum() / SOFT[0][LABEL].sum())),
    "cross_entropy ignored": (lambda x, y: F.cross_entropy(x, y, ignore_index=3), (X, LABEL),
        one(entropy(X, LABEL)[[0, 2]].mean())),
    "cross_entropy soft": (lambda x, y: F.cross_entropy(x, y, soft_label=True), (X, SOFT),
        one(-(SOFT * special.log_softmax(X, 1)).sum(1).mean())),
    "cross_entropy of chances": (lambda x, y: F.cross_entropy(x, y, use_softmax=False, reduction="sum"),
        (SOFT, LABEL), one(-np.log(SOFT[range(3), LABEL]).sum())),
    "cross_entropy images": (lambda x, y: F.cross_entropy(x, y, axis=1), (IMAGE, IMAGE.argmax(1)),
        one(entropy(IMAGE, IMAGE.argmax(1)).mean())),
    "nll_loss": (lambda x, y: F.nll_loss(x, y), (X, LABEL), one(-X[range(3), LABEL].mean())),
    "nll_loss images": (lambda x, y: F.nll_loss(x, y, reduction="sum"), (IMAGE, IMAGE.argmax(1)),
        one(-IMAGE.max(1).sum())),
    "binary_cross_entropy": (F.binary_cross_entropy, (SOFT, TRUTH),
        one(-(TRUTH * np.log(SOFT) + (1 - TRUTH) * np.log(1 - SOFT)).mean())),
    "binary_cross_entropy_with_logits": (
        lambda x, y, w: F.binary_cross_entropy_with_logits(x, y, pos_weight=w, reduction="none"), (X, TRUTH, SOFT[0]),
        -(TRUTH * SOFT[0] * special.log_expit(X) + (1 - TRUTH) * special.log_expit(-X))),
    "kl_div": (lambda x, y: F.kl_div(x, y, "batchmean"), (X, SOFT),
        one((SOFT * (np.log(SOFT) - X)).sum() / 3)),
    "margin_ranking_loss": (lambda x, y, s: F.margin_ranking_loss(x, y, s, 0.2), (X, Y, TRUTH * 2 - 1),
        one(REL(-(TRUTH * 2 - 1) * (X - Y) + 0.2, 0).mean())),
    "hinge_embedding_loss": (F.hinge_embedding_loss, (X, TRUTH * 2 - 1),
        one(np.where(TRUTH > 0, X, REL(1 - X, 0)).mean())),
    "sigmoid_focal_loss": (F.sigmoid_focal_loss, (X, TRUTH),
        one(sum(-a * (1 - q) ** 2 * np.log(q)
                for p, t in zip(special.expit(X).flat, TRUTH.flat, strict=True)
                for q, a in [(p, 0.25) if t else (1 - p, 0.75)]))),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_case(compute, case):
    function, arrays, expected = CASES[case]
    got = compute(function, *arrays)[0]
    assert got.shape == np.shape(expected)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_convolutions_undo_the_shape(compute, dims):
    size = [7, 6, 5][:dims]
    x, w = floats(2, 4, *size), floats(4, 3, *[3] * dims)
    transposed = getattr(F, f"conv{dims}d_transpose")
    plain = compute(lambda x, w: transposed(x, w, stride=2), x, w)[0]
    assert plain.shape == (2, 3, *[2 * n + 1 for n in size])
    larger = compute(lambda x, w: transposed(x, w, stride=2, output_padding=1), x, w)[0]
    assert larger.shape == (2, 3, *[2 * n + 2 for n in size])
    inside = (slice(None), slice(None), *[slice(0, 2 * n + 1) for n in size])
    np.testing.assert_allclose(larger[inside], plain, rtol=1e-5, atol=1e-6)
    given = compute(lambda x, w: transposed(x, w, stride=2, output_size=[2 * n + 2 for n in size]), x, w)[0]
    np.testing.assert_allclose(given, larger, rtol=1e-5, atol=1e-6)


def test_masks_of_pooling_say_where(compute):
    values, places = compute(lambda x: F.max_pool2d(x, 2, return_mask=True), IMAGE)
    np.testing.assert_array_equal(values, windows(IMAGE, 2, 2, np.max))
    np.testing.assert_array_equal(
        np.take_along_axis(IMAGE.reshape(2, 4, 30), places.reshape(2, 4, -1), -1), values.reshape(2, 4, -1)
    )


def test_batch_norm_moves_running_statistics():
    mean, variance = paddle.zeros([4]), paddle.ones([4])
    F.batch_norm(paddle.to_tensor(IMAGE), mean, variance, training=True, momentum=0.75)
    np.testing.assert_allclose(mean.numpy(), 0.25 * IMAGE.mean((0, 2, 3)), rtol=1e-4)
    np.testing.assert_allclose(variance.numpy(), 0.75 + 0.25 * IMAGE.var((0, 2, 3)), rtol=2e-2)


def test_dropout():
    paddle.seed(3)
    x = paddle.ones([200, 50])
    kept = F.dropout(x, 0.25).numpy()
    assert set(np.unique(kept)) == {0.0, np.float32(1 / 0.75)} and abs((kept == 0).mean() - 0.25) < 0.02
    assert (F.dropout(x, 0.25, training=False).numpy() == 1).all()
    np.testing.assert_allclose(F.dropout(x, 0.25, training=False, mode="downscale_in_infer").numpy(), 0.75)
    rows = F.dropout(x, 0.5, axis=0).numpy()
    assert (rows == rows[:, :1]).all() and set(np.unique(rows)) == {0.0, 2.0}
    channels = F.dropout2d(paddle.ones([8, 16, 3, 3]), 0.5).numpy()
    assert (channels == channels[:, :, :1, :1]).all() and set(np.unique(channels)) == {0.0, 2.0}
    normal = F.alpha_dropout(paddle.randn([400, 100]), 0.3).numpy()
    assert abs(normal.mean()) < 0.05 and abs(normal.std() - 1) < 0.05


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: F.dropout(x, 1.5), ValueError, r"\[0, 1\]"),
        (lambda x: F.dropout(x, mode="other"), ValueError, "upscale_in_train"),
        (lambda x: F.mse_loss(x, x, "most"), ValueError, "'mean', 'sum', 'none'"),
        (lambda x: F.layer_norm(x, [5]), ValueError, r"input shape \[3, 4\]"),
        (lambda x: F.interpolate(x), ValueError, "size or scale_factor"),
        (lambda x: F.pad(x, [1, 1, 1, 1, 1, 1]), ValueError, "spatial axes"),
        (
            lambda x: F.pad(paddle.unsqueeze(x, 0), [9, 0], "reflect", data_format="NCL"),
            ValueError,
            "less than 4",
        ),
        (lambda x: F.conv2d(x, x, data_format="HW"), ValueError, "NHWC"),
        (lambda x: F.embedding(x, x, padding_idx=7), ValueError, r"\[-3, 3\)"),
        (lambda x: F.softshrink(x, -1), ValueError, "not be negative"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(paddle.to_tensor(X))


@pytest.mark.parametrize(
    "function, arrays",
    [
        (lambda x: F.celu(x, 0.7), (X,)),
        (lambda x: F.log_softmax(x, 0), (X,)),
        (lambda x: F.glu(x), (X,)),
        (lambda x: F.normalize(x), (X,)),
        (F.cosine_similarity, (X, Y)),
        (F.pairwise_distance, (X, Y)),
        (lambda x: F.pad(x, [1, 2, 0, 1], "reflect"), (IMAGE[:1, :1],)),
        (lambda x: F.pad(x, [1, 2, 0, 1], "circular"), (IMAGE[:1, :1],)),
        (lambda x: F.cross_entropy(x, paddle.to_tensor(LABEL), paddle.to_tensor(SOFT[0].astype("float64"))),
         (X,)),
        (lambda x: F.cross_entropy(x, paddle.to_tensor(LABEL), ignore_index=3), (X,)),
        (lambda x: F.nll_loss(x, paddle.to_tensor(LABEL)), (X,)),
        (lambda x: F.binary_cross_entropy(F.sigmoid(x), paddle.to_tensor(TRUTH.astype("float64"))), (X,)),
        (lambda x, w: F.binary_cross_entropy_with_logits(
            x, paddle.to_tensor(TRUTH.astype("float64")), pos_weight=w), (X, SOFT[0])),
        (lambda x, y: F.smooth_l1_loss(x * 3, y, delta=0.5), (X, Y)),
        (lambda x, w: F.layer_norm(x, 4, w, w), (X, ROW)),
        (lambda x, w: F.conv1d_transpose(x, w, stride=2, output_padding=1),
         (SEQUENCE[:1], LONG.transpose(1, 0, 2))),
        (lambda x: F.triplet_margin_loss(x, x * 2, x * 3, swap=True), (X,)),
    ],
)  # fmt: skip
def test_gradients(slope, function, arrays):
    slope(function, *arrays)
