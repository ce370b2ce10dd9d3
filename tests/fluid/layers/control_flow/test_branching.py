"""cond, case, switch_case, Switch, IfElse: appended operators and errors, checked against Fluid 1.8.5."""

import numpy as np
import pytest

from fluidlite import dygraph, layers
from fluidlite.base import unique_name
from fluidlite.framework import Program, Variable, program_guard
from tests.refusals import refuses


@pytest.fixture(autouse=True)
def program():
    program = Program()
    with program_guard(program, Program()), unique_name.guard():
        yield program


def flag(name="p", shape=(1,)):
    return layers.data(name, list(shape), dtype="bool", append_batch_size=False)


def number(value=1.0, shape=(1,), dtype="float32"):
    return layers.fill_constant(list(shape), dtype, value)


def types(program):
    return [[op.type for op in block.ops] for block in program.blocks]


BRANCH = ["fill_constant", "assign"]
CHOICE = ["conditional_block", "logical_not", "conditional_block", "cast", "select_input"]


def test_cond(program):
    made = layers.cond(flag(), number, lambda: number(2.0, (2,), "float64"))
    assert (made.name, made.shape, made.dtype.name) == ("_generated_var_4", (2,), "FP64")
    assert types(program) == [CHOICE, BRANCH, BRANCH]
    yes, _, no, _, select = program.global_block().ops
    assert yes.inputs["Cond"] == ["p"] and yes.attr("is_scalar_condition")
    assert yes.outputs == {"Out": ["_generated_var_0"], "Scope": ["_generated_var_1"]}
    assert no.outputs == {"Out": ["_generated_var_2"], "Scope": ["_generated_var_3"]}
    assert select.inputs == {"X": ["_generated_var_2", "_generated_var_0"], "Mask": ["cast_0.tmp_0"]}
    assert yes.attr("sub_block") is program.block(1) and program.block(1).parent_idx == 0


def test_a_block_reads_what_it_has_not_made(program):
    x = layers.data("x", [3])
    total = layers.data("total", [3])

    def inner():
        made = layers.scale(x, 2.0)
        return layers.cond(flag("q"), lambda: made + total, lambda: made)

    layers.cond(flag(), inner, lambda: x)
    outer = program.global_block().ops[0]
    assert sorted(outer.inputs["Input"]) == ["q", "total", "x"]


def test_structures_of_cond():
    structure = layers.cond(
        flag(),
        lambda: {"a": [number(), number()], "b": number()},
        lambda: {"a": (number(), number()), "b": number()},
    )
    assert isinstance(structure["a"], tuple) and len(structure["a"]) == 2
    assert isinstance(structure["b"], Variable)


def test_cond_without_results(program):
    assert layers.cond(flag(), lambda: None, lambda: None) is None
    assert layers.cond(flag("q"), lambda: None) is None
    assert layers.cond(flag("r")) is None
    assert types(program)[0] == ["conditional_block", "logical_not", "conditional_block", "conditional_block"]


@pytest.mark.parametrize(
    ("yes", "no", "error", "message"),
    [
        (lambda: None, number, ValueError, "true_fn returns None while false_fn returns non-None"),
        (number, lambda: None, ValueError, "true_fn returns non-None while false_fn returns None"),
        (number, None, ValueError, "true_fn returns non-None while false_fn returns None"),
        (lambda: [number()], lambda: [number(), number()], ValueError, "Incompatible return values"),
        (number, lambda: [number()], ValueError, "Incompatible return values"),
        (3, number, TypeError, "The true_fn in cond must be callable, but received int"),
        (number, 3, TypeError, "The false_fn in cond must be callable, but received int"),
        (lambda: 1, lambda: 2, TypeError, r"must return Variables.*it returns int \(1\)"),
        (lambda: [number(), None], number, TypeError, "it returns NoneType"),
    ],
)
def test_branches_that_do_not_fit(program, yes, no, error, message):
    refuses(lambda: layers.cond(flag(), yes, no), error, message)
    assert program.current_block_idx == 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (lambda: (True,), TypeError, "'pred' in fluid.layers.cond must be a Variable"),
        (
            lambda: (number(),),
            TypeError,
            r"'pred' in fluid.layers.cond must be \['bool'\], but received float32",
        ),
        (lambda: (flag(), number, number, 5), TypeError, "'name' in fluid.layers.cond must be str"),
    ],
)
def test_predicates_that_do_not_fit(arguments, error, message):
    refuses(lambda: layers.cond(*arguments()), error, message)


def test_case(program):
    made = layers.case([(flag("a"), number), (flag("b"), number), (flag("c"), number)])
    assert made.name == "_generated_var_9"
    assert types(program) == [CHOICE, BRANCH, [*CHOICE, "assign"], BRANCH, BRANCH]
    assert program.global_block().ops[0].inputs["Cond"] == ["a"]


def test_case_of_one_function_has_no_choice(program):
    layers.case(((flag(), number),))
    assert types(program) == [["fill_constant"]]
    layers.case([(flag("q"), number)], default=number)
    assert types(program)[0][1:] == CHOICE


@pytest.mark.parametrize(
    ("pairs", "default", "error", "message"),
    [
        (None, None, TypeError, "'pred_fn_pairs' in case must be list or tuple"),
        ([], None, ValueError, "must not be empty"),
        ([[1, number]], None, TypeError, "must be tuple, but received: <class 'list'>"),
        ([(1, number, number)], None, TypeError, "must be 2, but received: 3-tuple"),
        ([(True, number)], None, TypeError, "must be boolean Variable, but received: <class 'bool'>"),
        ("no function", None, TypeError, r"The fn for p of pred_fn_pairs in Op\(case\) must be callable"),
        ("fine", 3, TypeError, r"The default in Op\(case\) must be callable"),
    ],
)
def test_what_case_refuses(pairs, default, error, message):
    if isinstance(pairs, str):
        pairs = [(flag(), 3 if pairs == "no function" else number)]
    refuses(lambda: layers.case(pairs, default), error, message)


@pytest.mark.parametrize(
    "given", [{2: number, 5: number}, [(5, number), (2, number)], ((2, number), (5, number))]
)
def test_switch_case(program, given):
    index = layers.data("i", [1], dtype="int32", append_batch_size=False)
    layers.switch_case(index, given, default=number)
    assert types(program)[0][:5] == ["cast", "fill_constant", "equal", "fill_constant", "equal"]
    block = program.global_block()
    assert [op.attr("value") for op in block.ops if op.type == "fill_constant"] == [2, 5]
    assert next(op for op in block.ops if op.type == "conditional_block").inputs["Cond"] == ["equal_1.tmp_0"]


def test_functions_alone_are_numbered(program):
    index = layers.data("i", [1], dtype="int64", append_batch_size=False)
    layers.switch_case(index, [number, number, number])
    values = [op.attr("value") for op in program.global_block().ops if op.type == "fill_constant"]
    assert values == [0, 1]


@pytest.mark.parametrize(
    ("functions", "default", "error", "message"),
    [
        (None, None, TypeError, "'branch_fns' in switch_case must be list, tuple or dict"),
        ({}, None, ValueError, "must not be empty"),
        ([(1, number), (1, number)], None, ValueError, "must be unique, but '1' appears more than once"),
        ([(1, number), number], None, TypeError, "must be tuple"),
        ([(1, number, 2)], None, TypeError, "must be 2, but received: 3-tuple"),
        ({"a": number}, None, TypeError, "must be int, but received: <class 'str'>"),
        ({1: 3}, None, TypeError, "function for key 1 of 'branch_fns'"),
        ({1: number}, 3, TypeError, r"The default in Op\(case\) must be callable"),
    ],
)
def test_what_switch_case_refuses(functions, default, error, message):
    index = layers.data("i", [1], dtype="int32", append_batch_size=False)
    refuses(lambda: layers.switch_case(index, functions, default), error, message)


@pytest.mark.parametrize(
    ("index", "message"), [(1, "must be a Variable"), (None, "int64'.*received float32")]
)
def test_indices_that_do_not_fit(index, message):
    with pytest.raises(TypeError, match=f"'branch_index' in switch_case {message}|{message}"):
        layers.switch_case(number() if index is None else index, {1: number})


def test_switch(program):
    with layers.Switch() as switch:
        with switch.case(flag("a")):
            number()
        with switch.case(flag("b")):
            number()
        with switch.default():
            number()
    assert types(program)[0] == [
        *("logical_not", "conditional_block", "logical_not", "logical_and", "logical_and"),
        *("conditional_block", "conditional_block"),
    ]
    conditions = [op.inputs["Cond"] for op in program.global_block().ops if op.type == "conditional_block"]
    assert conditions == [["a"], ["logical_and_1.tmp_0"], ["logical_and_0.tmp_0"]]


def test_what_switch_refuses(program):
    refuses(lambda: layers.Switch().case(flag()), ValueError, "case should be called inside with")
    with layers.Switch() as switch:
        refuses(switch.default, ValueError, "there should be at least one condition")
        refuses(lambda: switch.case(number()), TypeError, r"must be \['bool'\], but received float32")
    with pytest.raises(KeyError), layers.Switch() as switch, switch.case(flag("q")):
        raise KeyError("missing")
    assert program.current_block_idx == 0 and "conditional_block" not in types(program)[0]


def rows():
    return layers.data("x", [3]), layers.IfElse(layers.data("m", [1], dtype="bool"))


def test_if_else(program):
    x, choice = rows()
    with choice.true_block():
        choice.output(layers.scale(choice.input(x), 2.0))
    with choice.false_block():
        choice.output(choice.input(x))
    (out,) = choice()
    assert out.name == "merge_lod_tensor_0.tmp_0" and out.shape == (-1, 3)
    assert types(program) == [
        ["split_lod_tensor", "conditional_block", "conditional_block", "merge_lod_tensor"],
        ["scale", "assign"],
        ["assign"],
    ]
    split, yes, no, _ = program.global_block().ops
    assert split.outputs == {"OutTrue": ["ifelse_inputifelse_0_0"], "OutFalse": ["ifelse_inputifelse_0_1"]}
    assert yes.outputs["Out"] == ["ifelse_0_output_0"] and no.outputs["Out"] == ["ifelse_0_output_1"]
    assert not yes.attr("is_scalar_condition")


def test_if_else_with_one_block_gives_its_outputs():
    x, choice = rows()
    with choice.false_block():
        choice.output(choice.input(x), choice.input(x))
    assert [out.name for out in choice()] == ["ifelse_0_output_0", "ifelse_0_output_1"]


def test_what_if_else_refuses():
    x, choice = rows()
    refuses(lambda: layers.IfElse(3), TypeError, "'cond' in fluid.layers.IfElse must be Variable")
    refuses(lambda: choice.input(x), ValueError, "input must in true/false blocks")
    refuses(lambda: choice.output(x), ValueError, "output can only be invoked in the sub-block")
    refuses(choice, ValueError, "Must invoke true_block/false_block before __call__")
    with pytest.raises(ValueError, match="Must set output inside block"), choice.true_block():
        pass
    with choice.true_block():
        with pytest.raises(ValueError, match="inside a block"), choice.false_block():
            pass
        refuses(lambda: choice.output(3), TypeError, "'each output'")
        refuses(choice, ValueError, "out of sub-block")
        choice.output(choice.input(x))
    with choice.false_block():
        choice.output(choice.input(x), choice.input(x))
    refuses(choice, ValueError, "The output side must be same")


def test_a_conditional_block_takes_variables():
    refuses(lambda: layers.ConditionalBlock([3]), TypeError, "'input' in ConditionalBlock must be Variable")


def test_an_eager_predicate_is_a_value():
    with dygraph.guard():
        x = dygraph.to_variable(np.array([1.0, 2.0], "float32"))
        yes, no = (dygraph.to_variable(np.array([value])) for value in (True, False))
        called = []
        assert layers.cond(yes, lambda: x + 1, lambda: called.append(1)).numpy().tolist() == [2, 3]
        assert layers.cond(no, lambda: called.append(1)) is None and not called
        assert layers.case([(no, lambda: 1), (yes, lambda: 2)], lambda: 3) == 2
        assert layers.case([(no, lambda: 1), (no, lambda: 2)]) == 2
        index = dygraph.to_variable(np.array([2], "int32"))
        assert layers.switch_case(index, {1: lambda: "one", 2: lambda: "two"}, lambda: "other") == "two"
        assert layers.switch_case(index, [lambda: "zero", lambda: "one"]) == "one"
        with pytest.raises(AssertionError, match="numel should be 1: pred of cond has 2 elements"):
            layers.cond(x, lambda: x, lambda: x)
        refuses(lambda: layers.cond(True, lambda: x, lambda: x), AssertionError, "must be Variable, got bool")
        refuses(lambda: layers.cond(yes, 3, lambda: x), TypeError, "true_fn in cond must be callable")
