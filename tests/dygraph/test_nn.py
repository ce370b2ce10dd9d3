"""The layers of `fluid.dygraph.nn`: results and gradients are those of real Paddle 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph as nn
from fluidlite.contrib.layers import BasicGRUUnit
from fluidlite.dygraph import to_variable

pytestmark = pytest.mark.usefixtures("eager")


def seq(*shape, lo=-1.0, hi=1.0):
    """Evenly spaced floats that want a gradient."""
    made = to_variable(np.linspace(lo, hi, int(np.prod(shape))).reshape(shape).astype("float32"))
    made.stop_gradient = False
    return made


def ids(*shape, n):
    return to_variable(np.arange(int(np.prod(shape))).reshape(shape) % n)


def bits(*shape):
    return to_variable((np.arange(int(np.prod(shape))).reshape(shape) % 2).astype("float32"))


def fill(layer):
    for k, p in enumerate(layer.parameters()):
        if not p.stop_gradient:
            p.set_value(np.cos(np.arange(np.prod(p.shape)) + k).reshape(p.shape).astype("float32"))
    return layer


def digest(array):
    """Sum, sum of squares, last element."""
    array = array.astype("float64").ravel()
    return [array.sum(), (array**2).sum(), array[-1]]


GIVEN = fluid.ParamAttr()
CASES = {
    "linear": lambda: (nn.Linear(3, 2, act="tanh"), seq(2, 4, 3)),
    "bilinear": lambda: (nn.BilinearTensorProduct(3, 4, 2, act="sigmoid"), seq(2, 3), seq(2, 4)),
    "conv2d": lambda: (nn.Conv2D(4, 6, 3, stride=2, padding=1, groups=2, act="relu"), seq(2, 4, 5, 5)),
    "conv2d_dil": lambda: (
        nn.Conv2D(2, 3, (3, 1), padding=(2, 0), dilation=(2, 1), bias_attr=False),
        seq(1, 2, 5, 4),
    ),
    "depthwise": lambda: (nn.Conv2D(3, 6, 3, groups=3, use_cudnn=False), seq(1, 3, 4, 4)),
    "conv3d": lambda: (nn.Conv3D(2, 3, 2, stride=(1, 2, 1)), seq(1, 2, 3, 4, 3)),
    "conv2dt": lambda: (
        nn.Conv2DTranspose(4, 6, 3, stride=2, padding=1, groups=2, output_size=[10, 9]),
        seq(1, 4, 5, 5),
    ),
    "conv3dt": lambda: (nn.Conv3DTranspose(2, 3, 2, stride=2, bias_attr=GIVEN), seq(1, 2, 2, 2, 3)),
    "pool_max": lambda: (nn.Pool2D(2, "max", 2, ceil_mode=True), seq(1, 2, 5, 5)),
    "pool_avg": lambda: (nn.Pool2D((3, 2), "avg", (2, 1), (1, 0), exclusive=False), seq(1, 2, 5, 5)),
    "pool_glob": lambda: (nn.Pool2D(pool_type="avg", global_pooling=True), seq(2, 2, 3, 3)),
    "bn": lambda: (nn.BatchNorm(3, act="relu", momentum=0.7, epsilon=1e-3), seq(2, 3, 2, 2)),
    "bn_nhwc": lambda: (nn.BatchNorm(3, data_layout="NHWC"), seq(2, 2, 2, 3)),
    "bn_global": lambda: (
        nn.BatchNorm(3, use_global_stats=True, param_attr=GIVEN, bias_attr=GIVEN),
        seq(2, 3, 2, 2),
    ),
    "layer_norm": lambda: (nn.LayerNorm([3, 2], act="sigmoid"), seq(4, 3, 2)),
    "layer_norm_plain": lambda: (nn.LayerNorm(4, scale=False, shift=False, epsilon=1e-4), seq(2, 3, 4)),
    "group_norm": lambda: (nn.GroupNorm(4, 2, param_attr=True, bias_attr=True, act="tanh"), seq(2, 4, 2, 2)),
    "instance_norm": lambda: (nn.InstanceNorm(3), seq(2, 3, 2, 3)),
    "embedding": lambda: (nn.Embedding([5, 3], padding_idx=-2), ids(2, 4, n=5)),
    "prelu_all": lambda: (nn.PRelu("all"), seq(2, 3, 2, 2)),
    "prelu_channel": lambda: (nn.PRelu("channel", channel=3), seq(2, 3, 2, 2)),
    "prelu_element": lambda: (nn.PRelu("element", input_shape=[2, 3, 2, 2]), seq(2, 3, 2, 2)),
    "gru": lambda: (nn.GRUUnit(6), seq(2, 6), seq(2, 2)),
    "gru_relu": lambda: (
        nn.GRUUnit(6, activation="relu", gate_activation="identity", bias_attr=False),
        seq(2, 6),
        seq(2, 2),
    ),
    "nce": lambda: (nn.NCE(6, 3, num_neg_samples=2, seed=7), seq(2, 3), ids(2, 1, n=6)),
    "mse": lambda: (nn.MSELoss(), seq(2, 3), seq(2, 3, hi=2.0)),
    "mse_none": lambda: (nn.MSELoss("none"), seq(2, 3), seq(2, 3, hi=2.0)),
    "l1": lambda: (nn.L1Loss("sum"), seq(2, 3), seq(2, 3, hi=2.0)),
    "bce": lambda: (nn.BCELoss(), seq(2, 3, lo=0.1, hi=0.9), bits(2, 3)),
    "bce_w": lambda: (
        nn.BCELoss(weight=seq(3, lo=0.5, hi=2.0), reduction="sum"),
        seq(2, 3, lo=0.1, hi=0.9),
        bits(2, 3),
    ),
    "nll": lambda: (nn.NLLLoss(), seq(4, 3), ids(4, n=3)),
    "nll_w": lambda: (nn.NLLLoss(weight=seq(3, lo=0.5, hi=2.0), ignore_index=1), seq(4, 3), ids(4, n=3)),
    "nll_4": lambda: (nn.NLLLoss(reduction="none"), seq(2, 3, 2, 2), ids(2, 2, 2, n=3)),
    "nll_3": lambda: (nn.NLLLoss(reduction="none"), seq(2, 3, 4), ids(2, 4, n=3)),
    "nll_5": lambda: (nn.NLLLoss(reduction="sum"), seq(2, 3, 2, 2, 2), ids(2, 2, 2, 2, n=3)),
}

# name: shape and digest of the result; digests of the gradients of the parameters and of the inputs (None: no gradient)
REAL = {
    "linear": (
        [2, 4, 2],
        [-0.26107, 2.53608, -0.52993],
        [[-0.73745, 1.78676, 0.10784], [12.4345, 77.35829, 6.05935]],
        [[-1.45095, 21.8048, -0.38031]],
    ),
    "bilinear": (
        [2, 2],
        [2.22385, 1.40157, 0.24107],
        [[2.82875, 0.37511, 0.18314], [0.68754, 0.23767, 0.36935]],
        [[-0.20093, 0.75401, -0.46347], [-0.69537, 0.15361, 0.03789]],
    ),
    "conv2d": (
        [2, 6, 3, 3],
        [35.31572, 30.01454, 1.09224],
        [[49.05083, 330.81852, 1.43585], [42.28751, 578.87326, 8.69509]],
        [[-0.52933, 480.95683, -1.27587]],
    ),
    "conv2d_dil": (
        [1, 3, 5, 4],
        [-80.01512, 127.07098, -1.79678],
        [[-9.03178, 142.12086, 0.11179]],
        [[-3.64376, 42.48472, 0.6902]],
    ),
    "depthwise": (
        [1, 6, 2, 2],
        [2.45515, 16.21081, 0.50607],
        [[-9.11764, 151.05675, 3.01274], [16.56832, 49.22413, 3.35999]],
        [[-1.47032, 7.67402, -0.56669]],
    ),
    "conv3d": (
        [1, 3, 2, 2, 2],
        [-11.31953, 20.34014, -1.70116],
        [[-1.97419, 573.85342, -0.16065], [15.75235, 124.62595, -0.03517]],
        [[4.68068, 6.58704, 0.28452]],
    ),
    "conv2dt": (
        [1, 6, 10, 9],
        [-22.19814, 639.63917, 1.2032],
        [[-21.00526, 6907.84852, -0.75533], [289.93919, 16302.93454, 34.66417]],
        [[-55.77927, 570.85263, 0.756]],
    ),
    "conv3dt": (
        [1, 3, 4, 4, 6],
        [-75.61507, 211.06204, -1.95916],
        [[-6.74156, 1038.43556, 0.42201], [196.78698, 13577.68481, 44.90445]],
        [[12.15506, 76.7694, 3.46697]],
    ),
    "pool_max": ([1, 2, 3, 3], [2.93878, 6.37818, 1.0], [], [[14.97861, 12.86671, 0.5403]]),
    "pool_avg": ([1, 2, 3, 4], [-0.0, 4.6314, 0.58503], [], [[16.81622, 6.94142, 0.13895]]),
    "pool_glob": ([2, 2, 1, 1], [0.0, 1.32245, 0.77143], [], [[3.36807, 0.32206, 0.07966]]),
    "bn": (
        [2, 3, 2, 2],
        [6.56133, 9.48606, 0.0],
        [[3.19404, 9.84248, 0.0], [3.14808, 8.76822, 0.0], None, None],
        [[-0.0, 1.0828, -0.0]],
    ),
    "bn_nhwc": (
        [2, 2, 2, 3],
        [-6.9267, 23.28203, -1.62566],
        [[-4.06673, 18.70495, -2.64415], [14.2139, 70.98419, 4.01904], None, None],
        [[-0.0, 2.22295, 0.03644]],
    ),
    "bn_global": (
        [2, 3, 2, 2],
        [-10.86726, 15.28416, -1.40614],
        [[-1.97607, 7.97399, 0.30459], [17.09108, 106.03865, 3.29693], None, None],
        [[9.19561, 7.94871, -0.06821]],
    ),
    "layer_norm": (
        [4, 3, 2],
        [9.5092, 4.6069, 0.79824],
        [[-0.40344, 2.94012, 0.65806], [4.48446, 3.46722, 0.44964]],
        [[0.0, 13.36725, 1.12064]],
    ),
    "layer_norm_plain": ([2, 3, 4], [0.0, 23.74874, 1.3346], [], [[0.0, 280.85268, -3.42084]]),
    "group_norm": (
        [2, 4, 2, 2],
        [-12.98147, 11.02683, -0.97403],
        [[-2.07628, 78.22311, 0.62732], [18.91341, 108.18545, 1.30716]],
        [[-0.0, 35.81895, 0.29368]],
    ),
    "instance_norm": (
        [2, 3, 2, 3],
        [-10.39004, 34.9051, -1.59885],
        [[-6.11802, 42.2678, -3.96586], [21.31479, 159.64653, 6.02887]],
        [[0.0, 121.44546, 0.19999]],
    ),
    "embedding": ([2, 4, 3], [4.55355, 10.48299, -0.1455], [[16.08492, 24.02668, 0.99067]], [None]),
    "prelu_all": (
        [2, 3, 2, 2],
        [0.0, 8.69565, 1.0],
        [[-4.66199, 21.73413, -4.66199]],
        [[19.88194, 17.0072, 0.5403]],
    ),
    "prelu_channel": (
        [2, 3, 2, 2],
        [1.94451, 7.76661, 1.0],
        [[-4.89289, 9.324, -0.69213]],
        [[12.9236, 11.93742, 0.5403]],
    ),
    "prelu_element": (
        [2, 3, 2, 2],
        [5.7064, 6.80331, 1.0],
        [[-5.31737, 2.99043, -0.04348]],
        [[9.22739, 12.92657, 0.5403]],
    ),
    "gru": (
        [2, 2],
        [0.47953, 1.71572, 0.96854],
        [[-0.19829, 0.09065, 0.01365], [0.8755, 0.35829, 0.08729]],
        [[0.8755, 0.22265, 0.03468], [1.9136, 1.34866, -0.04832]],
    ),
    "gru_relu": (
        [2, 2],
        [-2.47196, 9.0923, 0.71804],
        [[0.75474, 1.36665, 0.58808]],
        [[-0.91351, 1.44084, 0.55465], [-0.81485, 17.25278, 0.15921]],
    ),
    "nce": (
        [2, 1],
        [1.57184, 1.24797, 0.70643],
        [[0.17542, 0.05143, 0.07667]],
        [[-0.04687, 0.01782, -0.07158], None],
    ),
    "mse": (
        [1],
        [0.36667, 0.13444, 0.36667],
        [],
        [[-0.93353, 0.21303, -0.31118], [0.93353, 0.21303, 0.31118]],
    ),
    "mse_none": ([2, 3], [2.2, 1.5664, 1.0], [], [[-4.6765, 4.8595, -1.0806], [4.6765, 4.8595, 1.0806]]),
    "l1": ([1], [3.0, 9.0, 3.0], [], [[4.94996, 4.90043, 0.98999], [-4.94996, 4.90043, -0.98999]]),
    "bce": ([1], [0.66572, 0.44318, 0.66572], [], [[-0.0, 0.65291, -0.14564], None]),
    "bce_w": ([1], [4.9929, 24.92908, 4.9929], [], [[0.25457, 4.91365, -0.61522], None]),
    "nll": ([1], [0.04545, 0.00207, 0.04545], [], [[-0.99897, 0.24948, 0.0], None]),
    "nll_w": ([1], [-0.24242, 0.05877, -0.24242], [], [[-0.97076, 0.47119, 0.0], None]),
    "nll_4": ([2, 2, 2], [0.34783, 3.19093, -0.65217], [], [[-6.48873, 5.43337, 0.0], None]),
    "nll_3": ([2, 4], [0.34783, 3.19093, -0.65217], [], [[-6.48873, 5.43337, 0.0], None]),
    "nll_5": ([1], [0.34043, 0.11589, 0.34043], [], [[-15.08181, 14.2163, 0.0], None]),
}


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients(name):
    layer, *inputs = CASES[name]()
    fill(layer)
    out = layer(*inputs)
    out = out[0] if isinstance(out, tuple) else out
    fluid.layers.reduce_sum(fluid.layers.sin(out)).backward()
    shape, result, of_parameters, of_inputs = REAL[name]
    assert out.shape == shape
    np.testing.assert_allclose(digest(out.numpy()), result, rtol=1e-4, atol=1e-4)
    for tensors, wanted in ((layer.parameters(), of_parameters), (inputs, of_inputs)):
        assert len(tensors) == len(wanted)
        for tensor, want in zip(tensors, wanted, strict=True):
            if want is None:
                assert tensor.gradient() is None
            else:
                np.testing.assert_allclose(digest(tensor.gradient()), want, rtol=1e-4, atol=1e-4)


SETTINGS = {
    "Conv2D": (
        lambda: nn.Conv2D(2, 4, 3, padding=1, param_attr="settings.w", bias_attr=False),
        {
            "_stride": [1, 1],
            "_padding": [1, 1],
            "_param_attr": "settings.w",
            "_bias_attr": False,
            "_groups": None,
        },
        {"_stride": [2, 2], "_padding": [0, 0]},
        [1, 4, 3, 3],
    ),
    "Conv2DTranspose": (
        lambda: nn.Conv2DTranspose(2, 4, 3, stride=2),
        {"_output_size": [], "_filter_size": [3, 3], "_op_type": "conv2d_transpose", "_groups": 1},
        {"_output_size": [16, 16]},
        [1, 4, 16, 16],
    ),
    "Pool2D": (
        lambda: nn.Pool2D(2, "avg", 2, ceil_mode=True),
        {
            "_pool_type": "avg",
            "_pool_size": [2, 2],
            "_pool_stride": [2, 2],
            "_ceil_mode": True,
            "_exclusive": True,
        },
        {"_pool_size": [3, 3], "_pool_stride": [1, 1]},
        [1, 2, 5, 5],
    ),
    "Embedding": (
        lambda: nn.Embedding([200, 3], is_sparse=True, padding_idx=-1),
        {"_padding_idx": 199, "_is_sparse": True, "_remote_prefetch": True, "_is_distributed": False},
        {},
        None,
    ),
    "SpectralNorm": (
        lambda: nn.SpectralNorm([4, 3]),
        {"_dim": 0, "_power_iters": 1, "_eps": 1e-12},
        {},
        None,
    ),
    "BilinearTensorProduct": (
        lambda: nn.BilinearTensorProduct(3, 4, 5),
        {"_input1_dim": 3, "_input2_dim": 4, "_output_dim": 5, "_param_attr": None},
        {},
        None,
    ),
    "BasicGRUUnit": (lambda: BasicGRUUnit("unit", 4), {"_hiden_size": 4, "_name": "unit"}, {}, None),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_what_subclasses_read_and_set_has_fluids_names(name):
    make, held, changed, shape = SETTINGS[name]
    layer = make()
    assert {key: getattr(layer, key) for key in held} == held
    for key, value in changed.items():
        setattr(layer, key, value)
    if changed:
        assert layer(seq(1, 2, 7, 7)).shape == shape
