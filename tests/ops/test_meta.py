"""Every declared operator is described, tested, and has the gradient it should have."""

import re
from pathlib import Path

from fluidlite.framework.gradients import blocks as backward_blocks
from fluidlite.ops import registry

TESTS = "\n".join(path.read_text() for path in Path(__file__).parent.parent.rglob("test_*.py"))
ALL = [registry.find(name) for name in registry.known_types()]
FORWARD = [name for name in registry.known_types() if "_grad" not in name]


def test_all_are_described():
    for definition in ALL:
        assert len(definition.doc) >= 6, (
            f"{definition.type} needs a doc: a sentence that says what it computes"
        )
        runs = definition.kernel is not None or definition.effects.host or definition.effects.control
        assert runs, f"operator {definition.type} has no kernel"
        assert definition.infer or definition.effects.host, f"operator {definition.type} has no shape rule"


def _mentioned() -> set[str]:
    """The operators that the tests name, in a string of its own or in an f-string with parts left open."""
    plain = set(re.findall(r"[\"'](\w+)[\"']", TESTS))
    patterns = [re.sub(r"\{\w+\}", "0", text) for text in set(re.findall(r'f"(\w*\{\w+\}\w*)"', TESTS))]
    open_ = [re.compile(text.replace("0", r"\w+")) for text in patterns if len(text) >= 8]
    return {
        op_type
        for op_type in FORWARD
        if op_type in plain
        # A family's tests list what follows the common part of the name.
        or any(form.fullmatch(op_type) for form in open_)
        and (op_type.split("_", 1)[-1] in plain or re.search(r"\d", op_type))
    }


def test_all_are_tested():
    missing = sorted(set(FORWARD) - _mentioned())
    assert not missing, f"no test mentions the operators {missing}"


# What has no gradient in Fluid 1.8 either: truths, indices, constants, metrics, updates, bookkeeping.
WITHOUT_GRADIENT = {
    "accuracy", "adadelta", "adagrad", "adam", "adamax", "arg_max", "arg_min", "assign_value", "auc",
    "average_accumulates", "clip_by_norm", "decayed_adagrad", "dense_from_selected_rows", "diag", "dpsgd",
    "elementwise_floordiv", "elementwise_mod", "eye", "fc", "feed", "fetch", "fill_any_like", "fill_constant",
    "fill_constant_batch_size_like", "fill_zeros_like", "ftrl", "gaussian_random",
    "gaussian_random_batch_size_like", "get_tensor_from_selected_rows", "increment", "lamb", "lars_momentum",
    "linspace", "mean_iou", "merge_selected_rows", "momentum", "one_hot", "one_hot_v2", "proximal_adagrad",
    "proximal_gd", "range", "rmsprop", "sgd", "truncated_gaussian_random", "uniform_random",
    "uniform_random_batch_size_like",
}  # fmt: skip


def test_all_have_a_gradient_or_cannot():
    missing = {
        definition.type
        for definition in map(registry.find, FORWARD)
        if definition.grad is None and definition.type not in backward_blocks.GRADIENTS
    }
    assert WITHOUT_GRADIENT <= missing, "take what has a gradient, or is no operator, off the list"
    for definition in map(registry.find, missing - WITHOUT_GRADIENT):
        no_grad = {slot.name for slot in definition.output_slots} <= set(definition.no_grad)
        assert no_grad or definition.effects.host or definition.effects.random, (
            f"operator {definition.type} has no gradient: give it one or list it in WITHOUT_GRADIENT"
        )


def test_slots_and_places_are_declared():
    for definition in ALL:
        outputs = {slot.name for slot in definition.output_slots}
        inputs = {slot.name for slot in definition.input_slots}
        planning = definition.planning
        for out, source in (*planning.inplace, *([planning.view] if planning.view else [])):
            assert out in outputs and source in inputs, f"{definition.type}: {out} in place of {source}"
        assert set(definition.no_grad) <= inputs | outputs, definition.type
