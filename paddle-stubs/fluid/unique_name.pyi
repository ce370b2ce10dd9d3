# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.base.unique_name import (
    DygraphParameterNameChecker as DygraphParameterNameChecker,
    UniqueNameGenerator as UniqueNameGenerator,
    generate as generate,
    guard as guard,
    switch as switch,
)
from fluidlite.unique_name import (
    dygraph_parameter_name_checker as dygraph_parameter_name_checker,
    generate_with_ignorable_key as generate_with_ignorable_key,
    generator as generator,
    signature_safe_contextmanager as signature_safe_contextmanager,
)
