"""Branches, loops, scans and sequences of ONNX models against onnxruntime."""

import numpy as np
import onnx
import pytest

import fluidlite as fluid
from fluidlite.base.errors import FormatError, NotSupportedError
from fluidlite.onnx import load

from .test_load import compared

pytestmark = pytest.mark.usefixtures("alone")
RANDOM = np.random.default_rng(11)
ROWS = [RANDOM.uniform(-1, 1, (n, 3)).astype("float32") for n in (4, 1, 3)]
ROWS.append(-np.abs(ROWS[0]))


def model(path, text, outputs="float[a, b] y"):
    """A model of one input x [n, 3], written as ONNX prints it."""
    made = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> made (float[n, 3] x) => ({outputs}) {{ {text} }}'
    )
    path.write_bytes(made.SerializeToString())
    return path


TOTAL = """
    zero = Constant <value = float {0.0}> ()
    all = ReduceSum <keepdims = 0> (x)
    more = Greater (all, zero)
"""
COUNT = """
    shape = Shape (x)
    first = Constant <value = int64 {0}> ()
    n = Gather (shape, first)
    true = Constant <value = bool {1}> ()
"""
BODIES = {
    "branches": TOTAL
    + """
        y = If (more) <
            then_branch = yes () => (float[a, b] left) { two = Constant <value = float {2.0}> () left = Mul (x, two) },
            else_branch = no () => (float[c, d] right) { two = Constant <value = float {3.0}> () right = Mul (x, two) }
        >""",
    "branches_of_other_sizes": TOTAL
    + """
        some = If (more) <
            then_branch = yes () => (float[a, b] left) { left = Concat <axis = 1> (x, x) },
            else_branch = no () => (float[c, d] right) { right = Neg (x) }
        >
        sizes = Shape (some)
        made = ConstantOfShape (sizes)
        y = Sub (made, some)""",
    "a_known_branch": """
        true = Constant <value = bool {1}> ()
        y = If (true) <
            then_branch = yes () => (float[a, b] left) { left = Relu (x) },
            else_branch = no () => (float[c, d] right) { right = Neg (x) }
        >""",
    "a_branch_in_a_branch": TOTAL
    + """
        y = If (more) <
            then_branch = yes () => (float[a, b] left) {
                one = Constant <value = float {1.0}> ()
                much = Greater (all, one)
                left = If (much) <
                    then_branch = most () => (float[c, d] l) { l = Add (x, one) },
                    else_branch = less () => (float[e, f] r) { r = Sub (x, one) }
                >
            },
            else_branch = no () => (float[g, h] right) { right = Identity (x) }
        >""",
    "a_counted_loop": COUNT
    + """
        y = Loop (n, true, x) <body = turn (int64 i, bool on, float[a, b] h) => (bool again, float[c, d] after) {
            again = Identity (on)
            k = Cast <to = 1> (i)
            after = Add (h, k)
        }>""",
    "a_loop_without_condition": COUNT
    + """
        y = Loop (n, , x) <body = turn (int64 i, bool on, float[a, b] h) => (bool again, float[c, d] after) {
            none = Constant <value = float {100.0}> ()
            sum = ReduceSum <keepdims = 0> (h)
            again = Greater (sum, none)
            after = Add (h, x)
        }>""",
    "a_loop_that_its_condition_ends": TOTAL
    + """
        four = Constant <value = float {4.0}> ()
        much = Constant <value = int64 {9223372036854775807}> ()
        y = Loop (much, more, x) <body = turn (int64 i, bool on, float[a, b] h) => (bool again, float[c, d] after) {
            after = Add (h, h)
            sum = ReduceSum <keepdims = 0> (after)
            again = Less (sum, four)
        }>""",
    "values_that_change_places": COUNT
    + """
        minus = Neg (x)
        y, z = Loop (n, true, x, minus) <
            body = turn (int64 i, bool on, float[a, b] p, float[c, d] q) => (bool again, float[e, f] q, float[g, h] r) {
                again = Identity (on)
                half = Constant <value = float {0.5}> ()
                r = Mul (p, half)
            }
        >""",
    "a_value_that_grows": COUNT
    + """
        y = Loop (n, true, x) <body = turn (int64 i, bool on, float[a, b] h) => (bool again, float[c, d] after) {
            again = Identity (on)
            sizes = Shape (h)
            ones = ConstantOfShape (sizes)
            more = Add (ones, h)
            after = Concat <axis = 0> (more, x)
        }>""",
    "what_turns_stack": COUNT
    + """
        last, y, z = Loop (n, true, x) <
            body = turn (int64 i, bool on, float[a, b] h) => (bool again, float[c, d] after, float[e] part, float sum) {
                again = Identity (on)
                row = Gather <axis = 0> (x, i)
                after = Add (h, row)
                part = Mul (row, row)
                sum = ReduceSum <keepdims = 0> (part)
            }
        >""",
    "a_loop_in_a_loop": COUNT
    + """
        y = Loop (n, true, x) <body = turn (int64 i, bool on, float[a, b] h) => (bool again, float[c, d] after) {
            again = Identity (on)
            after = Loop (n, true, h) <
                body = inner (int64 j, bool goes, float[e, f] k) => (bool still, float[g, h] m) {
                    still = Identity (goes)
                    place = Cast <to = 1> (i)
                    step = Cast <to = 1> (j)
                    both = Mul (place, step)
                    l = Add (k, both)
                    m = Tanh (l)
                }
            >
        }>""",
    "scans": """
        zeros = Constant <value = float[3] {0.0, 0.0, 0.0}> ()
        turned = Transpose <perm = [1, 0]> (x)
        z, y, w = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1],
                        scan_output_axes = [1, 0], scan_output_directions = [0, 1],
            body = step (float[3] before, float[3] row, float[3] back) => (float[3] after, float[3] same, float most) {
                sum = Add (before, row)
                after = Sub (sum, back)
                same = Mul (after, back)
                most = ReduceMax <keepdims = 0> (after)
            }
        > (zeros, x, turned)""",
    "parts": """
        one = Constant <value = int64 {1}> ()
        minus = Constant <value = int64 {-1}> ()
        two = Constant <value = int64[2] {2, 1}> ()
        parts = SplitToSequence <axis = 1> (x, two)
        rows = SplitToSequence <axis = 0> (x, one)
        y = SequenceAt (parts, minus)
        z = ConcatFromSequence <axis = 1> (rows)
        w = SequenceLength (rows)""",
    "a_sequence_that_others_know": """
        three = Constant <value = int64 {2}> ()
        some = SequenceConstruct (x, x)
        minus = Neg (x)
        more = SequenceInsert (some, minus)
        other = SequenceInsert (some, x)
        last = SequenceAt (more, three)
        y = Identity (last)
        z = ConcatFromSequence <axis = 1> (some)
        w = ConcatFromSequence <axis = 0, new_axis = 1> (other)""",
    "a_sequence_that_a_loop_fills": COUNT
    + """
        none = SequenceEmpty ()
        all = Loop (n, true, none) <
            body = turn (int64 i, bool on, seq(float[a, b]) h) => (bool again, seq(float[c, d]) after) {
                again = Identity (on)
                row = Gather <axis = 0> (x, i)
                after = SequenceInsert (h, row)
            }
        >
        y = ConcatFromSequence <axis = 0, new_axis = 1> (all)""",
    "a_sequence_that_goes_on_without_what_a_turn_adds": COUNT
    + """
        one = SequenceConstruct (x)
        all, y = Loop (n, true, one, x) <
            body = turn (int64 i, bool on, seq(float[a, b]) h, float[c, d] k)
                    => (bool on, seq(float[e, f]) h, float[g, o] after) {
                longer = SequenceInsert (h, k)
                after = ConcatFromSequence <axis = 0> (longer)
            }
        >
        z = ConcatFromSequence <axis = 0> (all)""",
    "a_sequence_of_a_branch": TOTAL
    + """
        one = SequenceConstruct (x)
        some = If (more) <
            then_branch = yes () => (seq(float[a, b]) left) { left = SequenceInsert (one, x) },
            else_branch = no () => (seq(float[c, d]) right) { right = Identity (one) }
        >
        y = ConcatFromSequence <axis = 0> (some)
        z = ConcatFromSequence <axis = 0> (one)""",
}
OUTPUTS = {
    "what_turns_stack": "float[a, b] last, float[c, d] y, float[e] z",
    "values_that_change_places": "float[a, b] y, float[c, d] z",
    "scans": "float[a] z, float[b, c] y, float[d] w",
    "parts": "float[a, b] y, float[c, d] z, int64 w",
    "a_sequence_that_others_know": "float[a, b] y, float[c, d] z, float[e, f, g] w",
    "a_sequence_that_goes_on_without_what_a_turn_adds": "float[a, b] y, float[c, d] z",
    "a_sequence_of_a_branch": "float[a, b] y, float[c, d] z",
}


@pytest.mark.parametrize("name", BODIES)
def test_inner_graphs_and_sequences(name, tmp_path):
    compared(model(tmp_path / "model.onnx", BODIES[name], OUTPUTS.get(name, "float[a, b] y")), ROWS)


def test_loops_without_an_iteration_return_their_inputs(tmp_path):
    text = """
        none = Constant <value = int64 {0}> ()
        true = Constant <value = bool {1}> ()
        y = Loop (none, true, x) <body = turn (int64 i, bool on, float[a, b] h) => (bool on, float[c, d] after) {
            after = Neg (h)
        }>"""
    compared(model(tmp_path / "model.onnx", text), ROWS[:1])


def test_a_loaded_loop_is_one_operator_of_fluid(tmp_path):
    program = load(model(tmp_path / "model.onnx", BODIES["a_counted_loop"]))[0]
    assert [op.type for op in program.global_block().ops].count("while") == 1
    program = load(model(tmp_path / "model.onnx", BODIES["a_known_branch"]))[0]
    assert len(program.blocks) == 1


def test_parameters_inside_of_a_loop_have_gradients(tmp_path):
    text = (
        COUNT
        + """
        y = Loop (n, true, x) <body = turn (int64 i, bool on, float[a, b] h) => (bool again, float[c, d] after) {
            again = Identity (on)
            slope = Constant <value = float[3] {0.5, 0.25, 2.0}> ()
            after = Mul (h, slope)
        }>"""
    )
    program, _, (out,) = load(model(tmp_path / "model.onnx", text))
    with fluid.program_guard(program):
        loss = fluid.layers.reduce_sum(out)
        (parameter,) = program.all_parameters()
        (gradient,) = fluid.gradients([loss], [parameter])
    (got,) = fluid.Executor(fluid.CPUPlace()).run(program, feed={"x": ROWS[2]}, fetch_list=[gradient])
    slope = np.array([0.5, 0.25, 2.0])
    np.testing.assert_allclose(got, ROWS[2].sum(0) * 3 * slope**2, 1e-5)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (TOTAL + """y = If (more) <
            then_branch = yes () => (float[a, b] left) { left = Identity (x) },
            else_branch = no () => (float c) { c = Identity (all) }>""", "node If .* equal ranks"),
        ("""y = Loop ( , , x) <body = turn (int64 i, bool on, float[a, b] h) => (bool on, float[c, d] after) {
            after = Neg (h) }>""", "node Loop .* never ends"),
        ("""zero = Constant <value = int64 {0}> ()
            some = SequenceConstruct (x, x) less = SequenceErase (some, zero)
            y = ConcatFromSequence <axis = 0> (less)""", "'less', a sequence with an element erased"),
        ("""zero = Constant <value = int64 {0}> ()
            some = SequenceConstruct (x, x) more = SequenceInsert (some, x, zero)
            y = ConcatFromSequence <axis = 0> (more)""", "SequenceInsert .* elsewhere than at the end"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_is_named(text, named, tmp_path):
    with pytest.raises(NotSupportedError, match=named):
        load(model(tmp_path / "model.onnx", text))


def test_nodes_without_counterpart_are_found_in_inner_graphs(tmp_path):
    text = (
        TOTAL
        + """y = If (more) <
        then_branch = yes () => (float[a, b] left) { left = Multinomial (x) },
        else_branch = no () => (float[c, d] right) { right = Identity (x) }>"""
    )
    with pytest.raises(NotSupportedError, match="no counterpart: Multinomial"):
        load(model(tmp_path / "model.onnx", text))


def test_damaged_inner_graphs_are_errors(tmp_path):
    path = model(
        tmp_path / "model.onnx", BODIES["a_loop_in_a_loop"] + BODIES["branches"].replace("y =", "z =")
    )
    data = path.read_bytes()
    for number in range(0, len(data), 7):
        path.write_bytes(data[:number])
        with pytest.raises((FormatError, NotSupportedError)):
            load(path)
