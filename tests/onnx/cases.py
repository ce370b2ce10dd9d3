"""Programs of one or a few operators: for each the feeds of two runs, of other sizes where these are open."""

import numpy as np

import fluidlite as fluid

L = fluid.layers
CASES = {}


def case(*feeds):
    """Register a program: `feeds` are (name, shape, dtype, lod_level or None), its function makes the fetches."""

    def add(function):
        CASES[function.__name__] = (feeds, function)
        return function

    return add


def simple(name, function, shape=(None, 6), dtype="float32"):
    CASES[name] = ((("x", shape, dtype, 0),), function)


def pair(name, function, x=(None, 3, 4), y=(3, 4), dtype="float32"):
    CASES[name] = ((("x", x, dtype, 0), ("y", y, dtype, 0)), function)


def operator(kind, slot="Out", **attrs):
    """A layer that is just an operator of X."""

    def layer(x):
        block = fluid.default_main_program().current_block()
        out = block.create_var(dtype=x.dtype, shape=None, name=fluid.unique_name.generate(kind))
        block.append_op(type=kind, inputs={"X": x}, outputs={slot: out}, attrs=attrs)
        return out

    return layer


for _name in (
    "relu sigmoid tanh exp abs ceil floor round sin cos tan asin acos atan sinh cosh reciprocal sign erf softplus "
    "softsign logsigmoid tanh_shrink square leaky_relu elu selu hard_sigmoid thresholded_relu softmax gelu swish stanh "
    "hard_swish relu6 brelu mean"
).split():
    simple(_name, getattr(L, _name, None) or operator(_name))
simple("softmax_of_axis_1", lambda x: L.softmax(x, axis=1), (None, 3, 4))
simple("gelu_by_tanh", lambda x: L.gelu(x, approximate=True))
simple("pow", lambda x: L.pow(L.abs(x), 1.7))
simple("sqrt_log_rsqrt", lambda x: [L.sqrt(L.abs(x)), L.log(L.abs(x) + 0.1), L.rsqrt(L.abs(x) + 0.1)])
simple("clip", lambda x: L.clip(x, -0.3, 0.4))
simple("scale", lambda x: [L.scale(x, 2.0, 0.5), L.scale(x, 2.0, 0.5, bias_after_scale=False), L.scale(x)])
simple(
    "casts",
    lambda x: [L.cast(x * 4, "int32"), L.cast(x > 0, "float32"), L.cast(x, "float64"), L.cast(x, "bool")],
)
simple("assign_increment", lambda x: [L.assign(x), L.increment(L.mean(x), 2.5)])
simple("sum_of_three", lambda x: [L.sums([x, x * 2, L.relu(x)]), L.sum([x])])
simple(
    "dropouts", lambda x: [L.dropout(x, 0.3), L.dropout(x, 0.3, dropout_implementation="upscale_in_train")]
)

for _name in ("add", "sub", "mul", "div", "max", "min"):
    pair(f"elementwise_{_name}", getattr(L, f"elementwise_{_name}"))
pair("elementwise_pow", lambda x, y: L.elementwise_pow(L.abs(x), y))
pair(
    "elementwise_of_axis_1", lambda x, y: L.elementwise_add(x, y, axis=1, act="relu"), (None, 3, 4, 2), (3, 4)
)
pair("elementwise_of_axis_0", lambda x, y: L.elementwise_mul(x, y, axis=0), (5, 3), (5,))
pair("elementwise_mod", lambda x, y: L.elementwise_mod(x - 4, y), (None, 7), (7,), "int64")
pair("elementwise_floordiv", lambda x, y: L.elementwise_floordiv(x - 4, y), (None, 7), (7,), "int64")
for _name in ("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal"):
    pair(_name, getattr(L, _name), (None, 7), (1, 7), "int64")
pair(
    "logic",
    lambda x, y: [f(x > 0, y > 0) for f in (L.logical_and, L.logical_or, L.logical_xor)],
    y=(None, 3, 4),
)
simple("logical_not", lambda x: L.logical_not(x > 0))
pair("matmul", lambda x, y: L.matmul(x, y, transpose_y=True, alpha=0.5), (None, 3, 4), (None, 5, 4))
pair("matmul_of_x_transposed", lambda x, y: L.matmul(x, y, transpose_x=True), (4, 3), (4, 5))
pair("matmul_of_vectors", lambda x, y: L.matmul(x, y), (4,), (4,))
pair("mul", lambda x, y: L.mul(x, y, 1), (None, 2, 3), (6, 5))
pair("mul_of_tensors", lambda x, y: L.mul(x, y, 2, 2), (None, 2, 6), (2, 3, 4, 5))
simple("fc", lambda x: L.fc(x, 3, num_flatten_dims=2, act="tanh"), (None, None, 4))

for _name in ("sum", "mean", "max", "min", "prod"):
    _f = getattr(L, f"reduce_{_name}")
    simple(
        f"reduce_{_name}",
        lambda x, f=_f: [f(x), f(x, 1), f(x, [0, -1], True), f(x, keep_dim=True)],
        (None, 3, 4),
    )
simple("reduce_all_any", lambda x: [L.reduce_all(x > 0, 1), L.reduce_any(x > 0)], (None, 3))

simple("reshape", lambda x: [L.reshape(x, [0, -1]), L.reshape(x, [-1, 2, 6])], (None, 3, 4))
simple(
    "reshape_to_shape",
    lambda x: L.reshape(x, L.concat([L.slice(L.shape(x), [0], [0], [1]), L.fill_constant([1], "int32", -1)])),
    (None, 3, 4),
)
simple("reshape_by_tensors", lambda x: L.reshape(x, [L.slice(L.shape(x), [0], [0], [1]), 12]), (None, 3, 4))
simple("transpose_flatten", lambda x: [L.transpose(x, [2, 0, 1]), L.flatten(x, 2)], (None, 3, 4))
simple(
    "squeeze_unsqueeze",
    lambda x: [L.squeeze(x, [1]), L.squeeze(x, []), L.unsqueeze(x, [0, -1])],
    (None, 1, 4, 1),
)
simple(
    "concat_stack", lambda x: [L.concat([x, x * 2], 1), L.stack([x, -x], 1), L.stack([x, x], -1)], (None, 4)
)
simple(
    "split_unstack", lambda x: [*L.split(x, 2, 2), *L.split(x, [1, -1], 1), *L.unstack(x, 1)], (None, 3, 4)
)
simple("slices", lambda x: [x[0], x[:, 1:], x[:, -1], L.slice(x, [1, 2], [0, -3], [2, 10])], (None, 3, 4))
simple("strided_slice", lambda x: L.strided_slice(x, [1, 2], [0, 3], [3, 0], [2, -1]), (None, 3, 4))
simple("expand_pad", lambda x: [L.expand(x, [2, 3]), L.pad(x, [0, 1, 2, 0], 0.5)])
pair("expand_as", L.expand_as, (3, 1), (6, 4))
simple(
    "pad2d",
    lambda x: [L.pad2d(x, [1, 0, 2, 1], m, 0.5) for m in ("constant", "reflect", "edge")],
    (None, 2, 4, 5),
)
simple(
    "shapes",
    lambda x: [L.shape(x), L.fill_constant_batch_size_like(x, [3, -1], "int64", 7, output_dim_idx=1)],
)
simple(
    "filled", lambda x: [L.fill_constant([2, 3], "float32", 1.5) + L.mean(x), L.zeros_like(x), L.ones_like(x)]
)
simple("filled_to_shape", lambda x: L.fill_constant(L.shape(x), "float32", 2.0))
simple(
    "assigned_eye_diag",
    lambda x: [
        x + L.assign(np.arange(6, dtype="float32")),
        L.matmul(x, L.eye(6)),
        L.matmul(x, L.diag(np.arange(6, dtype="float32"))),
    ],
)
simple(
    "ranges",
    lambda x: [L.range(0, 5, 2, "int64"), L.cumsum(x, 1), L.cumsum(x, 0, True, True), L.reverse(x, [0, 1])],
)
simple(
    "order",
    lambda x: [
        *L.topk(x, 3),
        *L.argsort(x, 0),
        *L.argsort(x, 1, descending=True),
        L.argmax(x, 1),
        L.argmin(x),
    ],
)
simple("where", lambda x: [L.where(x > 0), L.cond(L.mean(x) > 9, lambda: x, lambda: -x)])


@case(("x", (None, 3), "float32", 0), ("y", (None, 3), "float32", 0))
def where_of_two(x, y):
    out = fluid.default_main_program().current_block().create_var(dtype=x.dtype, name="chosen")
    x.block.append_op(type="where", inputs={"Condition": x > y, "X": x, "Y": y}, outputs={"Out": out})
    return out


@case(("ids", (None, 1), "int64", 0))
def tables(ids):
    return [
        L.embedding(ids, [7, 3]),
        L.embedding(ids, [7, 3], padding_idx=2),
        fluid.embedding(ids, [7, 3]),
        L.one_hot(ids, 7),
        fluid.one_hot(ids, 7),
    ]


@case(("x", (7, 3), "float32", 0), ("ids", (None, 1), "int64", 0), ("y", (None, 3), "float32", 0))
def gathered(x, ids, y):
    flat = L.reshape(ids, [-1])
    written = L.scatter(x, L.argsort(L.range(0, 7, 1, "int64"))[1], x * 2)
    return [L.gather(x, flat), L.gather_nd(x, ids), written, y + L.gather(x, flat)]


IMAGE = (None, 4, 7, 6)
simple(
    "conv2d",
    lambda x: [
        L.conv2d(x, 6, 3, 2, 1, act="relu"),
        L.conv2d(x, 4, 3, padding="SAME", bias_attr=False),
        L.conv2d(x, 4, (3, 2), padding=[1, 0, 2, 1], dilation=2, groups=2),
        L.conv2d(x, 8, 3, groups=4, use_cudnn=False),
    ],
    IMAGE,
)
simple("conv3d", lambda x: L.conv3d(x, 2, 3, 1, 1), (None, 2, 4, 5, 3))
simple(
    "conv2d_transpose",
    lambda x: [
        L.conv2d_transpose(x, 3, filter_size=3, stride=2, padding=1),
        L.conv2d_transpose(x, 4, output_size=[14, 12], filter_size=3, stride=2, padding=1, groups=2),
        L.conv2d_transpose(x, 4, filter_size=3, groups=4, use_cudnn=False),
    ],
    IMAGE,
)
simple(
    "pools",
    lambda x: [
        L.pool2d(x, 3, "max", 2, 1),
        L.pool2d(x, 3, "avg", 2, 1),
        L.pool2d(x, 2, "avg", 2, 1, exclusive=False),
        L.pool2d(x, 3, "max", 2, ceil_mode=True),
        L.pool2d(x, pool_type="avg", global_pooling=True),
        L.adaptive_pool2d(x, [7, 3], "avg"),
        L.adaptive_pool2d(x, 1, "max"),
    ],
    IMAGE,
)
simple("pool3d", lambda x: L.pool3d(x, 2, "avg", 2), (None, 2, 4, 6, 4))
simple(
    "resized",
    lambda x: [
        L.resize_bilinear(x, [5, 9]),
        L.resize_bilinear(x, [5, 9], align_corners=False),
        L.resize_bilinear(x, scale=2.0, align_corners=False, align_mode=0),
        L.resize_nearest(x, [5, 9]),
        L.resize_nearest(x, [5, 9], align_corners=False),
    ],
    IMAGE,
)
simple("shuffled_pixels", lambda x: [L.pixel_shuffle(x, 2), L.maxout(x, 2)], IMAGE)
simple(
    "normed",
    lambda x: [
        L.batch_norm(x),
        L.group_norm(x, 2),
        L.instance_norm(x),
        L.layer_norm(x),
        L.lrn(x),
        L.l2_normalize(x, 1),
        L.batch_norm(x, act="relu", use_global_stats=True),
    ],
    IMAGE,
)
simple(
    "layer_norm",
    lambda x: [L.layer_norm(x, begin_norm_axis=2), L.layer_norm(x, False, False, 1)],
    (None, 3, 4),
)
simple("batch_norm_of_rows", lambda x: L.batch_norm(x))
simple("prelus", lambda x: [L.prelu(x, mode) for mode in ("all", "channel", "element")], IMAGE)
simple(
    "affine_channel",
    lambda x: L.affine_channel(x, L.create_parameter([4], "float32"), L.create_parameter([4], "float32")),
    IMAGE,
)


@case(("x", (None, 8, 4, 4), "float32", 0), ("image", (None, 3, 16, 16), "float32", 0))
def detector(x, image):
    boxes, variances = L.prior_box(x, image, [4.0], [8.0], [1.0, 2.0], flip=True)
    count = int(boxes.shape[2])
    place = L.reshape(L.transpose(L.conv2d(x, 4 * count, 1), [0, 2, 3, 1]), [0, -1, 4])
    scores = L.reshape(L.transpose(L.conv2d(x, 3 * count, 1), [0, 2, 3, 1]), [0, -1, 3])
    boxes, variances = L.reshape(boxes, [-1, 4]), L.reshape(variances, [-1, 4])
    return [
        L.detection_output(place, scores, boxes, variances, nms_top_k=20, keep_top_k=5),
        L.detection_output(place, scores, boxes, variances, nms_top_k=-1, keep_top_k=-1, background_label=-1),
    ]


@case(("x", (None, 5), "float32", 1))
def pooled_sequences(x):
    return [L.sequence_pool(x, kind) for kind in ("sum", "average", "sqrt", "max", "first", "last")]


@case(("x", (None, 5), "float32", 1), ("y", (None, 5), "float32", 0))
def sequences(x, y):
    padded, lengths = L.sequence_pad(x, L.assign(np.float32([0.5])))
    weights = L.sequence_softmax(L.fc(x, 1, bias_attr=False))
    return [
        L.sequence_conv(x, 3, 3),
        L.sequence_reverse(x),
        weights,
        L.relu(x) * 2,
        padded,
        lengths,
        L.sequence_unpad(padded, lengths),
        L.sequence_expand(y, x),
        L.sequence_expand_as(y, x),
    ]


@case(("x", (None, 8), "float32", 1), ("h", (None, 2), "float32", 0))
def lstm_gru(x, h):
    found = [L.dynamic_lstm(x, 8, h, h * 2, is_reverse=back, use_peepholes=back)[0] for back in (False, True)]
    wide = L.fc(x, 6)
    return found + [
        L.dynamic_gru(wide, 2, is_reverse=back, origin_mode=back, h_0=h if back else None) for back in (0, 1)
    ]


@case(("x", (None, 4), "float32", 1))
def tagged(x):
    L.create_parameter([6, 4], "float32", "moves")
    return L.crf_decoding(x, fluid.ParamAttr("moves"))


@case(("x", (None, 4), "float32", 1))
def spelled(x):
    return [L.ctc_greedy_decoder(x, 3), L.im2sequence(L.reshape(x, [-1, 1, 2, 2]), [1, 2], [1, 1])]


@case(("x", (None, 4), "float32", 1))
def dynamic_rnn(x):
    rnn = L.DynamicRNN()
    with rnn.block():
        now = rnn.step_input(x)
        memory = rnn.memory(shape=[3])
        after = L.fc([now, memory], 3, act="tanh")
        rnn.update_memory(memory, after)
        rnn.output(after)
    return [rnn(), L.sequence_last_step(rnn())]


@case(("x", (None, 4), "float32", 1), ("h", (None, 3), "float32", 0))
def dynamic_rnn_from_states(x, h):
    rnn = L.DynamicRNN()
    with rnn.block():
        now = rnn.step_input(x)
        memory = rnn.memory(init=h, need_reorder=True)
        after = L.fc([now, memory], 3, act="tanh")
        rnn.update_memory(memory, after)
        rnn.output(after)
    return rnn()


@case(("x", (4, None, 3), "float32", 0))
def static_rnn(x):
    rnn = L.StaticRNN()
    with rnn.step():
        now = rnn.step_input(x)
        memory = rnn.memory(shape=[-1, 2], batch_ref=x)
        after = L.fc([now, memory], 2, act="tanh")
        rnn.update_memory(memory, after)
        rnn.step_output(after)
    return rnn()


@case(("x", (None, 8), "float32", 0), ("h", (None, 2), "float32", 0))
def recurrent_units(x, h):
    return [
        *L.lstm_unit(x, h, L.tanh(h), forget_bias=0.5),
        *L.gru_unit(L.fc(x, 6), h, 6),
        L.gru_unit(L.fc(x, 6), h, 6, origin_mode=True)[0],
    ]


@case(("x", (None, 4), "float32", 0), ("label", (None, 1), "int64", 0))
def costs(x, label):
    hard, classes = L.softmax_with_cross_entropy(L.pad(x, [0, 0, 0, 3]), label, return_softmax=True)
    ignored = L.softmax_with_cross_entropy(L.pad(x, [0, 0, 0, 3]), label, ignore_index=2)
    soft = L.softmax_with_cross_entropy(x, L.softmax(-x), soft_label=True)
    along_axis_0 = L.softmax_with_cross_entropy(
        L.transpose(L.pad(x, [0, 0, 0, 3]), [1, 0]), L.transpose(label, [1, 0]), axis=0
    )
    return [hard, classes, ignored, soft, along_axis_0]


pair("cosines", L.cos_sim, (None, 5), (None, 5))
pair("cosines_with_one", L.cos_sim, (None, 5), (1, 5))


@case(("lengths", (None,), "int64", 0), ("x", (None, 3), "float32", 0))
def masks(lengths, x):
    return [
        L.sequence_mask(lengths, 8, "float32"),
        L.sequence_mask(lengths),
        L.sequence_mask(lengths, L.shape(x)[0], "bool"),
    ]


@case(("ids", (3, None, 2), "int64", 0))
def hypotheses(ids):
    return L.gather_tree(ids, L.cast(ids > 3, "int64"))


@case(("x", (None, 3), "float32", 0))
def loops(x):
    n = L.cast(L.shape(x)[0], "int64")

    def body(i, h):
        return [i + 1, L.cond(L.mean(h) > 0.1, lambda: h * 0.5, lambda: h + x)]

    i, h = L.while_loop(lambda i, h: i < n, body, [L.fill_constant([1], "int64", 0), L.scale(x, 1.0)])
    return [i, h]


@case(("x", (None, 3), "float32", 0))
def arrays(x):
    i = L.fill_constant([1], "int64", 0)
    n = L.fill_constant([1], "int64", 3)
    kept = L.array_write(x, i)
    goes_on = L.less_than(i, n)
    loop = L.While(goes_on)
    with loop.block():
        before = L.array_read(kept, i)
        L.increment(i)
        L.array_write(before * 0.5, i, kept)
        L.less_than(i, n, cond=goes_on)
    joined = [L.tensor_array_to_tensor(kept, 1)[0], L.tensor_array_to_tensor(kept, 0, use_stack=True)[0]]
    return [L.array_read(kept, n), L.array_length(kept), *joined]


@case(("x", (None, 3), "float32", 0))
def switched(x):
    rate = L.create_global_var([1], 1.0, "float32", persistable=True, name="rate")
    mean = L.mean(x)
    with L.Switch() as switch:
        with switch.case(mean > 0.0):
            L.assign(L.fill_constant([1], "float32", 0.25), rate)
        with switch.default():
            L.assign(L.fill_constant([1], "float32", 0.5), rate)
    return x * rate
