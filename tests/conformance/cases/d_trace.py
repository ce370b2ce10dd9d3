"""TracedLayer and declarative."""

import os
import shutil
import tempfile
from collections import OrderedDict

import paddle.fluid as fluid
from paddle.fluid import dygraph, layers
from paddle.fluid.dygraph import (
    Linear,
    ProgramTranslator,
    TracedLayer,
    declarative,
    to_variable,
)
from case_parts import put, setp, value


class Net(dygraph.Layer):
    def __init__(self):
        super(Net, self).__init__()
        self.a = Linear(3, 4, act='relu')
        self.b = Linear(4, 2)

    def forward(self, x):
        return self.b(self.a(x))


class Decl(Net):
    @declarative
    def forward(self, x):
        return self.b(self.a(x)) * 2.0


@declarative
def func(x):
    return layers.relu(x) + 1.0


def run_dygraph(rng):
    out = OrderedDict()
    net = setp(Net(), rng)
    x = to_variable(rng.uniform(-1, 1, (2, 3)).astype('float32'))
    res, traced = TracedLayer.trace(net, inputs=[x])
    out['types'] = [type(res).__name__, type(traced).__name__]
    out['dy'] = value(res if not isinstance(res, (list, tuple)) else res[0])
    put(out, 'static', lambda: traced([x])[0])
    put(out, 'static_type', lambda: [type(traced([x])).__name__, type(traced([x])[0]).__name__])
    put(out, 'ops', lambda: [op.type for op in traced.program.global_block().ops])
    put(out, 'set_strategy', lambda: traced.set_strategy(build_strategy=fluid.BuildStrategy(), exec_strategy=fluid.ExecutionStrategy()))
    put(out, 'wrong', lambda: TracedLayer.trace(lambda v: v, inputs=[x]))
    folder = tempfile.mkdtemp()
    put(out, 'save', lambda: traced.save_inference_model(folder + '/m', feed=[0], fetch=[0]))
    put(out, 'files', lambda: sorted(os.listdir(folder + '/m')))
    put(out, 'func', lambda: func(x))
    put(out, 'func_type', lambda: type(func(x)).__name__)
    d = setp(Decl(), rng)
    put(out, 'decl', lambda: d(x))
    loss = layers.reduce_sum(d(x))
    loss.backward()
    put(out, 'decl_grad', lambda: d.a.weight.gradient())
    o = fluid.optimizer.SGD(0.1, parameter_list=d.parameters())
    put(out, 'decl_min', lambda: str(len(o.minimize(loss)[1])))
    put(out, 'decl_w', lambda: d.a.weight.numpy())
    t = ProgramTranslator()
    put(out, 'same', lambda: str(t is ProgramTranslator()))
    t.enable(False)
    put(out, 'off', lambda: func(x))
    put(out, 'off_decl', lambda: d(x))
    t.enable(True)
    put(out, 'get_output', lambda: t.get_output(func, x) if False else None)
    put(out, 'get_program', lambda: str(len(t.get_program(func, x))))
    shutil.rmtree(folder)
    return out
