"""Every declared operator is described, tested, and has the gradient it should have."""

import re
from pathlib import Path

import pytest

from fluidlite.framework.gradients import blocks as backward_blocks
from fluidlite.ops import registry

TESTS = "\n".join(path.read_text() for path in Path(__file__).parent.parent.rglob("test_*.py"))
FORWARD = [name for name in registry.known_types() if "_grad" not in name]


@pytest.mark.parametrize("op_type", registry.known_types())
def test_is_described(op_type):
    definition = registry.find(op_type)
    assert len(definition.doc) >= 6, f"operator {op_type} needs a doc: a sentence that says what it computes"
    runs = definition.kernel is not None or definition.effects.host or definition.effects.control
    assert runs, f"operator {op_type} has no kernel"
    assert definition.infer is not None or definition.effects.host, f"operator {op_type} has no shape rule"


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


@pytest.mark.parametrize("op_type", FORWARD)
def test_has_a_gradient_or_cannot(op_type):
    definition = registry.find(op_type)
    no_grad = {slot.name for slot in definition.output_slots} <= set(definition.no_grad)
    effects = definition.effects
    listed = op_type in WITHOUT_GRADIENT or no_grad or effects.host or effects.random
    if definition.grad is None and op_type not in backward_blocks.GRADIENTS:
        assert listed, f"operator {op_type} has no gradient: give it one or list it in WITHOUT_GRADIENT"
    else:
        assert op_type not in WITHOUT_GRADIENT, f"operator {op_type} has a gradient: take it off the list"


def test_list_names_operators():
    unknown = WITHOUT_GRADIENT - set(registry.known_types())
    assert not unknown, f"no such operators: {sorted(unknown)}"


@pytest.mark.parametrize("op_type", registry.known_types())
def test_slots_and_places_are_declared(op_type):
    definition = registry.find(op_type)
    outputs = {slot.name for slot in definition.output_slots}
    inputs = {slot.name for slot in definition.input_slots}
    planning = definition.planning
    for out, source in (*planning.inplace, *([planning.view] if planning.view else [])):
        assert out in outputs and source in inputs, f"operator {op_type}: {out} in place of {source}"
    assert set(definition.no_grad) <= inputs | outputs
