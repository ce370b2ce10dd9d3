"""Attention, and encoders and decoders made of it (Vaswani et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....base.dtypes import VarType
from ....fluid.dygraph.container import LayerList
from ....fluid.dygraph.layers import Layer
from ....fluid.layers.checks import check_choice
from ...modes import in_mode_of
from ...tensor.creation import to_tensor
from ...tensor.linalg import matmul
from ...tensor.manipulation import reshape, transpose
from .. import functional as F
from .common import Dropout, Linear
from .norm import LayerNorm

__all__ = [
    "MultiHeadAttention",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


class MultiHeadAttention(Layer):
    """Attention of several heads (`paddle.nn.MultiHeadAttention`).

    Args:
        embed_dim: the size of queries and results, a multiple of `num_heads`.
        num_heads: how many heads.
        dropout: of the weights, while training.
        kdim, vdim: the sizes of keys and values; None: `embed_dim`.
        need_weights: whether the weights are returned too.
        weight_attr, bias_attr: for the four linear maps `q_proj`, `k_proj`, `v_proj`, `out_proj`.

    Raises:
        ValueError: `embed_dim` is no multiple of `num_heads`.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        kdim: int | None = None,
        vdim: int | None = None,
        need_weights: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim must be a multiple of num_heads = {num_heads}, got {embed_dim}")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.need_weights = dropout, need_weights
        self.q_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)
        self.k_proj = Linear(kdim or embed_dim, embed_dim, weight_attr, bias_attr)
        self.v_proj = Linear(vdim or embed_dim, embed_dim, weight_attr, bias_attr)
        self.out_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)

    def forward(self, query: Any, key: Any = None, value: Any = None, attn_mask: Any = None) -> Any:
        """Attend from the queries to the keys and values.

        Args:
            query: [N, T, embed_dim].
            key, value: [N, S, size]; by default the query, and the key.
            attn_mask: broadcasts to [N, heads, T, S]: bools, False where nothing is to be seen, or numbers that are
                added to the scores.

        Returns:
            [N, T, embed_dim]; with `need_weights` a pair of it and of the weights, [N, heads, T, S].
        """
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = (
            self._heads(self.q_proj(query)),
            self._heads(self.k_proj(key)),
            self._heads(self.v_proj(value)),
        )
        scores = matmul(q * self.head_dim**-0.5, k, transpose_y=True)
        if attn_mask is not None:
            scores = scores + _added(attn_mask, scores.dtype)
        weights = F.softmax(scores)
        if self.dropout:
            weights = F.dropout(weights, self.dropout, training=self.training)
        found = transpose(matmul(weights, v), [0, 2, 1, 3])
        out = self.out_proj(reshape(found, [0, 0, self.embed_dim]))
        return (out, weights) if self.need_weights else out

    def _heads(self, x: Any) -> Any:
        """[N, T, embed_dim] as [N, heads, T, head_dim]."""
        return transpose(reshape(x, [0, 0, self.num_heads, self.head_dim]), [0, 2, 1, 3])


def _added(mask: Any, dtype: VarType) -> Any:
    """An additive mask: bool masks become 0 and -1e9."""
    if mask.dtype == VarType.BOOL:
        return (mask.astype(dtype) - 1.0) * 1e9
    return mask if mask.dtype == dtype else mask.astype(dtype)


_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"relu": F.relu, "gelu": F.gelu}


class _Block(Layer):
    """The base of encoder and decoder layers: the feed-forward network and residual connections.

    Args:
        d_model: the size of inputs and results.
        nhead: how many heads.
        dim_feedforward: the size between the linear maps.
        dropout: of what is added to the input, while training.
        activation: between the linear maps: 'relu' or 'gelu'.
        attn_dropout: of the weights of attention; None: `dropout`.
        act_dropout: after the activation; None: `dropout`.
        normalize_before: normalise what goes into each part, instead of what comes out.
        weight_attr, bias_attr: for all linear maps, or a list with one for each part.
    """

    _parts: int

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
    ) -> None:
        super().__init__()
        self._config = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        check_choice(activation, "activation", tuple(_ACTIVATIONS), type(self).__name__)
        self.normalize_before, self.activation = normalize_before, _ACTIVATIONS[activation]
        seen = dropout if attn_dropout is None else attn_dropout
        weights, biases = (_each(attr, self._parts) for attr in (weight_attr, bias_attr))
        names = ("self_attn", "cross_attn")[: self._parts - 1]
        for name, weight, bias in zip(names, weights, biases, strict=False):
            attention = MultiHeadAttention(d_model, nhead, seen, weight_attr=weight, bias_attr=bias)
            self.add_sublayer(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, weights[-1], biases[-1])
        self.dropout = Dropout(dropout if act_dropout is None else act_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, weights[-1], biases[-1])
        for number in range(1, self._parts + 1):
            self.add_sublayer(f"norm{number}", LayerNorm(d_model))
        for number in range(1, self._parts + 1):
            self.add_sublayer(f"dropout{number}", Dropout(dropout))

    def _residual(self, number: int, x: Any, part: Callable[[Any], Any]) -> Any:
        """The residual connection `x + part(x)`, with layer normalisation number `number` before or after."""
        norm, drop = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        if self.normalize_before:
            return x + drop(part(norm(x)))
        return norm(x + drop(part(x)))

    def _maps(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _each(attr: Any, count: int) -> list[Any]:
    """An attribute for each part."""
    if not isinstance(attr, (list, tuple)):
        return [attr] * count
    if len(attr) != count:
        raise ValueError(f"weight_attr and bias_attr are one attribute or a list of {count}, got {len(attr)}")
    return list(attr)


class TransformerEncoderLayer(_Block):
    __doc__ = f"""Attention to the input itself, and two linear maps (`paddle.nn.TransformerEncoderLayer`).
    {_Block.__doc__}"""
    _parts = 2

    def forward(self, src: Any, src_mask: Any = None) -> Any:
        """`src` is [N, T, d_model], `src_mask` as the `attn_mask` of `MultiHeadAttention`; the result is like `src`."""
        src = self._residual(1, src, lambda x: self.self_attn(x, x, x, src_mask))
        return self._residual(2, src, self._maps)


class TransformerDecoderLayer(_Block):
    __doc__ = f"""Attention to the input itself, then to a memory, and two linear maps
    (`paddle.nn.TransformerDecoderLayer`). {_Block.__doc__}"""
    _parts = 3

    def forward(self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None) -> Any:
        """`tgt` is [N, T, d_model], `memory` [N, S, d_model], masks as the `attn_mask` of `MultiHeadAttention`; the
        result is like `tgt`."""
        tgt = self._residual(1, tgt, lambda x: self.self_attn(x, x, x, tgt_mask))
        tgt = self._residual(2, tgt, lambda x: self.cross_attn(x, memory, memory, memory_mask))
        return self._residual(3, tgt, self._maps)


class _Stack(Layer):
    def _fill(self, layer: Any, num_layers: int, norm: Any) -> None:
        more = [type(layer)(**layer._config) for _ in range(num_layers - 1)]
        self.layers = LayerList([layer, *more])
        self.num_layers, self.norm = num_layers, norm


class TransformerEncoder(_Stack):
    """Encoder layers one on another (`paddle.nn.TransformerEncoder`).

    Args:
        encoder_layer: the first; the others are made like it, with parameters of their own.
        num_layers: how many.
        norm: a layer for the result.
    """

    def __init__(self, encoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self._fill(encoder_layer, num_layers, norm)

    def forward(self, src: Any, src_mask: Any = None) -> Any:
        """As `TransformerEncoderLayer.forward`."""
        for layer in self.layers:
            src = layer(src, src_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(_Stack):
    """Decoder layers one on another (`paddle.nn.TransformerDecoder`).

    Args:
        decoder_layer: the first; the others are made like it, with parameters of their own.
        num_layers: how many.
        norm: a layer for the result.
    """

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self._fill(decoder_layer, num_layers, norm)

    def forward(self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None) -> Any:
        """As `TransformerDecoderLayer.forward`."""
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Layer):
    """An encoder and a decoder, each with a normalisation at its end (`paddle.nn.Transformer`).

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout, normalize_before, weight_attr,
            bias_attr: as for `TransformerEncoderLayer`.
        num_encoder_layers, num_decoder_layers: how many.
        custom_encoder, custom_decoder: used instead.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
    ) -> None:
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout)
        given: tuple[Any, ...] = (*sizes, normalize_before, weight_attr, bias_attr)
        if custom_encoder is None:
            custom_encoder = TransformerEncoder(
                TransformerEncoderLayer(*given), num_encoder_layers, LayerNorm(d_model)
            )
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(
                TransformerDecoderLayer(*given), num_decoder_layers, LayerNorm(d_model)
            )
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self.d_model, self.nhead = d_model, nhead

    def forward(
        self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None, memory_mask: Any = None
    ) -> Any:
        """Decode `tgt` [N, T, d_model] with attention to the encoded `src` [N, S, d_model]."""
        return self.decoder(tgt, self.encoder(src, src_mask), tgt_mask, memory_mask)

    def generate_square_subsequent_mask(self, length: int) -> Any:
        """A mask [length, length] that hides what comes later: minus infinity there, and zeros."""
        with in_mode_of():
            return to_tensor(np.triu(np.full((length, length), -np.inf, "float32"), 1))
