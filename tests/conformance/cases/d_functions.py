"""Which fluid.layers functions work in dygraph, with gradients and names."""

from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers
from paddle.fluid.dygraph import to_variable
from case_parts import leaf, put, value


L = layers


def run_dygraph(rng):
    out = OrderedDict()
    a = lambda *s: leaf(rng.uniform(0.1, 0.9, s))
    i = lambda hi, *s: to_variable(rng.randint(0, hi, s).astype('int64'))
    x = a(3, 4)
    y = a(3, 4)
    img = a(2, 3, 6, 6)
    label = i(4, 3, 1)
    unary = 'abs acos asin atan brelu ceil cos elu erf exp floor gelu hard_shrink hard_sigmoid hard_swish leaky_relu log logsigmoid reciprocal relu relu6 round rsqrt selu sigmoid sign sin soft_relu softplus softshrink softsign sqrt square stanh swish tanh tanh_shrink thresholded_relu softmax log_softmax mean zeros_like has_inf has_nan isfinite size rank shape sum is_empty cumsum '.split()
    tests = [(u, (lambda u: lambda: getattr(L, u)(x))(u)) for u in unary if hasattr(L, u)]
    for u in 'elementwise_add elementwise_sub elementwise_mul elementwise_div elementwise_max elementwise_min elementwise_pow less_than equal greater_equal not_equal mse_loss square_error_cost cos_sim'.split():
        tests.append((u, (lambda u: lambda: getattr(L, u)(x, y))(u)))
    for u in 'reduce_sum reduce_mean reduce_max reduce_min reduce_prod'.split():
        tests.append((u, (lambda u: lambda: getattr(L, u)(x, dim=1, keep_dim=True))(u)))
    tests += [
        ('fc', lambda: L.fc(x, 2)),
        ('batch_norm', lambda: L.batch_norm(img)),
        ('embedding', lambda: L.embedding(i(5, 3, 1), [5, 2])),
        ('pool2d', lambda: L.pool2d(img, 2, 'max', 2)),
        ('adaptive_pool2d', lambda: L.adaptive_pool2d(img, 3, 'avg')),
        ('fill_constant', lambda: L.fill_constant([2], 'float32', 3.0)),
        ('zeros', lambda: L.zeros([2, 2], 'float32')),
        ('eye', lambda: L.eye(3, 2)),
        ('range', lambda: L.range(0, 5, 2, 'int64')),
        ('linspace', lambda: L.linspace(0.0, 1.0, 5, 'float32')),
        ('fill_bsl', lambda: L.fill_constant_batch_size_like(x, [-1, 2], 'float32', 2.0)),
        ('assign', lambda: L.assign(x)),
        ('assign_np', lambda: L.assign(np.array([1, 2], 'int32'))),
        ('create_tensor', lambda: L.assign(x, L.create_tensor('float32'))),
        ('cast', lambda: L.cast(x, 'int32')),
        ('concat', lambda: L.concat([x, y], 1)),
        ('split', lambda: tuple(L.split(x, [1, 3], 1))),
        ('stack', lambda: L.stack([x, y])),
        ('unstack', lambda: tuple(L.unstack(x, 0))),
        ('unbind', lambda: tuple(L.unbind(x, 0))),
        ('squeeze', lambda: L.squeeze(a(3, 1, 2), [1])),
        ('unsqueeze', lambda: L.unsqueeze(x, [0])),
        ('reshape', lambda: L.reshape(x, [2, -1])),
        ('reshape_act', lambda: L.reshape(x, [2, -1], act='relu')),
        ('flatten', lambda: L.flatten(img, 2)),
        ('transpose', lambda: L.transpose(x, [1, 0])),
        ('expand', lambda: L.expand(x, [1, 2])),
        ('expand_as', lambda: L.expand_as(x, a(6, 4))),
        ('gather', lambda: L.gather(x, i(3, 2))),
        ('gather_nd', lambda: L.gather_nd(x, i(3, 2, 1))),
        ('scatter', lambda: L.scatter(x, to_variable(np.array([2, 0], 'int64')), a(2, 4))),
        ('scatter_nd_add', lambda: L.scatter_nd_add(x, i(3, 2, 1), a(2, 4))),
        ('slice', lambda: L.slice(x, [0], [1], [3])),
        ('strided_slice', lambda: L.strided_slice(x, [1], [0], [4], [2])),
        ('crop_tensor', lambda: L.crop_tensor(x, [2, 2], [1, 1])),
        ('pad', lambda: L.pad(x, [1, 0, 0, 1], 2.0)),
        ('pad2d', lambda: L.pad2d(img, [1, 1, 0, 0], 'reflect')),
        ('pad_cl', lambda: L.pad_constant_like(a(4, 5), x)),
        ('topk', lambda: L.topk(x, 2)),
        ('argsort', lambda: L.argsort(x, 1, True)),
        ('argmax', lambda: L.argmax(x, 1)),
        ('argmin', lambda: L.argmin(x)),
        ('unique', lambda: L.unique(to_variable(np.array([3, 1, 3], 'int64')))),
        ('where', lambda: L.where(x > 0.5)),
        ('unique_c', lambda: L.unique_with_counts(to_variable(np.array([3, 1, 3], 'int64')))),
        ('diag', lambda: L.diag(np.array([1.0, 2.0], 'float32'))),
        ('reverse', lambda: L.reverse(x, 0)),
        ('multiplex', lambda: L.multiplex([x, y], to_variable(np.array([[0], [1], [0]], 'int32')))),
        ('shard', lambda: L.shard_index(i(20, 3, 1), 20, 2, 0)),
        ('one_hot', lambda: L.one_hot(label, 4)),
        ('f_one_hot', lambda: fluid.one_hot(i(4, 3), 4)),
        ('f_embedding', lambda: fluid.embedding(i(5, 3), [5, 2])),
        ('label_smooth', lambda: L.label_smooth(L.one_hot(label, 4), epsilon=0.1)),
        ('cross_entropy', lambda: L.cross_entropy(L.softmax(x), label)),
        ('ce_soft', lambda: L.cross_entropy(L.softmax(x), L.softmax(y), soft_label=True)),
        ('swce', lambda: L.softmax_with_cross_entropy(x, label, return_softmax=True)),
        ('sce', lambda: L.sigmoid_cross_entropy_with_logits(x, L.floor(y))),
        ('bce', lambda: L.bce_loss(x, y) if hasattr(L, 'bce_loss') else L.log_loss(a(3, 1), a(3, 1))),
        ('log_loss', lambda: L.log_loss(a(3, 1), a(3, 1))),
        ('huber', lambda: L.huber_loss(x, y, 0.2)),
        ('smooth_l1', lambda: L.smooth_l1(x, y)),
        ('kldiv', lambda: L.kldiv_loss(x, y, 'mean')),
        ('rank_loss', lambda: L.rank_loss(a(3, 1), a(3, 1), a(3, 1))),
        ('margin', lambda: L.margin_rank_loss(a(3, 1), a(3, 1), a(3, 1))),
        ('bpr', lambda: L.bpr_loss(L.softmax(x), label)),
        ('npair', lambda: L.npair_loss(x, y, to_variable(np.array([1.0, 2.0, 3.0], 'float32')))),
        ('teacher', lambda: L.teacher_student_sigmoid_loss(a(3, 1), a(3, 1))),
        ('accuracy', lambda: L.accuracy(L.softmax(x), label)),
        ('mul', lambda: L.mul(x, a(4, 2))),
        ('matmul', lambda: L.matmul(x, y, transpose_y=True, alpha=0.5)),
        ('bmm', lambda: L.matmul(a(2, 3, 4), a(2, 4, 5))),
        ('scale', lambda: L.scale(x, 2.0, 1.0, False, act='relu')),
        ('sums', lambda: L.sums([x, y])),
        ('sum_l', lambda: L.sum([x, y])),
        ('clip', lambda: L.clip(x, 0.2, 0.6)),
        ('pow', lambda: L.pow(x, 2.5)),
        ('pow_t', lambda: L.pow(x, L.fill_constant([1], 'float32', 2.0))),
        ('increment', lambda: L.increment(L.zeros([1], 'float32'))),
        ('group_norm', lambda: L.group_norm(a(2, 4, 3, 3), 2)),
        ('instance_norm', lambda: L.instance_norm(img)),
        ('lrn', lambda: L.lrn(img)),
        ('prelu', lambda: L.prelu(x, 'all')),
        ('resize', lambda: L.resize_bilinear(img, [3, 3])),
        ('resize_n', lambda: L.resize_nearest(img, scale=2.0)),
        ('image_resize', lambda: L.image_resize(img, [4, 4], resample='BICUBIC')),
        ('pixel_shuffle', lambda: L.pixel_shuffle(a(1, 4, 2, 2), 2)),
        ('grid', lambda: L.affine_grid(a(1, 2, 3), [1, 1, 2, 2])),
        ('unfold', lambda: L.unfold(img, [2, 2])),
        ('shuffle_channel', lambda: L.shuffle_channel(a(1, 4, 2, 2), 2)),
        ('space', lambda: L.space_to_depth(a(1, 4, 2, 2), 2)),
        ('temporal', lambda: L.temporal_shift(a(4, 4, 2, 2), 2, 0.25)),
        ('spectral', lambda: L.spectral_norm(x)),
        ('affine_channel', lambda: L.affine_channel(img, a(3), a(3))),
        ('bilinear', lambda: L.bilinear_tensor_product(x, y, 2)),
        ('dropout', lambda: L.dropout(x, 0.5, seed=3)),
        ('mean_iou', lambda: L.mean_iou(i(3, 4), i(3, 4), 3)[0]),
        ('logical_and', lambda: L.logical_and(x > 0.5, y > 0.5)),
        ('logical_xor', lambda: L.logical_xor(x > 0.5, y > 0.5)),
        ('reduce_all', lambda: L.reduce_all(x > 0.5)),
        ('reduce_any', lambda: L.reduce_any(x > 0.5, 1)),
        ('gru_unit', lambda: L.gru_unit(a(2, 9), a(2, 3), 9)),
        ('lstm_unit', lambda: L.lstm_unit(x, a(3, 2), a(3, 2))),
        ('nce', lambda: L.nce(x, label, 4)),
        ('hsig', lambda: L.hsigmoid(x, label, 4)),
        ('global_step', lambda: L.create_global_var([1], 0.0, 'float32')),
        ('param', lambda: L.create_parameter([2], 'float32', is_bias=True)),
        ('conv2dt', lambda: L.conv2d_transpose(img, 2, filter_size=3)),
        ('triu', lambda: L.triu(x) if hasattr(L, 'triu') else None),
        ('expand_dims', lambda: L.unsqueeze(x, 1)),
        ('fc_np', lambda: L.relu(np.ones(3, 'float32'))),
        ('noam', lambda: L.noam_decay(4, 2)()),
        ('exp_decay', lambda: L.exponential_decay(0.1, 2, 0.5)()),
        ('piece', lambda: L.piecewise_decay([1, 2], [0.1, 0.2, 0.3])()),
        ('cosine', lambda: L.cosine_decay(0.1, 2, 3)()),
        ('warm', lambda: L.linear_lr_warmup(0.1, 2, 0.0, 0.1)()),
        ('poly', lambda: L.polynomial_decay(0.1, 3)()),
        ('inverse', lambda: L.inverse_time_decay(0.1, 2, 0.5)()),
        ('natural', lambda: L.natural_exp_decay(0.1, 2, 0.5)()),
        ('nets_img', lambda: fluid.nets.simple_img_conv_pool(img, 2, 3, 2, 2)),
        ('nets_glu', lambda: fluid.nets.glu(x)),
        ('elementwise_act', lambda: L.elementwise_sub(x, y, act='tanh')),
        ('elementwise_bad', lambda: L.elementwise_add(x, a(5))),
        ('concat_bad', lambda: L.concat([x, a(2, 2)])),
        ('reshape_bad', lambda: L.reshape(x, [5, 5])),
        ('softmax_axis', lambda: L.softmax(x, axis=0)),
    ]
    for label_, call in tests:
        fresh = label_ in (
            'fc',
            'conv2d',
            'embedding',
            'f_embedding',
            'prelu',
            'row_conv',
            'bilinear',
            'spectral',
            'nce',
            'hsig',
            'lstm_unit',
            'gru_unit',
            'conv2dt',
            'nets_img',
        )
        if fresh:
            r = OrderedDict()
            got = put(r, label_, call)
            if label_ in r and isinstance(r[label_], str):
                out[label_] = r[label_]
            continue
        got = put(out, label_, call)
        first = got[0] if isinstance(got, tuple) else got
        if hasattr(first, 'stop_gradient') and not first.stop_gradient and 'float' in str(value(first).dtype):
            for v in (x, y, img):
                v.clear_gradient()

            def back():
                L.reduce_sum(L.square(first)).backward()
                return [x, y][0].gradient() if x.gradient() is not None else None

            put(out, label_ + '_grad', back)
    return out
