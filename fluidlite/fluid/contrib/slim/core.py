"""`fluid.contrib.slim.core`: strategies, their context, and the loop that calls them."""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ....base.errors import EOFException
from ....base.storage.files import atomic_files, atomic_writer, write_file
from ....executor import Scope, scope_guard
from ....framework import Program
from ...small_modules import get_logger
from .graph import GraphWrapper, SlimGraphExecutor

__path__: list[str] = []  # the modules below are views: base/names/views.py

__all__ = ["Compressor", "ConfigFactory", "Context", "Strategy"]


_logger = get_logger(__name__, logging.INFO, fmt="%(asctime)s-%(levelname)s: %(message)s")

Reader = Callable[[], Iterator[Any]]


def cached_reader(reader: Reader, sampled_rate: float, cache_path: str, cached_id: int) -> Reader:
    """A reader of a random sample of the batches of `reader`, the same in each pass.

    `sampled_rate`: the fraction. The batches are cached in the folder `cache_path`/`cached_id`.
    Follows `fluid.contrib.slim.core.compressor.cached_reader`.
    """
    draws = np.random.RandomState(cached_id)
    folder = os.path.join(cache_path, str(cached_id))

    def kept() -> Iterator[Any]:
        listed = os.path.join(folder, "list")
        if os.path.exists(listed):
            with open(listed, encoding="utf8") as file:
                names = file.read().split()
            for name in names:
                with np.load(os.path.join(folder, name), allow_pickle=False) as found:
                    fields = [found[str(k)] for k in range(len(found.files))]
                yield list(zip(*fields, strict=True))
            return
        os.makedirs(folder, exist_ok=True)
        written: list[str] = []
        for batch in reader():
            if draws.uniform() < sampled_rate:
                name = f"batch{len(written)}.npz"
                fields = [np.array(field) for field in zip(*batch, strict=True)]
                with atomic_writer(os.path.join(folder, name), folders=False) as file:
                    np.savez(file, **{str(k): field for k, field in enumerate(fields)})
                written.append(name)
                yield batch
        write_file(listed, "\n".join(written), folders=False)

    return kept


class Context:
    """The state of a compression that strategies read and change (`fluid.contrib.slim.core.Context`).

    The graphs, readers, optimizers, place and scope; `epoch`, their number, `epoch_id` and `batch_id`, the current
    ones; `eval_results`, the lists of evaluations by metric; `put` and `get` for anything else.
    """

    def __init__(
        self,
        place: Any,
        scope: Scope,
        train_graph: GraphWrapper | None = None,
        train_reader: Any = None,
        eval_graph: GraphWrapper | None = None,
        eval_reader: Any = None,
        teacher_graphs: Sequence[GraphWrapper] | None = None,
        train_optimizer: Any = None,
        distiller_optimizer: Any = None,
        search_space: Any = None,
    ) -> None:
        self.epoch = 0
        self.epoch_id = 0
        self.batch_id = 0
        self.k_v: dict[Any, Any] = {}
        self.place = place
        self.scope = scope
        self.train_graph = train_graph
        self.train_reader = train_reader
        self.eval_graph = eval_graph
        self.eval_reader = eval_reader
        self.executor: SlimGraphExecutor | None = None
        self.teacher_graphs = teacher_graphs
        self.train_optimizer = train_optimizer
        self.distiller_optimizer = distiller_optimizer
        self.optimize_graph: GraphWrapper | None = None
        self.cache_path = "./eval_cache"
        self.eval_results: dict[str, list[float]] = {}
        self.skip_training = False
        self.search_space = search_space

    def to_file(self, file_name: str) -> None:
        """Write the current epoch and the evaluations as JSON."""
        write_file(
            file_name,
            json.dumps({"epoch_id": self.epoch_id, "eval_results": self.eval_results}),
            folders=False,
        )

    def from_file(self, file_name: str) -> None:
        """Read a file of `to_file`."""
        with open(file_name, encoding="utf8") as file:
            found = json.load(file)
        self.epoch_id = int(found["epoch_id"])
        self.eval_results = {
            str(name): list(map(float, values)) for name, values in found["eval_results"].items()
        }

    def eval_converged(self, metric_name: str, delta: float = 0.001) -> bool:
        """True if the last two evaluations differ by less than the fraction `delta` of the last but one."""
        results = self.eval_results.get(metric_name, [])
        if len(results) < 2:
            return False
        _logger.info("Latest evaluations: %s", results[-2:])
        return abs(results[-1] - results[-2]) / results[-2] < delta

    def run_eval_graph(
        self, sampled_rate: float | None = None, cached_id: int = 0
    ) -> tuple[np.ndarray, list[str]]:
        """The means of the evaluated metrics over `eval_reader`, and their names.

        `sampled_rate`: the fraction of the batches used, which `cached_reader` caches as `cached_id`.
        """
        assert self.eval_graph is not None
        graph = self.eval_graph.clone(for_test=True)
        executor = SlimGraphExecutor(self.place)
        reader = self.eval_reader
        if sampled_rate:
            reader = cached_reader(reader, sampled_rate, self.cache_path, cached_id)
        results, names = [], list(graph.out_nodes)
        for data in reader():
            values, names = executor.run(graph, self.scope, data=data)
            results.append(values)
        means = np.mean(np.array(results), axis=0)
        for name, value in zip(names, means, strict=True):
            _logger.info("Final eval result: %s: %s", name, value)
        return means, names

    def put(self, key: Any, value: Any) -> None:
        self.k_v[key] = value

    def get(self, key: Any) -> Any:
        """The value of `key`, or None."""
        return self.k_v.get(key)


class Compressor:
    """Trains a model epoch by epoch and calls strategies at each point (`fluid.contrib.slim.Compressor`).

    Args:
        place, scope: the device, and the scope of variables.
        train_program: computes the loss; `train_optimizer`, if given, adds an optimizer.
        train_reader: yields batches of samples.
        train_feed_list, train_fetch_list: pairs (name, variable's name); the loss is called 'loss' or 'cost'.
        eval_program, eval_reader, eval_feed_list, eval_fetch_list: the same for evaluations.
        eval_func: functions by name that evaluate a program and scope in place of `eval_reader`.
        save_eval_model: True to save the program of evaluations in checkpoints.
        prune_infer_model: names of inputs and outputs of an inference model that is saved in checkpoints.
        teacher_programs: teachers for distillation; their variables are in `scope`.
        checkpoint_path: the folder of checkpoints; None for none.
        train_optimizer, distiller_optimizer: optimizers of the loss, and of the loss with distillation.
        search_space: the space of NAS strategies.
        log_period: the number of batches between logged values.
    """

    def __init__(
        self,
        place: Any,
        scope: Scope,
        train_program: Program,
        train_reader: Any = None,
        train_feed_list: Any = None,
        train_fetch_list: Any = None,
        eval_program: Program | None = None,
        eval_reader: Any = None,
        eval_feed_list: Any = None,
        eval_fetch_list: Any = None,
        eval_func: Any = None,
        save_eval_model: bool = True,
        prune_infer_model: Any = None,
        teacher_programs: Sequence[Program] = (),
        checkpoint_path: str | None = None,
        train_optimizer: Any = None,
        distiller_optimizer: Any = None,
        search_space: Any = None,
        log_period: int = 20,
    ) -> None:
        for what, given in (
            ("train_feed_list", train_feed_list),
            ("train_fetch_list", train_fetch_list),
            ("eval_feed_list", eval_feed_list),
            ("eval_fetch_list", eval_fetch_list),
        ):
            if given is not None and not isinstance(given, (list, OrderedDict)):
                raise AssertionError(f"{what} must be a list of pairs or an OrderedDict, got {given!r}")
        if log_period <= 0:
            raise AssertionError(f"log_period must be greater than 0, got {log_period}")
        self.strategies: list[Strategy] = []
        self.epoch = 0
        self.place = place
        self.scope = scope
        self.train_graph = GraphWrapper(train_program, train_feed_list or [], train_fetch_list or [])
        self.eval_graph = GraphWrapper(eval_program, eval_feed_list or [], eval_fetch_list or [])
        self.train_reader = train_reader
        self.eval_reader = eval_reader
        self.eval_func = eval_func
        self.save_eval_model = save_eval_model
        self.prune_infer_model = prune_infer_model
        self.teacher_graphs = [GraphWrapper(program) for program in teacher_programs]
        self.checkpoint: str | None = None
        self.checkpoint_path = checkpoint_path
        self.eval_epoch = 1
        self.train_optimizer = train_optimizer
        self.distiller_optimizer = distiller_optimizer
        self.init_model: str | None = None
        self.search_space = search_space
        self.log_period = log_period

    def _add_strategy(self, strategy: Strategy) -> None:
        """Add a strategy; the number of epochs grows to its end if needed."""
        self.strategies.append(strategy)
        self.epoch = max(strategy.end_epoch, self.epoch)

    def config(self, config_file: str) -> None:
        """Read strategies and settings from a YAML file; see `ConfigFactory`."""
        settings = ConfigFactory(config_file).compressor
        self.epoch = int(settings.get("epoch", self.epoch))
        for strategy in settings["strategies"]:
            self._add_strategy(strategy)
        for name in ("checkpoint_path", "init_model", "eval_epoch"):
            if name in settings:
                setattr(self, name, settings[name])
        if self.eval_epoch <= 0:
            raise AssertionError(f"eval_epoch must be greater than 0, got {self.eval_epoch}")

    def run(self) -> GraphWrapper | None:
        """Train, evaluate and call the strategies; returns the graph of evaluations."""
        context = Context(
            place=self.place,
            scope=self.scope,
            train_graph=self.train_graph,
            train_reader=self.train_reader,
            eval_graph=self.eval_graph,
            eval_reader=self.eval_reader,
            teacher_graphs=self.teacher_graphs,
            train_optimizer=self.train_optimizer,
            distiller_optimizer=self.distiller_optimizer,
            search_space=self.search_space,
        )
        context.epoch = self.epoch
        context.executor = SlimGraphExecutor(self.place)
        if self.teacher_graphs:
            context.put("teachers", self.teacher_graphs)
        self._init_model(context)
        if self._load_checkpoint(context):
            self._call("restore_from_checkpoint", context)
        elif self.train_optimizer is not None:
            context.optimize_graph = self.train_graph.get_optimize_graph(
                self.train_optimizer, self.place, self.scope
            )
        else:
            context.optimize_graph = self.train_graph
        self._call("on_compression_begin", context)
        first = context.epoch_id
        for epoch in range(first, self.epoch):
            context.epoch_id = epoch
            self._call("on_epoch_begin", context)
            if not context.skip_training:
                self._train_one_epoch(context)
            self._call("on_epoch_end", context)
            if self.eval_epoch and (epoch + 1) % self.eval_epoch == 0:
                self._eval(context)
            self._save_checkpoint(context)
        self._call("on_compression_end", context)
        return context.eval_graph

    def _call(self, method: str, context: Context) -> None:
        for strategy in self.strategies:
            getattr(strategy, method)(context)

    def _init_model(self, context: Context) -> None:
        """Load the variables of `init_model`."""
        if self.init_model and os.path.exists(self.init_model):
            assert context.executor is not None
            with scope_guard(self.scope):
                self.train_graph.load_persistables(self.init_model, context.executor)
            self.train_graph.update_param_shape(self.scope)
            self.train_graph.update_groups_of_conv()
            _logger.info("Init model from: %s", self.init_model)

    def _train_one_epoch(self, context: Context) -> None:
        graph, executor = context.optimize_graph, context.executor
        if graph is None or executor is None or context.train_reader is None:
            return
        for batch, data in enumerate(context.train_reader()):
            context.batch_id = batch
            self._call("on_batch_begin", context)
            try:
                values, names = executor.run(graph, context.scope, data=data)
            except EOFException:
                break
            if batch % self.log_period == 0:
                text = "; ".join(f"{name}={value:.6f}" for name, value in zip(names, values, strict=True))
                _logger.info("epoch: %d; batch_id: %d; %s", context.epoch_id, batch, text)
            self._call("on_batch_end", context)
        context.batch_id = 0

    def _eval(self, context: Context) -> None:
        """Add an evaluation to `context.eval_results`."""
        if self.eval_func is not None:
            assert context.eval_graph is not None
            results = [
                (name, float(evaluate(context.eval_graph.program, self.scope)))
                for name, evaluate in self.eval_func.items()
            ]
        elif context.eval_reader is not None:
            values, names = context.run_eval_graph()
            results = [(name, float(value)) for name, value in zip(names, values, strict=True)]
        else:
            return
        for name, value in results:
            context.eval_results.setdefault(name, []).append(value)

    def _save_checkpoint(self, context: Context) -> None:
        """Write the state after an epoch to the folder `checkpoint_path`/number."""
        if not self.checkpoint_path or context.optimize_graph is None or context.executor is None:
            return
        folder = os.path.join(self.checkpoint_path, str(context.epoch_id))
        os.makedirs(folder, exist_ok=True)
        with atomic_files(), scope_guard(self.scope):
            context.to_file(os.path.join(folder, "context"))
            context.optimize_graph.save_persistables(folder, context.executor)
            if self.save_eval_model and context.eval_graph is not None:
                context.eval_graph.save_model(os.path.join(folder, "eval_model"), context.executor)
            if self.prune_infer_model and context.eval_graph is not None:
                model = os.path.join(folder, "eval_model")
                context.eval_graph.save_infer_model(model, context.executor, self.prune_infer_model)

    def _load_checkpoint(self, context: Context) -> bool:
        """Load the last state of `checkpoint_path`; returns False if there is none."""
        path = self.checkpoint_path
        epochs = [
            int(name)
            for name in (os.listdir(path) if path and os.path.isdir(path) else ())
            if name.isdigit() and os.path.isfile(os.path.join(path or "", name, "context"))
        ]
        if not epochs or path is None:
            return False
        folder = os.path.join(path, str(max(epochs)))
        context.from_file(os.path.join(folder, "context"))
        context.epoch_id += 1
        context.optimize_graph = self.train_graph
        if self.train_optimizer is not None:
            context.optimize_graph = self.train_graph.get_optimize_graph(
                self.train_optimizer, self.place, self.scope
            )
        assert context.executor is not None
        with scope_guard(self.scope):
            context.optimize_graph.load_persistables(folder, context.executor)
        _logger.info("Load checkpoint from: %s", folder)
        return True


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
    for module in _MODULES:
        cls = getattr(importlib.import_module(f"{__package__}.{module}"), str(name), None)
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
