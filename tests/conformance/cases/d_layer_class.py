"""Layer: hooks, containers, state dicts, save/load, attributes, errors."""

import os
import shutil
import tempfile
from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import dygraph, layers
from paddle.fluid.dygraph import (
    BatchNorm,
    Layer,
    LayerList,
    Linear,
    ParameterList,
    Sequential,
    to_variable,
)
from case_parts import leaf, put, setp


class Net(Layer):
    def __init__(self, prefix=None):
        super(Net, self).__init__(prefix) if prefix else super(Net, self).__init__()
        self.fc = Linear(3, 4)
        self.fc2 = Linear(4, 2, bias_attr=False)
        self.own = self.create_parameter([2], attr=fluid.ParamAttr(name='own_p'), is_bias=True)
        self.named = self.create_parameter(shape=[2, 2], dtype='float32')
        self.list = LayerList([Linear(2, 2) for _ in range(2)])
        self.params = ParameterList([fluid.layers.create_parameter([2, 2], 'float32') for _ in range(2)])
        self.n = 3

    def forward(self, x, flag=True):
        y = self.fc2(self.fc(x)) + self.own
        for l in self.list:
            y = l(y)
        for p in self.params:
            y = layers.mul(y, p)
        return y


def run_dygraph(rng):
    out = OrderedDict()
    net = Net()
    setp(net, rng)
    x = leaf(rng.uniform(-1, 1, (2, 3)))
    put(out, 'y', lambda: net(x))
    put(out, 'named_parameters', lambda: ['%s %s' % (k, p.name) for k, p in net.named_parameters()])
    put(out, 'named_parameters_prefix', lambda: [k for k, p in net.named_parameters(prefix='net', include_sublayers=False)])
    put(out, 'parameters', lambda: [p.name for p in net.parameters(include_sublayers=False)])
    put(out, 'sublayers', lambda: [l.full_name() for l in net.sublayers()])
    put(out, 'sublayers_top', lambda: [l.full_name() for l in net.sublayers(include_sublayers=False)])
    put(out, 'named_sublayers', lambda: ['%s %s' % (k, type(l).__name__) for k, l in net.named_sublayers(prefix='p', include_self=True)])
    put(out, 'named_sublayers2', lambda: [k for k, l in net.named_sublayers(include_sublayers=False)])
    put(out, 'state', lambda: list(net.state_dict()))
    put(out, 'state_prefix', lambda: list(net.state_dict(structured_name_prefix='z.')))
    put(out, 'state_top', lambda: list(net.state_dict(include_sublayers=False)))
    put(out, 'full_name', lambda: [net.full_name(), Net('pre').full_name(), Net('pre').full_name()])
    put(out, 'dtype', lambda: str(net._dtype))
    put(out, 'training', lambda: [str(net.training), str(net.fc.training)])
    order = []

    def pre(layer, inputs):
        order.append('pre')
        return (inputs[0] * 2.0,)

    def post(layer, inputs, output):
        order.append('post')
        return output + 1.0

    h1 = put(out, 'pre', lambda: net.fc.register_forward_pre_hook(pre)) if False else net.fc.register_forward_pre_hook(pre)
    h2 = net.fc.register_forward_post_hook(post)
    put(out, 'hooked', lambda: net.fc(x))
    h2.remove()
    put(out, 'hooked2', lambda: net.fc(x))
    h1.remove()
    put(out, 'hooked3', lambda: net.fc(x))
    out['order'] = order
    put(out, 'hook_none', lambda: hook_none(net, x))
    put(out, 'helper_remove_twice', lambda: str(h1.remove()))
    put(out, 'del_attr', lambda: delattr(net, 'named'))
    put(out, 'after_del', lambda: list(net.state_dict()))
    put(out, 'set_nonparam', lambda: setattr(net, 'own', 3))
    put(out, 'set_none', lambda: setattr(net, 'own', None))
    put(out, 'after_none', lambda: [k for k, _ in net.named_parameters()])
    put(out, 'missing', lambda: net.nothing)
    put(out, 'add_parameter', lambda: net.add_parameter('added', net.create_parameter([1])).name)
    put(out, 'add_parameter_bad', lambda: net.add_parameter('added2', 3))
    put(out, 'add_parameter_dot', lambda: net.add_parameter('a.b', net.create_parameter([1])).name)
    put(out, 'add_parameter_empty', lambda: net.add_parameter('', net.create_parameter([1])).name)
    put(out, 'add_sublayer', lambda: net.add_sublayer('sub', Linear(1, 1)).full_name())
    put(out, 'add_sublayer_bad', lambda: net.add_sublayer('sub2', 3))
    put(out, 'late_init', lambda: Late())
    put(out, 'late_param', lambda: LateParam())
    put(out, 'create_variable', lambda: net.create_variable(name='cv', persistable=True).name)
    put(out, 'create_parameter_const', lambda: net.create_parameter([2], default_initializer=fluid.initializer.Constant(3.0)))
    put(out, 'create_parameter_bias', lambda: net.create_parameter([2], is_bias=True))
    put(out, 'create_parameter_False', lambda: net.create_parameter([2], attr=False))
    put(
        out,
        'create_parameter_attr',
        lambda: str(
            (lambda p: (p.name, p.trainable, p.stop_gradient, p.optimize_attr, p.do_model_average))(
                net.create_parameter([2], attr=fluid.ParamAttr(learning_rate=0.3, trainable=False))
            )
        ),
    )
    put(out, 'forward_missing', lambda: Layer()(x))
    put(out, 'backward', lambda: Layer().backward())
    put(out, 'clear_gradients', lambda: net.clear_gradients())
    seq = Sequential(Linear(3, 4), Linear(4, 2))
    seq2 = Sequential(('a', Linear(3, 4)), ('b', Linear(4, 2)))
    setp(seq, rng), setp(seq2, rng)
    put(out, 'seq', lambda: seq(x))
    put(out, 'seq_names', lambda: list(seq.state_dict()) + list(seq2.state_dict()))
    put(out, 'seq_get', lambda: seq['0'].full_name() + seq2['b'].full_name())
    put(out, 'seq_get_int', lambda: seq[0].full_name())
    put(out, 'seq_len', lambda: len(seq))
    put(out, 'seq_set', lambda: seq2.__setitem__('b', Linear(4, 3)))
    put(out, 'seq2', lambda: seq2(x).shape)
    put(out, 'seq_del', lambda: seq2.__delitem__('b'))
    put(out, 'seq_empty', lambda: Sequential(3))
    ll = LayerList([Linear(3, 3) for _ in range(3)])
    put(out, 'll_slice', lambda: len(ll[0:2]))
    put(out, 'll_append', lambda: str(ll.append(Linear(1, 1)) is ll))
    put(out, 'll_insert', lambda: ll.insert(0, Linear(2, 1)))
    put(out, 'll_extend', lambda: str(ll.extend([Linear(2, 1)]) is ll))
    put(out, 'll_names', lambda: ['%s %s' % (k, v.name) for k, v in ll.state_dict().items()])
    put(out, 'll_del', lambda: ll.__delitem__(0))
    put(out, 'll_names2', lambda: ['%s %s' % (k, v.name) for k, v in ll.state_dict().items()])
    put(out, 'll_set', lambda: ll.__setitem__(1, Linear(5, 5)))
    put(out, 'll_set_bad', lambda: ll.__setitem__(1, 4))
    put(out, 'll_iter', lambda: [l.full_name() for l in ll])
    pl = ParameterList([fluid.layers.create_parameter([2], 'float32') for _ in range(2)])
    put(out, 'pl', lambda: [str(len(pl)), pl[0].name, pl[1].name] + list(pl.state_dict()))
    put(out, 'pl_append', lambda: str(pl.append(fluid.layers.create_parameter([2], 'float32')) is pl))
    put(out, 'pl_set', lambda: pl.__setitem__(0, fluid.layers.create_parameter([2], 'float32')))
    put(out, 'pl_iter', lambda: [p.name for p in pl])
    # state
    folder = tempfile.mkdtemp()
    a, b = setp(Net2(), rng), setp(Net2(), rng)
    put(out, 'save', lambda: dygraph.save_dygraph(a.state_dict(), os.path.join(folder, 'm')))
    put(out, 'files', lambda: sorted(os.listdir(folder)))
    p, o = dygraph.load_dygraph(os.path.join(folder, 'm'))
    put(out, 'loaded', lambda: sorted(p))
    put(out, 'loaded_types', lambda: sorted(set(type(v).__name__ for v in p.values())))
    put(out, 'opt_none', lambda: o)
    put(out, 'set_dict', lambda: b.set_dict(p))
    put(out, 'same', lambda: b.fc.weight.numpy() - a.fc.weight.numpy())
    put(out, 'set_dict_missing', lambda: b.set_dict({}))
    put(out, 'set_dict_shape', lambda: b.set_dict(dict(p, **{'fc.weight': np.ones((1, 1), 'float32')})))
    put(out, 'set_dict_dtype', lambda: b.set_dict(dict(p, **{'fc.weight': np.ones((3, 4), 'float64')})))
    put(out, 'load_dict', lambda: b.load_dict(p))
    put(out, 'set_dict_names', lambda: b.set_dict(OrderedDict((v.name, v) for v in b.state_dict().values()), use_structured_name=False))
    opt = fluid.optimizer.Adam(0.1, parameter_list=a.parameters())
    layers.reduce_sum(a(x)).backward()
    opt.minimize(layers.reduce_sum(a(x)))
    put(out, 'opt_state', lambda: sorted(opt.state_dict()))
    put(out, 'save_opt', lambda: dygraph.save_dygraph(opt.state_dict(), os.path.join(folder, 'm')))
    put(out, 'files2', lambda: sorted(os.listdir(folder)))
    p, o = dygraph.load_dygraph(os.path.join(folder, 'm'))
    put(out, 'opt_loaded', lambda: sorted(o))
    opt2 = fluid.optimizer.Adam(0.1, parameter_list=a.parameters())
    put(out, 'opt_set', lambda: opt2.set_dict(o))
    put(out, 'save_empty', lambda: dygraph.save_dygraph({}, os.path.join(folder, 'e')))
    put(out, 'save_dir', lambda: dygraph.save_dygraph(a.state_dict(), folder + '/'))
    put(out, 'load_missing', lambda: dygraph.load_dygraph(os.path.join(folder, 'nothing')))
    put(out, 'load_ext', lambda: sorted(dygraph.load_dygraph(os.path.join(folder, 'm.pdparams'))[0]))
    put(out, 'load_keep', lambda: sorted(dygraph.load_dygraph(os.path.join(folder, 'm'), keep_name_table=True)[0]))
    shutil.rmtree(folder)
    return out


class Net2(Layer):
    def __init__(self):
        super(Net2, self).__init__()
        self.fc = Linear(3, 4)
        self.bn = BatchNorm(4)

    def forward(self, x):
        return self.bn(self.fc(x))


class Late(Layer):
    def __init__(self):
        self.fc = Linear(1, 1)


class LateParam(Layer):
    def __init__(self):
        self.w = fluid.layers.create_parameter([1], 'float32')


def hook_none(net, x):
    h = net.fc.register_forward_post_hook(lambda l, i, o: None)
    y = net.fc(x)
    h.remove()
    return y
