"""`__all__` of packages that pass on what their modules make public."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType


def public_names(package: str, hidden: Sequence[str] = ()) -> list[str]:
    """What `package` has by star imports from its modules: the names in their `__all__`, module by module.

    `hidden`: names that the package has for those who ask for them by name.

    Packages call this where type checkers do not look: these follow the star imports themselves, but would take an
    `__all__` that they cannot read for an empty one.
    """
    space = vars(sys.modules[package])
    modules = [one for one in space.values() if isinstance(one, ModuleType) and hasattr(one, "__all__")]
    own = [one for one in modules if one.__name__.startswith(f"{package}.")]
    names = [name for one in own for name in one.__all__ if space.get(name, own) is getattr(one, name)]
    return [name for name in names if name not in hidden]
