"""Attention and transformers of `paddle.nn` against NumPy."""

import numpy as np
import pytest
from scipy import special

import fluidlite.paddle as paddle
from fluidlite.paddle import nn

R = np.random.RandomState(3)
QUERY, MEMORY = R.randn(2, 3, 8).astype("float32"), R.randn(2, 5, 8).astype("float32")


def linear(layer, x):
    return x @ layer.weight.numpy().astype("float64") + layer.bias.numpy()


def attention(layer, query, memory, added=0.0):
    """Results and weights of two heads."""

    def heads(x):
        return x.reshape(2, -1, 2, 4).transpose(0, 2, 1, 3)

    q, k, v = (
        heads(linear(layer.q_proj, query)),
        heads(linear(layer.k_proj, memory)),
        heads(linear(layer.v_proj, memory)),
    )
    weights = special.softmax(q @ k.transpose(0, 1, 3, 2) / 2 + added, -1)
    found = (weights @ v).transpose(0, 2, 1, 3).reshape(2, -1, 8)
    return linear(layer.out_proj, found), weights


def normal(layer, x):
    scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return scaled * layer.weight.numpy() + layer.bias.numpy()


def close(got, expected):
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("mask", [None, R.rand(2, 1, 3, 5) > 0.4, R.randn(3, 5).astype("float32")], ids=str)
def test_attention(mask):
    layer = nn.MultiHeadAttention(8, 2, need_weights=True)
    added = 0.0 if mask is None else np.where(mask, 0, -1e9) if mask.dtype == bool else mask
    given = None if mask is None else paddle.to_tensor(mask)
    out, weights = layer(paddle.to_tensor(QUERY), paddle.to_tensor(MEMORY), None, given)
    expected, shares = attention(layer, QUERY, MEMORY, added)
    close(out, expected)
    close(weights, shares)


@pytest.mark.parametrize("before", [False, True])
def test_encoder_and_decoder_layers(before):
    encoder = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", normalize_before=before)
    decoder = nn.TransformerDecoderLayer(8, 2, 16, normalize_before=before)
    for layer in (encoder, decoder):
        layer.eval()
    later = np.triu(np.full((3, 3), -np.inf), 1)

    def residual(norm, x, part):
        return x + part(normal(norm, x)) if before else normal(norm, x + part(x))

    x = residual(encoder.norm1, MEMORY, lambda x: attention(encoder.self_attn, x, x)[0])
    inner = linear(encoder.linear1, normal(encoder.norm2, x) if before else x)
    maps = linear(encoder.linear2, inner * special.ndtr(inner))
    memory = x + maps if before else normal(encoder.norm2, x + maps)
    close(encoder(paddle.to_tensor(MEMORY)), memory)

    x = residual(decoder.norm1, QUERY, lambda x: attention(decoder.self_attn, x, x, later)[0])
    x = residual(decoder.norm2, x, lambda x: attention(decoder.cross_attn, x, memory)[0])
    x = residual(
        decoder.norm3, x, lambda x: linear(decoder.linear2, np.maximum(linear(decoder.linear1, x), 0))
    )
    given = (
        paddle.to_tensor(QUERY),
        paddle.to_tensor(memory.astype("float32")),
        paddle.to_tensor(later.astype("float32")),
    )
    close(decoder(*given), x)


def test_transformer():
    net = nn.Transformer(8, 2, 2, 1, 16, dropout=0.2)
    mask = net.generate_square_subsequent_mask(3)
    assert mask.numpy()[0].tolist() == [0, -np.inf, -np.inf]
    out = net(paddle.to_tensor(MEMORY), paddle.to_tensor(QUERY), tgt_mask=mask)
    assert out.shape == [2, 3, 8]
    out.sum().backward()
    assert all(parameter.gradient() is not None for parameter in net.parameters())
    net.eval()
    changed = QUERY.copy()
    changed[:, 2] += 1
    outs = [
        net(paddle.to_tensor(MEMORY), paddle.to_tensor(one), tgt_mask=mask).numpy()
        for one in (QUERY, changed)
    ]
    np.testing.assert_array_equal(outs[0][:, :2], outs[1][:, :2])
    assert (outs[0][:, 2] != outs[1][:, 2]).any()
    names = list(net.state_dict())
    assert names[0] == "encoder.layers.0.self_attn.q_proj.weight" and names[-1] == "decoder.norm.bias"
    first, second = net.encoder.layers
    assert (first.linear1.weight.numpy() != second.linear1.weight.numpy()).any()


def test_errors():
    with pytest.raises(ValueError, match="multiple of num_heads = 3"):
        nn.MultiHeadAttention(8, 3)
    with pytest.raises(ValueError, match="'relu', 'gelu'"):
        nn.TransformerEncoderLayer(8, 2, 16, activation="tanh")
    with pytest.raises(ValueError, match="list of 3, got 2"):
        nn.TransformerDecoderLayer(8, 2, 16, bias_attr=[None, False])
