"""contrib's StateCell: trained by a TrainingDecoder with a static input, then run by BeamSearchDecoders of two widths."""
from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.contrib.decoder.beam_search_decoder import BeamSearchDecoder, InitState, StateCell, TrainingDecoder

layers = fluid.layers
VOCAB, WIDTH, HID, END = 7, 4, 5, 1


def attr(name, seed):
    return fluid.ParamAttr(name=name, initializer=fluid.initializer.Uniform(-1.5, 1.5, seed=seed))


def cell_of(context, reorder, extra=False):
    states = {'h': InitState(init=context, need_reorder=reorder),
              'n': InitState(shape=[-1, 1], value=0.5, init_boot=context, need_reorder=reorder)}
    cell = StateCell(inputs={'x': None, 'e': None} if extra else {'x': None}, states=states, out_state='h')

    @cell.state_updater
    def update(cell):
        both = [cell.get_state('h'), cell.get_input('x')]
        attrs = [attr('h_w', 3), attr('x_w', 4)]
        if extra:
            both.append(cell.get_input('e'))
            attrs.append(attr('e_w', 5))
        hidden = layers.fc(both, HID, act='tanh', param_attr=attrs, bias_attr=False)
        cell.set_state('h', layers.elementwise_add(hidden, layers.scale(cell.get_state('n'), 0.1), axis=0))
        cell.set_state('n', cell.get_state('n') + 1.)

    return cell


def train():
    context = fluid.data('context', [None, HID], 'float32')
    words = fluid.data('words', [None, 1], 'int64', lod_level=1)
    target = fluid.data('target', [None, 1], 'int64', lod_level=1)
    embedded = layers.embedding(words, size=[VOCAB, WIDTH], param_attr=attr('emb', 6))
    decoder = TrainingDecoder(cell_of(context, True))
    with decoder.block():
        word = decoder.step_input(embedded)
        same = decoder.static_input(context)
        decoder.state_cell.compute_state(inputs={'x': word})
        score = layers.fc([decoder.state_cell.get_state('h'), same], VOCAB, act='softmax',
                          param_attr=[attr('o_w', 7), attr('s_w', 8)], bias_attr=False)
        decoder.state_cell.update_states()
        decoder.output(score)
    loss = layers.mean(layers.cross_entropy(decoder(), target))
    fluid.optimizer.SGD(0.5).minimize(loss)
    return loss


def decode(beam, extra):
    context = fluid.data('context', [None, HID], 'float32')
    more = fluid.data('more', [None, 2], 'float32')
    ids = fluid.data('init_ids', [None, 1], 'int64', lod_level=2)
    scores = fluid.data('init_scores', [None, 1], 'float32', lod_level=2)
    decoder = BeamSearchDecoder(cell_of(context, False, extra), ids, scores, VOCAB, WIDTH, topk_size=4, max_len=5,
                                beam_size=beam, end_id=END, input_var_dict={'e': more} if extra else {})
    decoder.decode()
    return decoder()


def lod(data, lens):
    return fluid.create_lod_tensor(data, lens, fluid.CPUPlace())


def run(rng):
    out = OrderedDict()
    startup = fluid.Program()
    with fluid.program_guard(fluid.Program(), startup):
        loss = train()
        trained = fluid.default_main_program()
    exe = fluid.Executor(fluid.CPUPlace())
    scope = fluid.global_scope()
    exe.run(startup)

    def draw(program):
        for param in sorted(program.all_parameters(), key=lambda p: p.name):
            values = rng.uniform(-1.5, 1.5, param.shape).astype('float32')
            scope.find_var(param.name).get_tensor().set(values, fluid.CPUPlace())

    draw(trained)
    for turn, lens in enumerate(([3, 2], [4], [1, 5, 2])):
        n = sum(lens)
        out['loss%d' % turn], = exe.run(trained, feed={
            'context': rng.uniform(-1, 1, (len(lens), HID)).astype('float32'),
            'words': lod(rng.randint(0, VOCAB, (n, 1)).astype('int64'), [lens]),
            'target': lod(rng.randint(0, VOCAB, (n, 1)).astype('int64'), [lens])}, fetch_list=[loss])
    out['h_w'] = np.array(scope.find_var('h_w').get_tensor())
    for label, beam, extra in (('two', 2, False), ('three', 3, True), ('one', 1, False)):
        inference, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(inference, startup):
            wanted = decode(beam, extra)
        exe.run(startup)
        draw(inference)
        for rows in (1, 3, 2):
            feed = {'context': rng.uniform(-1, 1, (rows, HID)).astype('float32'),
                    'init_ids': lod(np.zeros((rows, 1), 'int64'), [[1] * rows] * 2),
                    'init_scores': lod(np.zeros((rows, 1), 'float32'), [[1] * rows] * 2)}
            if extra:
                feed['more'] = rng.uniform(-1, 1, (rows, 2)).astype('float32')
            got = exe.run(inference, feed=feed, fetch_list=list(wanted), return_numpy=False)
            out['ids_%s_%d' % (label, rows)], out['scores_%s_%d' % (label, rows)] = got
    return out
