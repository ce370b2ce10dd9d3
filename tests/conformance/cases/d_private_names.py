"""Names beyond the public ones that programs reach for: the tracer, gradients of VarBase, states of optimizers."""
from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import framework


@framework.dygraph_only
def eager_only(x):
    return x


@framework.dygraph_not_support
def static_only(x):
    return x


def refused(function, *args):
    try:
        function(*args)
    except AssertionError:
        return 'refused'
    return 'runs'


class Custom(fluid.dygraph.Layer):
    def __init__(self):
        super(Custom, self).__init__()
        self.w = self.create_parameter([3, 2], attr=fluid.initializer.Constant(0.5))

    def forward(self, x):
        out = self._helper.create_variable_for_type_inference(dtype='float32')
        self._helper.append_op(type='matmul', inputs={'X': [x], 'Y': [self.w]}, outputs={'Out': [out]}, attrs={})
        return self._helper.append_activation(out, act='sigmoid')


def tracer_names(out, x):
    tracer = framework._dygraph_tracer()
    result = framework._varbase_creator(dtype='float32')
    tracer.trace_op('scale', {'X': [x]}, {'Out': [result]}, {'scale': 2.0, 'bias': 1.0})
    out['trace_op'] = result.numpy()
    tracer.eval_mode()
    out['eval_mode'] = [str(tracer._train_mode), str((x * x).stop_gradient)]
    tracer.train_mode()
    out['train_mode'] = str(tracer._train_mode)
    out['decorators'] = [refused(eager_only, 1), refused(static_only, 1)]
    with framework._dygraph_guard(None):
        out['inside_of_guard'] = [str(fluid.in_dygraph_mode()), str(framework._dygraph_tracer()),
                                  refused(eager_only, 1), refused(static_only, 1), type(fluid.data('x', [1])).__name__]
        with framework._dygraph_guard(tracer):
            out['again'] = str(fluid.in_dygraph_mode())


def tensor_names(out, x):
    out['before'] = [x._grad_name(), str(x.block.program is fluid.default_main_program())]
    loss = fluid.layers.reduce_sum(x * x)
    loss.backward()
    grad = x._grad_ivar()
    out['grad_ivar'], out['grad_names'] = grad.numpy(), [grad.name, str(grad.stop_gradient)]
    grad.set_value(np.full([2, 3], 7, 'float32'))
    out['written'] = x.gradient()
    out['grad_value'] = np.array(x._grad_value())
    x._set_grad_type(fluid.core.VarDesc.VarType.LOD_TENSOR)
    out['alive'] = [str(name) for name in x._alive_vars()]
    out['copy'] = x._copy_to(fluid.CPUPlace(), True).numpy()


def optimizer_names(out, x):
    net = fluid.dygraph.Linear(3, 1, param_attr=fluid.initializer.Constant(1.), bias_attr=False)

    def step(optimizer):
        before = net.weight.numpy()
        fluid.layers.mean(net(x)).backward()
        optimizer.minimize(net(x))
        net.clear_gradients()
        return before - net.weight.numpy()

    adam = fluid.optimizer.Adam(0.01, parameter_list=net.parameters())
    out['rate_before'] = str(adam._global_learning_rate())
    step(adam)
    out['accumulators'] = ['%s %s' % (k, sorted(v)) for k, v in sorted(adam._accumulators.items())]
    out['moment'] = adam._get_accumulator(adam._moment1_acc_str, net.weight).numpy()
    out['rates'] = [type(k).__name__ + ' ' + v.name for k, v in adam._learning_rate_map.items()]
    out['rate'] = adam._global_learning_rate().numpy()
    out['numbers'] = [str(adam._beta1), adam._moment2_acc_str, str(len(adam._parameter_list)), adam.type]
    sgd = fluid.optimizer.SGD(0.1, parameter_list=net.parameters())
    out['step'] = step(sgd)
    sgd._global_learning_rate().set_value(np.array([0.5], 'float32'))
    out['step_of_written_rate'], out['written_rate'] = step(sgd), np.float32(sgd.current_step_lr())
    sgd._learning_rate = 0.25
    out['step_of_late_number'] = step(sgd)
    sgd._learning_rate_map[fluid.default_main_program()] = fluid.layers.create_global_var([1], 0.3, 'float32')
    out['step_of_other_variable'] = step(sgd)
    noam = fluid.optimizer.SGD(fluid.dygraph.NoamDecay(1, 10), parameter_list=net.parameters())
    out['step_of_schedule'] = step(noam)
    noam._learning_rate = 0.2
    out['step_after_schedule'] = step(noam)
    noam._learning_rate = fluid.dygraph.PiecewiseDecay([1], [.4, .6], 0)
    out['steps_of_new_schedule'] = np.stack([step(noam), step(noam)])
    early = fluid.optimizer.SGD(0.1, parameter_list=net.parameters())
    early._learning_rate = 0.7
    out['step_of_early_number'] = step(early)
    out['bad_loss'] = refused(early.minimize, 3)


def run_dygraph(rng):
    out = OrderedDict()
    x = fluid.dygraph.to_variable(rng.uniform(-1, 1, (2, 3)).astype('float32'))
    x.stop_gradient = False
    layer = Custom()
    result = layer(x)
    out['custom'] = result.numpy()
    fluid.layers.mean(result).backward()
    out['custom_gradient'] = layer.w.gradient()
    x.clear_gradient()
    tracer_names(out, x)
    tensor_names(out, x)
    optimizer_names(out, x)
    utils = fluid.dygraph_utils
    bias = fluid.dygraph.to_variable(np.array([1, 2, 3], 'float32'))
    out['activated'] = utils._append_activation_in_dygraph(x, 'relu').numpy()
    out['biased'] = utils._append_bias_in_dygraph(x, bias, axis=1).numpy()
    return out
