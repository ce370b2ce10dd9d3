"""`Embedding`, and `NCE`, which trains a classifier over many classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...layers.loss.sampled import NoiseContrast
from ...layers.nn.dense import lookup_attrs
from ..layers import Layer, setting

__all__ = ["NCE", "Embedding"]


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
