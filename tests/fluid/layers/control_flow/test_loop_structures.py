"""Dictionaries and lists as loop variables of while_loop, which a body may change in place; as in Paddle 1.8.5."""

import pytest

import fluidlite as fluid
from fluidlite import layers

pytestmark = pytest.mark.usefixtures("alone")


def number(value):
    return layers.fill_constant([1], "int32", value)


def replace(given):
    return {"i": given["i"] + 1, "deep": {"all": [given["deep"]["all"][0] * 2, given["i"]]}}


def change(given):
    given["deep"]["all"][1] = given["i"]
    given["i"] = given["i"] + 1
    given["deep"]["all"][0] = given["deep"]["all"][0] * 2
    return [given]


@pytest.mark.parametrize("body", [replace, change])
@pytest.mark.parametrize("eager", [False, True])
def test_dictionaries_are_loop_variables(body, eager):
    with fluid.dygraph.guard() if eager else fluid.unique_name.guard():
        given = {"i": number(0), "deep": {"all": [number(1), number(7)]}}
        before = [given["i"], *given["deep"]["all"]]
        (made,) = layers.while_loop(lambda d: layers.less_than(d["i"], number(4)), body, [given])
        results = [made["i"], *made["deep"]["all"]]
        if eager:
            values = [value.numpy() for value in results]
        else:
            assert made is given
            assert all(one is other for one, other in zip(results, before, strict=True))
            values = fluid.Executor(fluid.CPUPlace()).run(fetch_list=results)
        assert [value.tolist() for value in values] == [[4], [16], [3]]


@pytest.mark.parametrize(
    "body",
    [
        lambda d: [{**d, "more": d["i"]}],
        lambda d: [d["all"].append(d["i"]) or d],
        lambda d: [d, d],
        lambda d: [[d]],
    ],
)
def test_a_body_keeps_the_structure(body):
    given = {"i": number(0), "all": [number(1)]}
    with pytest.raises(ValueError, match="the same arity"):
        layers.while_loop(lambda d: layers.less_than(d["i"], number(4)), body, [given])
