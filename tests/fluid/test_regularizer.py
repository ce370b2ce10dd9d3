"""Weight decay: the term added to gradients, and the precedence of regularizers."""

import numpy as np
import pytest

from fluidlite.executor.interpreter.interpreter import Interpreter
from fluidlite.executor.scope import Scope
from fluidlite.framework import default_main_program
from fluidlite.framework.common_attrs import name_scope
from fluidlite.regularizer import L1Decay, L1DecayRegularizer, L2Decay, append_regularization_ops

VALUE, GRAD = np.array([-2.0, 0.0, 4.0], "float32"), np.array([1.0, 1.0, 1.0], "float32")


def _pair(name="w", regularizer=None):
    block = default_main_program().global_block()
    param = block.create_parameter(name=name, shape=[3], dtype="float32", regularizer=regularizer)
    return param, block.create_var(name=name + "@GRAD", shape=[3], dtype="float32")


def _run(program, names):
    run = Interpreter(program, Scope(), {name: (VALUE if "@" not in name else GRAD, ()) for name in names})
    run.run()
    return run.values


@pytest.mark.parametrize(
    ("decay", "expected"), [(L2Decay(0.5), GRAD + 0.5 * VALUE), (L1Decay(0.5), GRAD + 0.5 * np.sign(VALUE))]
)
def test_the_penalty_is_added_to_the_gradient(programs, decay, expected):
    pairs = append_regularization_ops([_pair()], decay)
    assert [(param.name, grad.name) for param, grad in pairs] == [("w", "w@GRAD")]
    np.testing.assert_allclose(_run(programs[0], ["w", "w@GRAD"])["w@GRAD"], expected)


def test_a_parameters_own_regularizer_wins(programs):
    append_regularization_ops([_pair("a", L1Decay(1.0)), _pair("b"), (_pair("c")[0], None)], L2Decay(0.5))
    block = programs[0].global_block()
    assert [op.type for op in block.ops] == ["sign", "scale", "sum", "scale", "sum"]
    assert block.ops[1].attr("scale") == 1.0
    assert block.ops[3].input("X") == ["b"]
    assert block.ops[3].output("Out") == ["_generated_var_1"]
    assert all(op.attr("op_role") == 2 for op in block.ops)
    assert block.ops[4].attr("op_role_var") == ["b", "b@GRAD"]


def test_nothing_happens_without_a_regularizer(programs):
    append_regularization_ops([_pair()])
    assert programs[0].global_block().ops == []


def test_text_and_names():
    assert str(L2Decay(0.1)) == "L2Decay, regularization_coeff=0.100000"
    assert L1Decay is L1DecayRegularizer
    with pytest.raises(TypeError, match="the coefficient of L2Decay must be a number, got None"):
        L2Decay(None)


def test_the_penalties_of_one_call_share_a_name_scope(programs):
    with name_scope("here"):
        append_regularization_ops([_pair("u")])
        append_regularization_ops([_pair("v", L1Decay(0.1)), _pair("w"), _pair("b")], L2Decay(0.5))
    scopes = {op.attr("op_namescope") for op in default_main_program().global_block().ops}
    assert scopes == {"/here/regularization_1/"}
