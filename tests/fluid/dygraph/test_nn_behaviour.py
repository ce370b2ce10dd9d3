"""The layers of `fluid.dygraph.nn`: parameters, modes, refusals, use in programs."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph as nn
from fluidlite.dygraph import to_variable
from fluidlite.framework import mode
from fluidlite.ops.registry import OperatorError
from fluidlite.paddle import jit
from fluidlite.paddle.static import InputSpec

pytestmark = pytest.mark.usefixtures("eager")


def ones(*shape):
    return to_variable(np.ones(shape, "float32"))


MADE = {
    "Linear": (lambda: nn.Linear(3, 4), "linear", {"weight": [3, 4], "bias": [4]}),
    "Conv2D": (lambda: nn.Conv2D(2, 4, 3), "conv2d", {"weight": [4, 2, 3, 3], "bias": [4]}),
    "Conv3D": (lambda: nn.Conv3D(2, 4, 3), "conv3d", {"weight": [4, 2, 3, 3, 3], "bias": [4]}),
    "Conv2DTranspose": (lambda: nn.Conv2DTranspose(2, 4, 3), "conv2d_transpose",
        {"weight": [2, 4, 3, 3], "bias": [4]}),
    "Conv3DTranspose": (lambda: nn.Conv3DTranspose(2, 4, 3), "conv3d_transpose",
        {"weight": [2, 4, 3, 3, 3], "bias": [4]}),
    "Embedding": (lambda: nn.Embedding([5, 2]), "embedding", {"weight": [5, 2]}),
    "GRUUnit": (lambda: nn.GRUUnit(12), "gru_unit", {"weight": [4, 12], "bias": [1, 12]}),
    "GroupNorm": (lambda: nn.GroupNorm(4, 2), "group_norm", {}),
    "InstanceNorm": (lambda: nn.InstanceNorm(4), "instance_norm", {"scale": [4], "bias": [4]}),
    "LayerNorm": (lambda: nn.LayerNorm((3, 2)), "layer_norm", {"weight": [6], "bias": [6]}),
    "NCE": (lambda: nn.NCE(10, 4), "nce", {"weight": [10, 4]}),
    "NCE with bias": (lambda: nn.NCE(10, 4, bias_attr=True), "nce", {"weight": [10, 4], "bias": [10, 1]}),
    "PRelu": (lambda: nn.PRelu("channel", channel=3), "prelu", {"weight": [1, 3, 1, 1]}),
    "BilinearTensorProduct": (lambda: nn.BilinearTensorProduct(3, 4, 5), "bilinear_tensor_product",
        {"weight": [5, 3, 4], "bias": [1, 5]}),
    "SpectralNorm": (lambda: nn.SpectralNorm([3, 4]), "spectral_norm", {"weight_u": [3], "weight_v": [4]}),
    "TreeConv": (lambda: nn.TreeConv(3, 4), "tree_conv", {"weight": [3, 3, 4, 1]}),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_parameters(name):
    """Names and shapes of real Paddle 1.8.5."""
    make, stem, shapes = MADE[name]
    layer = make()
    assert layer.full_name() == f"{stem}_0"
    assert {name: p.shape for name, p in layer.named_parameters()} == shapes
    weights = [p.name for name, p in layer.named_parameters() if name != "bias"]
    assert weights == [f"{stem}_0.w_{i}" for i in range(len(weights))]


@pytest.mark.parametrize("name", [name for name in MADE if name not in ("PRelu", "NCE with bias")])
def test_parameters_of_derived_classes_are_named_after_them(name, monkeypatch):
    """But for those of PRelu, as in Fluid."""
    make, _, shapes = MADE[name]
    monkeypatch.setattr(nn, name, type("MyKind", (getattr(nn, name),), {}))
    layer = make()
    assert layer.full_name() == "my_kind_0"
    assert all(p.name.startswith("my_kind_0.") for p in layer.parameters())
    assert {name: p.shape for name, p in layer.named_parameters()} == shapes


def test_batch_norm_names_and_attributes():
    layer = nn.BatchNorm(3, moving_mean_name="mm", moving_variance_name="vv")
    assert [p.name for p in layer.parameters()] == ["batch_norm_0.w_0", "batch_norm_0.b_0", "mm", "vv"]
    assert layer._mean.stop_gradient and not layer._mean.trainable and layer.weight.trainable
    assert nn.BatchNorm(3, dtype="float16").weight.array.dtype == "float32"


def test_batch_norm_modes():
    x = to_variable(np.array([[1, 2], [3, 6]], "float32"))
    layer = nn.BatchNorm(2, momentum=0.5)
    memory = layer._mean.array
    np.testing.assert_allclose(layer(x).numpy(), [[-1, -1], [1, 1]], rtol=1e-4)
    assert layer._mean.numpy().tolist() == [1, 2] and layer._mean.array is memory
    assert layer._variance.numpy().tolist() == [1, 2.5]
    layer.eval()
    np.testing.assert_allclose(layer(x).numpy()[0], [0, 0], atol=1e-6)
    assert layer._mean.numpy().tolist() == [1, 2]
    moving = nn.BatchNorm(2, trainable_statistics=True)
    moving.eval()
    np.testing.assert_allclose(moving(x).numpy(), [[-1, -1], [1, 1]], rtol=1e-4)
    assert moving._mean.numpy().any()


def test_statistics_of_batches_are_saved_as_such(tmp_path):
    """As Paddle 1.8.5 writes them: `is_test` and `trainable_statistics` both."""
    x = np.random.RandomState(0).randn(4, 3, 2, 2).astype("float32") * 3 + 2
    layer = nn.BatchNorm(3, trainable_statistics=True)
    layer.eval()
    _, traced = nn.TracedLayer.trace(layer, [to_variable(x)])
    op = traced.program.global_block().ops[0]
    assert (op.type, op.attr("is_test"), op.attr("trainable_statistics")) == ("batch_norm", True, True)
    traced.save_inference_model(str(tmp_path / "traced"))
    jit.save(layer, str(tmp_path / "saved"), input_spec=[InputSpec([None, 3, 2, 2], "float32", "x")])
    loaded = jit.load(str(tmp_path / "saved"))
    other = x[:3] * 2 - 1
    want = (other - other.mean((0, 2, 3), keepdims=True)) / other.std((0, 2, 3), keepdims=True)
    np.testing.assert_allclose(loaded(to_variable(other)).numpy(), want, rtol=1e-3, atol=1e-4)
    with fluid.framework._dygraph_guard(None), fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        program, (feed,), fetches = fluid.io.load_inference_model(str(tmp_path / "traced"), exe)
        (found,) = exe.run(program, feed={feed: other}, fetch_list=fetches)
    np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)


def test_batch_norm_frozen_by_a_learning_rate_of_zero():
    still = fluid.ParamAttr(learning_rate=0.0)
    layer = nn.BatchNorm(3, use_global_stats=True, param_attr=still, bias_attr=still)
    assert layer.weight.stop_gradient and layer.bias.stop_gradient
    assert not nn.BatchNorm(3, use_global_stats=True).weight.stop_gradient


@pytest.mark.parametrize("upscale", [False, True])
def test_dropout(upscale):
    how = "upscale_in_train" if upscale else "downgrade_in_infer"
    layer, x = nn.Dropout(0.25, seed=3, dropout_implementation=how), ones(50, 40)
    kept = layer(x).numpy()
    assert set(np.unique(kept)) == {0, np.float32(4 / 3) if upscale else 1}
    assert 0.2 < (kept == 0).mean() < 0.3 and np.array_equal(kept, layer(x).numpy())
    layer.eval()
    assert set(np.unique(layer(x).numpy())) == {1 if upscale else 0.75}


def test_dropout_seeds():
    x = ones(10, 10)
    assert not np.array_equal(nn.Dropout()(x).numpy(), nn.Dropout()(x).numpy())
    fluid.default_main_program().random_seed = 3
    layer = nn.Dropout()
    assert np.array_equal(layer(x).numpy(), layer(x).numpy())
    real = [[0, 0, 1, 1], [1, 1, 1, 0], [1, 0, 0, 1]]
    assert nn.Dropout(0.5, seed=3)(ones(3, 4)).numpy().tolist() == real  # as on real Paddle 1.8.5


def test_spectral_norm():
    layer = nn.SpectralNorm([3, 4], dim=1, power_iters=2)
    layer.weight_u.set_value(np.cos(np.arange(4)).astype("float32"))
    layer.weight_v.set_value(np.cos(np.arange(3) + 1).astype("float32"))
    before = layer.weight_u.numpy()
    w = to_variable(np.linspace(-1, 1, 12).reshape(3, 4).astype("float32"))
    # The numbers of real Paddle 1.8.5.
    np.testing.assert_allclose(layer(w).numpy()[0], [-0.63163, -0.51679, -0.40195, -0.28711], atol=1e-5)
    assert np.array_equal(layer.weight_u.numpy(), before) and layer.weight_u.stop_gradient


def test_tree_conv_adds_its_bias():
    layer = nn.TreeConv(5, 2, 2, bias_attr=True, act=None)
    layer.bias.set_value(np.array([5, 7], "float32"))
    nodes, edges = (
        to_variable(np.zeros((1, 3, 5), "float32")),
        to_variable(np.array([[[1, 2], [1, 3]]], "int32")),
    )
    assert layer(nodes, edges).numpy().tolist() == [[[[5, 7]] * 2] * 3]


def test_nce_with_a_distribution():
    layer = nn.NCE(3, 4, sampler="custom_dist", custom_dist=[0.0, 0.0, 1.0], num_neg_samples=2)
    layer.weight.set_value(np.zeros((3, 4), "float32"))
    cost = layer(ones(2, 4), to_variable(np.array([[0], [1]])))
    assert cost.shape == [2, 1] and list(layer.state_dict()) == ["weight"]
    cost.backward()
    assert layer.weight.gradient()[2].any()


def test_embedding_with_a_sparse_gradient():
    layer = nn.Embedding([9, 4], is_sparse=True)
    fluid.layers.reduce_sum(layer(to_variable(np.array([[1], [3], [1]])))).backward()
    adam = fluid.optimizer.SGD(1.0, parameter_list=layer.parameters())
    before = layer.weight.numpy()
    adam.minimize(fluid.layers.mean(ones(1)))
    change = (before - layer.weight.numpy()).round(4)
    assert change[:, 0].tolist() == [0, 2, 0, 1, 0, 0, 0, 0, 0]


def test_linear_without_bias_and_weights_replaced():
    layer = nn.Linear(2, 2, bias_attr=False)
    assert layer.bias is None and list(layer.state_dict()) == ["weight"]
    layer = nn.Linear(2, 2)
    layer.bias = None
    layer.weight = layer.create_parameter([2, 5])
    assert layer(ones(3, 2)).shape == [3, 5]
    assert nn.Linear(2, 4)(ones(2, 3, 2)).shape == [2, 3, 4]
    wide = nn.Linear(2, 4, dtype="float64")(to_variable(np.ones((1, 2))))
    assert wide.numpy().dtype == "float64"


def test_gru_unit_says_what_it_ignores():
    with pytest.warns(UserWarning, match="as with origin_mode=False"):
        nn.GRUUnit(6, origin_mode=True)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: nn.Conv2D(2, 2, 3, param_attr=False), AssertionError, "param_attr should not be False"),
        (lambda: nn.Conv2D(3, 2, 3, groups=2), ValueError,
         "num_channels of Conv2D must be divisible by groups = 2"),
        (lambda: nn.Conv2D(4, 3, 3, groups=2), ValueError,
         "num_filters of Conv2D must be divisible by groups = 2"),
        (lambda: nn.Conv2D(4, 3, 3, use_cudnn=3), ValueError,
         "'use_cudnn' of Conv2D must be True or False"),
        (lambda: nn.Conv2D(4, 3, 3, padding=[1, 1, 2]), ValueError,
         "'padding' of Conv2D must be an integer or 2"),
        (lambda: nn.Conv2DTranspose(4, 3, 3, output_size="a"), ValueError, "output_size"),
        (lambda: nn.Conv3DTranspose(4, 3, 3, param_attr=False), AssertionError, "in Conv3DTranspose"),
        (lambda: nn.Pool2D(2, "min"), ValueError, "'pool_type' of Pool2D must be one of"),
        (lambda: nn.Pool2D(), ValueError, "needs .pool_size. unless .global_pooling"),
        (lambda: nn.BatchNorm(3, param_attr=False), AssertionError,
         "param_attr should not be False in BatchNorm"),
        (lambda: nn.InstanceNorm(3, bias_attr=False), AssertionError, "bias_attr should not be False"),
        (lambda: nn.GroupNorm(4, 2, data_layout="NHWC"), ValueError, "unsupported data layout:NHWC"),
        (lambda: nn.Dropout(1.5), AssertionError, "number between 0 and 1, got 1.5"),
        (lambda: nn.Dropout("a"), AssertionError, "number between 0 and 1, got 'a'"),
        (lambda: nn.Dropout(dropout_implementation="x"), AssertionError, "downgrade_in_infer"),
        (lambda: nn.Embedding([5]), ValueError, r"must be \[rows, columns\], got \[5\]"),
        (lambda: nn.PRelu("x"), ValueError, "one of all, channel, element"),
        (lambda: nn.PRelu("channel"), AssertionError, "channel argument is required"),
        (lambda: nn.PRelu("element"), AssertionError, "input_shape argument is required"),
        (lambda: nn.GRUUnit(6, activation="nope"), ValueError, "'activation' of GRUUnit must be one of"),
        (lambda: nn.NCE(3, 4, sampler="nope"), ValueError, "'sampler' of NCE must be one of"),
        (lambda: nn.NCE(3, 4, sampler="custom_dist"), ValueError, "one probability for each of 3 classes"),
        (lambda: nn.MSELoss("x"), ValueError, "'reduction' in MSELoss should be"),
        (lambda: nn.LayerNorm([4, 3])(ones(3, 4, 2)), ValueError,
         r"input with shape \[\*, 4, 3\], but got"),
        (lambda: nn.Linear(2, 4)(ones(2, 3)), OperatorError,
         "width of X and the height of Y must be equal"),
        (lambda: nn.Linear(2, 2, act="nope")(ones(1, 2)), AttributeError, "no operator 'nope'"),
    ],
)  # fmt: skip
def test_refusals(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_layers_in_programs(programs):
    """In static mode layers make parameters of programs; names and operators are those of real Paddle 1.8.5."""
    main, startup = programs
    with mode.guard(False):
        x = fluid.data("x", [None, 2], "float32")
        hidden = nn.Linear(2, 3, act="relu")(x)
        norm = nn.BatchNorm(3)
        out = norm(hidden)
        assert (hidden.name, out.name) == ("linear_0.tmp_2", "batch_norm_0.tmp_2")
        assert [op.type for op in main.global_block().ops] == [
            "matmul",
            "elementwise_add",
            "relu",
            "batch_norm",
        ]
        names = ["linear_0.w_0", "linear_0.b_0", *(f"batch_norm_0.{n}" for n in ("w_0", "b_0", "w_1", "w_2"))]
        assert [p.name for p in main.all_parameters()] == names
        exe, scope = fluid.Executor(), fluid.Scope()
        exe.run(startup, scope=scope)
        value = np.array([[1, 2], [-1, 3]], "float32")
        (got,) = exe.run(main, feed={"x": value}, fetch_list=[out], scope=scope)
        weight = scope.find_var("linear_0.w_0").get_tensor().numpy()
    want = np.maximum(value @ weight, 0)
    want = (want - want.mean(0)) / np.sqrt(want.var(0) + 1e-5)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (nn.MSELoss, ["elementwise_sub_0.tmp_0", "square_0.tmp_0", "reduce_mean_0.tmp_0"]),
        (nn.L1Loss, ["elementwise_sub_0.tmp_0", "elementwise_sub_0.tmp_1", "reduce_mean_0.tmp_0"]),
        (nn.BCELoss, ["bce_loss_0.tmp_0", "elementwise_mul_0.tmp_0", "reduce_mean_0.tmp_0"]),
    ],
)
def test_losses_in_programs(programs, make, names):
    """Names of Paddle 1.8.5."""
    with mode.guard(False):
        x, label, weight = (fluid.data(name, [3, 4], "float32") for name in ("x", "label", "weight"))
        make(weight)(x, label) if make is nn.BCELoss else make()(x, label)
    made = [name for op in programs[0].global_block().ops for name in op.output_arg_names]
    assert made == names
