"""`Linear`, `BilinearTensorProduct`, `Embedding`, `NCE`, `PRelu` and `Dropout`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....eager import Tensor, form
from ....framework import default_main_program
from ...initializer import ConstantInitializer
from ...layers.loss.sampled import NoiseContrast
from ...layers.nn.activations import DROPOUTS, dropout_attrs
from ...layers.nn.dense import lookup_attrs
from ...layers.tensor.matrix import create_bilinear
from ..layers import Layer, setting

__all__ = ["BilinearTensorProduct", "Dropout", "Embedding", "Linear", "NCE", "PRelu"]

_PRODUCT = {"transpose_X": False, "transpose_Y": False, "alpha": 1.0}


class Linear(Layer):
    """`act(input @ weight + bias)`, over the last axis of the input (`fluid.dygraph.Linear`).

    Args:
        input_dim: the size of the input's last axis.
        output_dim: that of the result.
        param_attr, bias_attr: a ParamAttr, a name or an initializer of the parameters; `bias_attr=False`: no bias.
        act: the name of an activation.
        dtype: 'float32' or 'float64', which inputs must have too.

    `weight` is [input_dim, output_dim], `bias` [output_dim].

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> with fluid.dygraph.guard():
        ...     layer = fluid.dygraph.Linear(3, 2)
        ...     out = layer(fluid.dygraph.to_variable(np.ones([4, 3], "float32")))
        ...     print(out.shape, [tuple(one.shape) for one in layer.parameters()])
        [4, 2] [(3, 2), (2,)]
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        param_attr: Any = None,
        bias_attr: Any = None,
        act: str | None = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        self._act, self._sizes = act, (input_dim, output_dim)
        self.weight = self.create_parameter([input_dim, output_dim], param_attr, dtype)
        self.bias = self.create_parameter([output_dim], bias_attr, dtype, is_bias=True)

    def forward(self, input: Any) -> Any:
        """`input` is [..., input_dim], the result [..., output_dim]."""
        # The layer of small models that are called most: the dict is three times as fast as the attributes.
        held = self._parameters
        weight = held["weight"] if "weight" in held else self.weight
        bias = held["bias"] if "bias" in held else self.bias
        if isinstance(input, Tensor):
            out = _matmul(input, weight)
            if bias is not None:
                out = _add(out, bias)
        else:
            out = self._helper.run("matmul", {"X": input, "Y": weight}, attrs=_PRODUCT)
            out = self._helper.add_bias(out, bias, len(out.shape) - 1)
        return self._helper.append_activation(out, self._act)

    def extra_repr(self) -> str:
        return f"in_features={self._sizes[0]}, out_features={self._sizes[1]}"


_matmul = form("matmul", (("X", 1), ("Y", 1)), (("Out", 1),), _PRODUCT)
_add = form("elementwise_add", (("X", 1), ("Y", 1)), (("Out", 1),), {"axis": -1})


class BilinearTensorProduct(Layer):
    """`act(x_i W_k y_i + bias)` for each row i and each output k (`fluid.dygraph.BilinearTensorProduct`).

    Args:
        input1_dim, input2_dim, output_dim: sizes of the rows of the inputs and of the result.
        name: accepted and without effect, as in Fluid.
        act: the name of an activation.
        param_attr, bias_attr: a ParamAttr, a name or an initializer; `bias_attr=False`: no bias.
        dtype: 'float32' or 'float64'.

    `weight` is [output_dim, input1_dim, input2_dim], `bias` [1, output_dim].
    """

    def __init__(
        self,
        input1_dim: int,
        input2_dim: int,
        output_dim: int,
        name: str | None = None,
        act: str | None = None,
        param_attr: Any = None,
        bias_attr: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        self._act, self._name, self._param_attr, self._bias_attr = act, name, param_attr, bias_attr
        sizes = self._output_dim, self._input1_dim, self._input2_dim = output_dim, input1_dim, input2_dim
        self.weight, self.bias = create_bilinear(self.create_parameter, sizes, param_attr, bias_attr, dtype)

    def forward(self, x: Any, y: Any) -> Any:
        """`x` is [N, input1_dim], `y` [N, input2_dim], the result [N, output_dim]."""
        inputs = {"X": x, "Y": y, "Weight": self.weight, "Bias": self.bias}
        return self._helper.append_activation(self._helper.run("bilinear_tensor_product", inputs), self._act)


class PRelu(Layer):
    """relu with a trainable slope below zero (`fluid.dygraph.PRelu`).

    Args:
        mode: 'all': one slope; 'channel': one for each channel; 'element': one for each element of a sample.
        channel: the number of channels, for 'channel'.
        input_shape: the shape of the input, for 'element'; its first size, the batch, does not matter.
        param_attr: a ParamAttr, a name or an initializer of the slopes, `weight`; they start as ones.
        dtype: 'float32' or 'float64'.

    Raises:
        ValueError: another mode. AssertionError, as in Fluid: `channel` or `input_shape` is missing.
    """

    def __init__(
        self,
        mode: str,
        channel: int | None = None,
        input_shape: Sequence[int] | None = None,
        param_attr: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__("prelu", dtype)
        shape = [1]
        if mode == "channel":
            if not isinstance(channel, int):
                raise AssertionError(f"channel argument is required when mode is 'channel', got {channel!r}")
            shape = [1, channel, 1, 1]
        elif mode == "element":
            if not isinstance(input_shape, (list, tuple)):
                raise AssertionError(
                    f"input_shape argument is required when mode is 'element', got {input_shape!r}"
                )
            shape = [1, *input_shape[1:]]
        elif mode != "all":
            raise ValueError(f"mode should be one of all, channel, element, got {mode!r}")
        self._mode, self._param_attr, self._alpha_shape = mode, param_attr, shape
        self.weight = self.create_parameter(
            shape, param_attr, dtype, default_initializer=ConstantInitializer(1.0)
        )

    def forward(self, input: Any) -> Any:
        """`input` is [N, C, H, W] for 'channel'; the result has its shape."""
        return self._helper.run("prelu", {"X": input, "Alpha": self.weight}, attrs={"mode": self._mode})

    def extra_repr(self) -> str:
        return f"mode={self._mode}"


class Dropout(Layer):
    """Sets elements to zero at random while training (`fluid.dygraph.Dropout`).

    Args:
        p: the probability of each element to become zero.
        seed: draw the same mask each time; by default the program's `random_seed`, or another one each time.
        dropout_implementation: 'downgrade_in_infer' multiplies by 1 - p in evaluation mode; 'upscale_in_train' divides
            by 1 - p in training mode.
        is_test: accepted and without effect, as in Fluid: `eval` and `train` decide.

    Raises:
        AssertionError, as in Fluid: `p` is no number in [0, 1], or the implementation is another.
    """

    def __init__(
        self,
        p: float = 0.5,
        seed: int | None = None,
        dropout_implementation: str = "downgrade_in_infer",
        is_test: bool = False,
    ) -> None:
        if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 1:
            raise AssertionError(f"p of Dropout should be a number between 0 and 1, got {p!r}")
        if dropout_implementation not in DROPOUTS:
            raise AssertionError(
                "dropout_implementation should be 'downgrade_in_infer' or 'upscale_in_train', got "
                f"{dropout_implementation!r}"
            )
        super().__init__()
        self._dropout_prob, self._seed, self._is_test = p, seed, is_test
        self._dropout_implementation = dropout_implementation

    def forward(self, input: Any) -> Any:
        """`input` has any shape, and so has the result."""
        seed = self._seed if self._seed is not None else default_main_program().random_seed or None
        attrs = dropout_attrs(self._dropout_prob, not self.training, seed, self._dropout_implementation)
        out, _ = self._helper.run("dropout", {"X": input}, ("Out", "Mask"), attrs, stop_gradient=("Mask",))
        return out

    def extra_repr(self) -> str:
        return f"p={self._dropout_prob}"


class Embedding(Layer):
    """A lookup of rows of a trainable table by their indices (`fluid.dygraph.Embedding`).

    Args:
        size: [rows, columns] of the table.
        is_sparse: True for sparse gradients of the table.
        is_distributed: accepted and without effect.
        padding_idx: a row that gives zeros and is not trained; negative numbers count from the end.
        param_attr: a ParamAttr, a name or an initializer of the table, `weight`.
        dtype: 'float32' or 'float64'.

    Raises:
        ValueError: `size` is not a pair, or `padding_idx` is out of range.
    """

    _is_sparse, _is_distributed = setting("is_sparse"), setting("is_distributed")
    _remote_prefetch, _padding_idx = setting("remote_prefetch"), setting("padding_idx")

    def __init__(
        self,
        size: Sequence[int],
        is_sparse: bool = False,
        is_distributed: bool = False,
        padding_idx: int | None = None,
        param_attr: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        if len(size) != 2:
            raise ValueError(f"the size of an Embedding must be [rows, columns], got {list(size)}")
        self._size, self._param_attr = list(size), param_attr
        self._attrs = lookup_attrs(size[0], is_sparse, is_distributed, padding_idx)
        self.weight = self.create_parameter(self._size, param_attr, dtype)

    def forward(self, input: Any) -> Any:
        """`input` is int64 of any shape; the result has one more axis, [..., columns]."""
        return self._helper.run("lookup_table_v2", {"Ids": input, "W": self.weight}, attrs=self._attrs)

    def extra_repr(self) -> str:
        return f"{self._size[0]}, {self._size[1]}"


class NCE(Layer):
    """Noise-contrastive estimation: the loss of a classifier over many classes, from a few that are drawn
    (`fluid.dygraph.NCE`).

    Args:
        num_total_classes: the number of classes.
        dim: the number of columns of the input.
        sample_weight: a tensor [N, 1] that weighs the samples.
        param_attr: a ParamAttr, a name or an initializer of `weight`, [num_total_classes, dim].
        bias_attr: the same for `bias`, [num_total_classes, 1]; there is none if it is None or False.
        num_neg_samples: the number of negative classes drawn for each sample; None: 10.
        sampler: their distribution: 'uniform', 'log_uniform', or 'custom_dist'.
        custom_dist: the probability of each class, for 'custom_dist'.
        seed: the seed of the draws; 0: a new one each time.
        is_sparse: True for sparse gradients of `weight`.
        dtype: 'float32' or 'float64'.

    Raises:
        ValueError: an unknown sampler, or no probabilities for 'custom_dist'.
    """

    def __init__(
        self,
        num_total_classes: int,
        dim: int,
        sample_weight: Any = None,
        param_attr: Any = None,
        bias_attr: Any = None,
        num_neg_samples: int | None = None,
        sampler: str = "uniform",
        custom_dist: Sequence[float] | None = None,
        seed: int = 0,
        is_sparse: bool = False,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        self._nce = NoiseContrast(
            "NCE", num_total_classes, num_neg_samples, sampler, custom_dist, seed, is_sparse
        )
        self._num_total_classes, self._num_neg_samples = self._nce.classes, self._nce.negatives
        self._sample_weight, self._param_attr, self._bias_attr = sample_weight, param_attr, bias_attr
        # No parameters of the layer: they are in no state dict.
        self._distribution = self._nce.create_distribution(self.create_parameter)
        self.weight, self.bias = self._nce.create_weights(
            self.create_parameter, dim, param_attr, bias_attr or False, dtype
        )

    def forward(self, input: Any, label: Any, sample_weight: Any = None) -> Any:
        """`input` is [N, dim], `label` int64 [N, number of true classes]; the result is the cost [N, 1]."""
        weights = self._sample_weight if sample_weight is None else sample_weight
        inputs = {"Input": input, "Label": label, "Weight": self.weight, "Bias": self.bias}
        return self._nce.cost(self._helper, {**inputs, "SampleWeight": weights, **self._distribution})
