"""What the parameters of a Layer are: of the default program by default and in program_guard, eager in dygraph mode."""
from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid


class Net(fluid.dygraph.Layer):
    def __init__(self):
        super(Net, self).__init__()
        self.fc = fluid.dygraph.Linear(3, 2)
        self.scale = self.create_parameter([2])
        self.count = self.create_variable(name='count', persistable=True, dtype='float32')

    def forward(self, x):
        return self.fc(x) * self.scale


def described(net):
    lines = ['%s %s' % (type(p).__name__, p.name) for p in net.parameters()]
    return lines + ['%s %s %s' % (k, v.name, list(v.shape)) for k, v in net.state_dict().items()]


def raised(function, *args):
    try:
        function(*args)
    except (AssertionError, TypeError) as error:
        return [c.__name__ for c in (AssertionError, TypeError) if isinstance(error, c)][0]
    return 'nothing'


def run(rng):
    out = OrderedDict()
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    net = Net()
    out['default'] = described(net)
    out['default_program'] = [str(net.scale.block.program is main), str('net_0.w_0' in startup.global_block().vars),
                              net.count.name, str(net.count.persistable)]
    inner, inner_startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(inner, inner_startup):
        net = Net()
        out['program_guard'] = described(net)
        out['own_program'] = str(net.scale.block.program is inner)
        y = net(fluid.data('x', [None, 3]))
        out['called'] = [y.name, str(list(y.shape))]
        out['operators'] = [op.type for op in inner.global_block().ops]
        out['startup'] = [op.type for op in inner_startup.global_block().ops]
        values = {name: np.zeros(p.shape, 'float32') for name, p in net.state_dict().items()}
        for method, args in (('clear_gradients', ()), ('set_dict', (values,))):
            out[method] = raised(getattr(net, method), *args)
        for method, args in (('numpy', ()), ('gradient', ()), ('detach', ()), ('backward', ()), ('clear_gradient', ()),
                             ('set_value', (np.zeros(2, 'float32'),))):
            out[method] = raised(getattr(net.scale, method), *args)
        with fluid.dygraph.guard():
            eager = Net()
            out['guard_inside'] = described(eager)
            out['eager'] = list(eager(fluid.dygraph.to_variable(np.ones((4, 3), 'float32'))).shape)
            with fluid.program_guard(fluid.Program(), fluid.Program()):
                out['guard_around'] = described(Net())
        again = Net()
        out['after_guard'] = described(again)
    return out
