"""What networks are made of: activations, convolutions, pooling, normalisation, embeddings, dropout."""

from . import (  # noqa: F401
    activation,
    batch_norm,
    conv,
    conv_double_grad,
    dropout,
    embedding,
    fc,
    inplace_abn,
    lrn,
    norm,
    norm_double_grad,
    parametric,
    patches,
    pool,
    pool_index,
    position_encoding,
    softmax,
    spectral_norm,
    tree_conv,
    unpool,
)
