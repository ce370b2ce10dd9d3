"""dynamic_decode with many options: an LSTMCell, ends that come early, imputed states, time major, tests, own cells and decoders."""
from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid

layers = fluid.layers
VOCAB, HID, END = 8, 5, 2


def attr(name, seed, low=-1.5, high=1.5):
    return fluid.ParamAttr(name=name, initializer=fluid.initializer.Uniform(low, high, seed=seed))


def embed(tokens):
    return fluid.embedding(tokens, size=[VOCAB, 3], param_attr=attr('emb', 3))


def project(hidden):
    return layers.fc(hidden, VOCAB, num_flatten_dims=len(hidden.shape) - 1, param_attr=attr('out_w', 5),
                     bias_attr=attr('out_b', 6, -1., 1.))


class Twice(layers.RNNCell):
    """A cell with states in a dict and outputs of two parts, which reads something else as well."""

    def call(self, inputs, states, bias=None):
        one, two = inputs, layers.scale(inputs, 3.)
        hidden = layers.fc([one, states['h'][0]], HID, act='tanh', param_attr=[attr('tw_a', 7), attr('tw_b', 8)], bias_attr=False)
        if bias is not None:
            hidden = hidden + bias
        return [hidden, two], {'h': [hidden, states['h'][1] + 1.], 'n': states['n'] * 0.5}

    @property
    def state_shape(self):
        return {'h': [[HID], [1]], 'n': [2]}


class Counting(layers.Decoder):
    """Adds up its inputs, and finishes a row when the sum is large; `finalize` is left out."""

    def initialize(self, inits):
        return inits, [inits, layers.zeros_like(inits)], layers.fill_constant_batch_size_like(inits, [-1], 'bool', False)

    def step(self, time, inputs, states, gain=1.):
        total = states[1] + layers.scale(inputs, gain)
        done = layers.reduce_sum(total, dim=1) > layers.fill_constant([1], 'float32', 3.)
        return OrderedDict([('a', total), ('b', [inputs])]), [states[0] * 0.9, total], layers.abs(inputs) + 0.1, done


def build():
    outs = OrderedDict()
    start = fluid.data('start', [None, HID], 'float32')
    cellst = fluid.data('cellst', [None, HID], 'float32')
    steps = fluid.data('steps', [None, None, 3], 'float32')
    length = fluid.data('length', [None], 'int64')
    begin = fluid.data('begin', [None], 'int64')
    lstm = layers.LSTMCell(HID, param_attr=attr('lstm_w', 9), bias_attr=attr('lstm_b', 10, -1., 1.), forget_bias=0.3, name='l')
    for label, beam, options in (('a', 3, dict(max_step_num=5)), ('b', 1, dict(max_step_num=4, output_time_major=True)),
                                 ('c', 2, dict(max_step_num=7, impute_finished=True)),
                                 ('d', 4, dict(max_step_num=6, output_time_major=True))):
        decoder = layers.BeamSearchDecoder(lstm, 1, END, beam, embedding_fn=embed, output_fn=project)
        got, states, lengths = layers.dynamic_decode(decoder, inits=[start, cellst], return_length=True, **options)
        outs['ids_' + label], outs['lengths_' + label] = got, lengths
        outs['h_' + label], outs['c_' + label] = states.cell_states
        outs['lp_' + label], outs['n_' + label] = states.log_probs, states.lengths
        outs['fin_' + label] = layers.cast(states.finished, 'int32')
    gru = layers.GRUCell(HID, param_attr=attr('gru_w', 11), bias_attr=attr('gru_b', 12), name='g')
    for label, helper, options in (
            ('e', layers.TrainingHelper(layers.transpose(steps, [1, 0, 2]), length, time_major=True), dict(return_length=True)),
            ('f', layers.TrainingHelper(steps, length), dict(max_step_num=2, impute_finished=True, return_length=True)),
            ('g', layers.GreedyEmbeddingHelper(embed, begin, END),
             dict(max_step_num=6, impute_finished=True, output_time_major=True, return_length=True))):
        got, state, lengths = layers.dynamic_decode(layers.BasicDecoder(gru, helper, output_fn=project), inits=start, **options)
        outs['out_' + label], outs['ids_' + label] = got.cell_outputs, got.sample_ids
        outs['state_' + label], outs['len_' + label] = state, lengths
    for label, options in (('h', dict(max_step_num=3)), ('i', dict(max_step_num=6, gain=2.5, impute_finished=True))):
        got, states = layers.dynamic_decode(Counting(), inits=start, **options)
        outs['a_' + label], outs['b_' + label], outs['s_' + label], outs['t_' + label] = got['a'], got['b'][0], states[0], states[1]
    for label, options in (('j', dict()), ('k', dict(sequence_length=length, is_reverse=True)),
                           ('m', dict(sequence_length=length, bias=layers.scale(start, 0.1)))):
        got, states = layers.rnn(Twice(), steps, **options)
        outs['y_' + label], outs['z_' + label] = got
        outs['h0_' + label], outs['h1_' + label] = states['h']
        outs['hn_' + label] = states['n']
    outs['tiled'] = layers.BeamSearchDecoder.tile_beam_merge_with_batch(steps, 3)
    return outs


def feeds(rng):
    return [{'start': rng.uniform(-1, 1, (len(lens), HID)).astype('float32'),
             'cellst': rng.uniform(-1, 1, (len(lens), HID)).astype('float32'),
             'steps': rng.uniform(-1, 1, (len(lens), max(lens), 3)).astype('float32'),
             'begin': rng.randint(0, VOCAB, len(lens)).astype('int64'),
             'length': np.array(lens, dtype='int64')} for lens in ([3, 1, 4], [2], [5, 2, 1, 3, 2, 2, 4], [4, 4])]
