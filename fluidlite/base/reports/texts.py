"""Short texts of objects for prompts and notebook cells, without addresses."""

from __future__ import annotations

from typing import Any


class Text(str):
    """A text of several lines, which notebooks show as it is printed and not as a quoted string."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


class ShowsArguments:
    """A class whose instances are shown with the arguments that differ from their defaults: `ParamAttr(name='w')`.

    An argument is read from the attribute of its name, with or without an underscore, or from the dictionary `_attrs`.
    """

    _always_shown: tuple[str, ...] = ()

    def __repr__(self) -> str:
        import inspect  # slow to import

        given = []
        for name, parameter in inspect.signature(type(self).__init__).parameters.items():
            value = self._argument(name, parameter.default)
            text = shortly(value)
            if text != shortly(parameter.default) or name in self._always_shown:
                given.append(f"{name}={text}")
        return f"{type(self).__name__}({', '.join(given)})"

    def _argument(self, name: str, default: Any) -> Any:
        """The value of an argument; the default, if it is not kept."""
        kept = vars(self)
        attrs = kept.get("_attrs") or {}
        return kept.get(name, kept.get(f"_{name}", attrs.get(name, default)))


def shortly(value: Any) -> str:
    """A value as a short text: of variables and functions the name, of long lists and arrays the size."""
    if hasattr(type(value), "stop_gradient") and hasattr(value, "name"):
        return repr(value.name)
    if isinstance(value, (list, tuple)) and len(value) > 4:
        return f"[{len(value)} items]"
    if hasattr(value, "dtype") and getattr(value, "size", 1) > 4:
        return f"array of shape {list(value.shape)}"
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    return repr(value)


def names_shortly(names: list[str], most: int = 5) -> str:
    """Some names in quotes; of more than `most` how many others there are."""
    text = ", ".join(map(repr, names[:most]))
    return f"{text} and {len(names) - most} more" if len(names) > most else text
