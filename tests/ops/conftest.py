"""Has every test that runs operators run once more with a GPU beside: see `on_device.py`."""

from types import CodeType, FunctionType

import pytest

from . import harness, in_eager, in_program, on_device

_RUNNERS = (harness, in_eager, in_program)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give such tests a parameter that says where operators run."""
    if _runs_operators(metafunc.function, set()):
        metafunc.parametrize("where", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)], indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have the runs with a GPU come last: what tests draw from generators of their module stays what it was."""
    items.sort(key=_with_gpu)


def _with_gpu(item: pytest.Item) -> bool:
    call = getattr(item, "callspec", None)
    return call is not None and call.params.get("where") == "cuda"


@pytest.fixture(autouse=True)
def where(request: pytest.FixtureRequest):
    """Operators run on the CPU alone, or are compared with those of a GPU."""
    if getattr(request, "param", "cpu") == "cpu":
        yield
        return
    request.getfixturevalue("cuda")
    with on_device.compared():
        yield


def _runs_operators(function: FunctionType, seen: set[object]) -> bool:
    """Whether a function of a test module comes to call what runs operators, by the names that it uses."""
    if function in seen:
        return False
    seen.add(function)
    for name in _names(function.__code__):
        used = function.__globals__.get(name)
        used = getattr(used, "__wrapped__", used)
        if isinstance(used, FunctionType):
            if used.__module__ in [module.__name__ for module in _RUNNERS]:
                if used is not harness.infer:
                    return True
            elif used.__globals__ is function.__globals__ and _runs_operators(used, seen):
                return True
            elif used.__module__ == "fluidlite.ops.registry" and used.__name__ == "find":
                return True
    return False


def _names(code: CodeType) -> set[str]:
    """All global names in a function and in the functions inside it."""
    inside = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names, inside))
