# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.unique_name import (
    DygraphParameterNameChecker as DygraphParameterNameChecker,
    UniqueNameGenerator as UniqueNameGenerator,
    dygraph_parameter_name_checker as dygraph_parameter_name_checker,
    generate as generate,
    generate_with_ignorable_key as generate_with_ignorable_key,
    generator as generator,
    guard as guard,
    signature_safe_contextmanager as signature_safe_contextmanager,
    switch as switch,
)
