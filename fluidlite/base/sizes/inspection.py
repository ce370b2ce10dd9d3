"""What can be asked about numbers that may be sizes, without noting a guard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .polynomials import summed
from .reals import Real
from .size import Size, terms_of


def current(number: Any) -> Any:
    """The number itself; nothing is noted."""
    return number.value if isinstance(number, (Size, Real)) else number


def current_shape(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """A shape in numbers; nothing is noted."""
    return tuple([current(n) for n in shape])


def whole(values: Iterable[Any]) -> list[Any]:
    """Integers as such, and sizes as they are."""
    return [n if isinstance(n, Size) else int(n) for n in values]


def is_fixed(shape: tuple[Any, ...]) -> bool:
    """Whether a shape is the same in every step."""
    return not any(isinstance(n, Size) for n in shape)


def is_found(number: Any) -> bool:
    """Whether a number is known only when part of a run is over."""
    return isinstance(number, Size) and not number.sizes.stages.keys().isdisjoint(atoms_of(number))


def atoms_of(number: Any) -> set[int]:
    """The roots that a size is made from, by number; sizes found equal go by that of the oldest."""
    if not isinstance(number, Size):
        return set()
    found: set[int] = set()
    for atom in {atom for atoms in number.sizes.canonical(number.terms) for atom in atoms}:
        kind, a, b = number.sizes.atoms[atom]
        found |= {atom} if kind == "root" else atoms_of(a) | atoms_of(b)
    return found


def rebuilt(number: Any, roots: Mapping[int, Any]) -> Any:
    """What a size comes to if its roots are `roots`: integers, or sizes of others."""
    if not isinstance(number, Size):
        return number
    total: Any = 0
    for atoms, times in number.sizes.canonical(number.terms).items():
        part: Any = times
        for atom in atoms:
            kind, a, b = number.sizes.atoms[atom]
            if kind == "root":
                factor = roots[atom]
            else:
                divided, by = rebuilt(a, roots), rebuilt(b, roots)
                factor = divided // by if kind == "//" else divided % by
            part = part * factor
        total = total + part
    return total


def always_equal(a: Any, b: Any) -> bool:
    """Whether two sizes are equal in every step that the plan is for; nothing is noted."""
    if not isinstance(a, Size) and not isinstance(b, Size):
        return bool(a == b)
    sizes = a.sizes if isinstance(a, Size) else b.sizes
    return not sizes.canonical(summed(terms_of(b), terms_of(a), -1))
