"""Every executor test builds its own programs and runs in a scope of its own."""

import pytest

import fluidlite as fluid
from fluidlite.base import unique_name


@pytest.fixture(autouse=True)
def fresh():
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        yield
