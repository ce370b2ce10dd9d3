"""`ConfigFactory`: strategies and their arguments from a YAML file."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

__all__ = ["ConfigFactory", "PLUGINS"]

PLUGINS = ["pruners", "quantizers", "distillers", "strategies", "controllers"]
_MODULES = ("prune", "quantization", "distillation", "searcher")


class ConfigFactory:
    """Makes the objects that a YAML file describes (`fluid.contrib.slim.core.ConfigFactory`).

    Sections named in PLUGINS define objects by a name, a `class` of `fluid.contrib.slim` and the arguments of its
    constructor; arguments may be names of objects. The section `compressor` has `epoch`, `checkpoint_path`,
    `init_model`, `eval_epoch` and the names of `strategies`.

    `config`: the path of the file. Raises ImportError without PyYAML, ValueError for unknown classes.
    """

    def __init__(self, config: str) -> None:
        self.instances: dict[str, Any] = {}
        self.compressor: dict[str, Any] = {"strategies": []}
        self.version: int | None = None
        self._parse_config(config)

    def instance(self, name: str) -> Any:
        """The object of this name, or None."""
        return self.instances.get(name)

    def _parse_config(self, config: str) -> None:
        try:
            yaml = importlib.import_module("yaml")
        except ImportError:
            raise ImportError(
                "ConfigFactory reads YAML files by the package PyYAML, which is missing"
            ) from None
        with open(config, encoding="utf8") as file:
            sections = yaml.safe_load(file) or {}
        self.version = int(sections.get("version", 1))
        for section in PLUGINS:
            for name, attrs in (sections.get(section) or {}).items():
                if name not in self.instances:
                    self._new_instance(name, attrs, sections)
        described = dict(sections.get("compressor") or {})
        names = described.pop("strategies", None) or []
        self.compressor.update(described)
        unknown = [name for name in names if name not in self.instances]
        if unknown:
            raise ValueError(
                f"{config}: the compressor names the strategy {unknown[0]!r}, which is not described"
            )
        self.compressor["strategies"] = [self.instances[name] for name in names]

    def _new_instance(self, name: str, attrs: dict[str, Any], sections: dict[str, Any]) -> Any:
        kind = _class(attrs.get("class"))
        if kind is None:
            raise ValueError(f"{name}: fluid.contrib.slim has no class {attrs.get('class')!r}")
        known = {key: value for section in PLUGINS for key, value in (sections.get(section) or {}).items()}

        def meant(value: Any) -> Any:
            if isinstance(value, list):
                return [meant(item) for item in value]
            if not isinstance(value, str) or value not in known or value == name:
                return value
            return self.instances.get(value) or self._new_instance(value, known[value], sections)

        taken = inspect.signature(kind).parameters
        arguments = {key: meant(value) for key, value in attrs.items() if key in taken}
        self.instances[name] = kind(**arguments)
        return self.instances[name]


def _class(name: Any) -> Any:
    slim = __package__.rpartition(".")[0]
    for module in _MODULES:
        cls = getattr(importlib.import_module(f"{slim}.{module}"), str(name), None)
        if isinstance(cls, type):
            return cls
    return None


class Strategy:
    """Base of strategies, which do nothing by themselves (`fluid.contrib.slim.core.Strategy`).

    `start_epoch`, `end_epoch`: the epochs between which it works. Each method gets the `Context`.
    """

    def __init__(self, start_epoch: int = 0, end_epoch: int = 0) -> None:
        self.start_epoch = start_epoch
        self.end_epoch = end_epoch

    def on_compression_begin(self, context: Any) -> None:
        """Before the first epoch."""

    def on_epoch_begin(self, context: Any) -> None:
        """Before each epoch."""

    def on_epoch_end(self, context: Any) -> None:
        """After each epoch."""

    def on_batch_begin(self, context: Any) -> None:
        """Before each batch."""

    def on_batch_end(self, context: Any) -> None:
        """After each batch."""

    def on_compression_end(self, context: Any) -> None:
        """After the last epoch."""

    def restore_from_checkpoint(self, context: Any) -> None:
        """After the checkpoint of an earlier run has been loaded."""
