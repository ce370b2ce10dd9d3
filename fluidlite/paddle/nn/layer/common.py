"""Linear maps, tables, dropout, padding, resizing, distances, flattening, and layers that hold layers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ....eager import placing
from ....fluid.dygraph import nn
from ....fluid.dygraph.container import LayerList, ParameterList, Sequential
from ....fluid.dygraph.layers import Layer
from ....fluid.initializer import NormalInitializer
from ....fluid.layers.checks import padding_row
from ...dtypes import get_default_dtype
from ...tensor.manipulation import flatten
from .. import functional as F
from .base import FunctionLayer, layer_of

__all__ = [
    "AlphaDropout",
    "Bilinear",
    "CosineSimilarity",
    "Dropout",
    "Dropout2D",
    "Dropout3D",
    "Embedding",
    "Flatten",
    "Identity",
    "LayerDict",
    "LayerList",
    "Linear",
    "Pad1D",
    "Pad2D",
    "Pad3D",
    "PairwiseDistance",
    "ParameterList",
    "PixelShuffle",
    "Sequential",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2D",
    "UpsamplingNearest2D",
    "ZeroPad2D",
]


class Linear(nn.Linear):
    """`input @ weight + bias` over the last axis (`paddle.nn.Linear`).

    Args:
        in_features: the size of the input's last axis.
        out_features: that of the result.
        weight_attr: a ParamAttr, a name or an initializer of `weight`, [in_features, out_features].
        bias_attr: the same for `bias`, [out_features]; False: none.
        name: the prefix of the parameters' names.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(in_features, out_features, weight_attr, bias_attr, dtype=get_default_dtype())


class Bilinear(nn.BilinearTensorProduct):
    """x1 W_k x2 + bias_k by rows (`paddle.nn.Bilinear`).

    Args:
        in1_features, in2_features, out_features: sizes of the rows of the inputs and of the result.
        weight_attr: a ParamAttr, a name or an initializer of `weight`, [out, in1, in2].
        bias_attr: the same for `bias`, [1, out]; False: none.
        name: accepted.
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        attrs, sizes = (weight_attr, bias_attr), (in1_features, in2_features, out_features)
        super().__init__(*sizes, None, None, *attrs, get_default_dtype())

    def forward(self, x1: Any, x2: Any) -> Any:
        """`x1` is [N, in1_features], `x2` [N, in2_features], the result [N, out_features]."""
        return super().forward(x1, x2)


class Embedding(Layer):
    """Rows of a trainable table by their numbers (`paddle.nn.Embedding`).

    Args:
        num_embeddings: how many rows.
        embedding_dim: their size.
        padding_idx: a row that gives zeros and is not trained; negative ones count from the end.
        sparse: whether the gradient of the table holds only rows that were used.
        weight_attr: a ParamAttr, a name or an initializer of `weight`, [num_embeddings, embedding_dim]; drawn from the
            standard normal distribution by default.
        name: accepted.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        sparse: bool = False,
        weight_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        row = padding_row(padding_idx, num_embeddings, "Embedding")
        self._padding_idx, self._sparse = padding_idx, sparse
        self.weight = self.create_parameter(
            [num_embeddings, embedding_dim],
            weight_attr,
            get_default_dtype(),
            default_initializer=NormalInitializer(0.0, 1.0),
        )
        if padding_idx is not None and hasattr(self.weight, "array"):
            with placing.computing(self.weight.array):
                self.weight.array[row] = 0

    def forward(self, x: Any) -> Any:
        """`x` is int64 of any shape, the result [..., embedding_dim]."""
        return F.embedding(x, self.weight, self._padding_idx, self._sparse)

    def extra_repr(self) -> str:
        rows, columns = self.weight.shape
        return f"{rows}, {columns}"


class _Dropout(FunctionLayer):
    """Dropout whose `training` is the layer's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        p = self._arguments.setdefault("p", 0.5)
        if not 0 <= p <= 1:
            raise ValueError(f"p of {type(self).__name__} must be in [0, 1], got {p}")

    def forward(self, *inputs: Any) -> Any:
        """`x` is a float tensor; the result has its shape."""
        return type(self).function(*inputs, training=self.training, **self._arguments)


class Dropout(_Dropout):
    """Elements set to zero at random while training (`paddle.nn.Dropout`).

    `Dropout(p=0.5, axis=None, mode='upscale_in_train')`; see `functional.dropout`.
    """

    def __init__(
        self, p: float = 0.5, axis: Any = None, mode: str = "upscale_in_train", name: str | None = None
    ) -> None:
        super().__init__(p, axis, mode=mode)

    function = staticmethod(F.dropout)


class Dropout2D(_Dropout):
    """Whole channels of images set to zero at random while training (`paddle.nn.Dropout2D`)."""

    def __init__(self, p: float = 0.5, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__(p, data_format=data_format)

    function = staticmethod(F.dropout2d)


class Dropout3D(_Dropout):
    """Whole channels of volumes set to zero at random while training (`paddle.nn.Dropout3D`)."""

    def __init__(self, p: float = 0.5, data_format: str = "NCDHW", name: str | None = None) -> None:
        super().__init__(p, data_format=data_format)

    function = staticmethod(F.dropout3d)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean and variance of what SELU gives (`paddle.nn.AlphaDropout`)."""

    def __init__(self, p: float = 0.5, name: str | None = None) -> None:
        super().__init__(p)

    function = staticmethod(F.alpha_dropout)


class Identity(Layer):
    """Returns its input (`paddle.nn.Identity`); arguments are accepted."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Flatten(Layer):
    """Axes `start_axis` to `stop_axis` as one; all but the first by default (`paddle.nn.Flatten`)."""

    def __init__(self, start_axis: int = 1, stop_axis: int = -1) -> None:
        super().__init__()
        self.start_axis, self.stop_axis = start_axis, stop_axis

    def forward(self, input: Any) -> Any:
        return flatten(input, self.start_axis, self.stop_axis)


class _Pad(Layer):
    """Pads the spatial axes."""

    _dims: int
    _format: str

    def __init__(
        self,
        padding: Any,
        mode: str = "constant",
        value: float = 0.0,
        data_format: str | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        # A single number pads all sides of the spatial axes.
        self._pad = [padding] * (2 * self._dims) if isinstance(padding, int) else padding
        self._mode, self._value, self._data_format = mode, value, data_format or self._format

    def forward(self, x: Any) -> Any:
        return F.pad(x, self._pad, self._mode, self._value, self._data_format)


class Pad1D(_Pad):
    """Pads sequences (`paddle.nn.Pad1D`): `padding` is a number, or left and right."""

    _dims, _format = 1, "NCL"


class Pad2D(_Pad):
    """Pads images (`paddle.nn.Pad2D`): `padding` is a number, or left, right, top, bottom."""

    _dims, _format = 2, "NCHW"


class Pad3D(_Pad):
    """Pads volumes (`paddle.nn.Pad3D`): `padding` is a number, or left, right, top, bottom, front and
    back."""

    _dims, _format = 3, "NCDHW"


class ZeroPad2D(Pad2D):
    """Pads images with zeros (`paddle.nn.ZeroPad2D`); `padding` as for `Pad2D`."""

    def __init__(self, padding: Any, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__(padding, data_format=data_format)


class Upsample(FunctionLayer):
    """Images, sequences or volumes of another size (`paddle.nn.Upsample`); arguments as of `functional.interpolate`."""

    function = staticmethod(F.interpolate)


class UpsamplingNearest2D(Upsample):
    """Larger images, pixels repeated (`paddle.nn.UpsamplingNearest2D`)."""

    def __init__(
        self, size: Any = None, scale_factor: Any = None, data_format: str = "NCHW", name: str | None = None
    ) -> None:
        super().__init__(size, scale_factor, "nearest", data_format=data_format)


class UpsamplingBilinear2D(Upsample):
    """Larger images, interpolated with the corners kept (`paddle.nn.UpsamplingBilinear2D`)."""

    def __init__(
        self, size: Any = None, scale_factor: Any = None, data_format: str = "NCHW", name: str | None = None
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", align_corners=True, data_format=data_format)


CosineSimilarity = layer_of("CosineSimilarity", F.cosine_similarity, __name__, 2)
PairwiseDistance = layer_of("PairwiseDistance", F.pairwise_distance, __name__, 2)
PixelShuffle = layer_of("PixelShuffle", F.pixel_shuffle, __name__)
Unfold = layer_of("Unfold", F.unfold, __name__)


class LayerDict(Layer):
    """Layers by name (`paddle.nn.LayerDict`). It cannot be called.

    `sublayers`: a mapping, or (name, layer) pairs.
    """

    def __init__(self, sublayers: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        self.update(sublayers or {})

    def __getitem__(self, key: str) -> Any:
        return self._sub_layers[key]

    def __setitem__(self, key: str, layer: Any) -> None:
        self.add_sublayer(key, layer)

    def __delitem__(self, key: str) -> None:
        del self._sub_layers[key]

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sub_layers)

    def __contains__(self, key: object) -> bool:
        return key in self._sub_layers

    def keys(self) -> Any:
        """The names."""
        return self._sub_layers.keys()

    def values(self) -> Any:
        """The layers."""
        return self._sub_layers.values()

    def items(self) -> Any:
        """(name, layer) pairs."""
        return self._sub_layers.items()

    def pop(self, key: str) -> Any:
        """Take the layer of that name out; returns it."""
        return self._sub_layers.pop(key)

    def clear(self) -> None:
        """Take all layers out."""
        self._sub_layers.clear()

    def update(self, sublayers: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add layers, in place of those of the same names."""
        for name, layer in sublayers.items() if isinstance(sublayers, Mapping) else sublayers:
            self.add_sublayer(name, layer)
