"""`Model`: a network with what it takes to train, evaluate and use it; a sampler for several processes."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...base.storage.files import atomic_files
from ...eager import Tensor, no_grad
from ...fluid.dygraph.layers import Layer
from ...fluid.dygraph.parallel import ParallelEnv
from ...framework import mode
from ...reader import samplers
from ..io import DataLoader, Dataset
from ..metric import Metric
from ..saving import load, save
from ..tensor.creation import to_tensor
from .callbacks import all_of
from .summary import summary

__all__ = ["DistributedBatchSampler", "Model"]


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _tensors(value: Any) -> list[Tensor]:
    return [item if isinstance(item, Tensor) else to_tensor(item) for item in _listed(value)]


class Model:
    """Trains, evaluates and uses a network (`paddle.Model`). In dynamic mode, which is the default.

    Args:
        network: a Layer.
        inputs: an `InputSpec`, or several, for the inputs of the network: says how many of a batch's tensors are
            inputs; by default as many as its `forward` needs.
        labels: the same for the labels; all other tensors of a batch are labels.

    Raises:
        TypeError: `network` is no Layer. RuntimeError: static mode is on.
    """

    def __init__(self, network: Any, inputs: Any = None, labels: Any = None) -> None:
        if not isinstance(network, Layer):
            raise TypeError(f"a Model needs a Layer as network, got {type(network).__name__}")
        if not mode.eager_by_default():
            raise RuntimeError("paddle.Model works in dynamic mode: call paddle.disable_static() first")
        self.network = network
        self.mode = "train"
        self.stop_training = False
        self._inputs, self._labels = _listed(inputs), _listed(labels)
        self._count = len(self._inputs) or _required_inputs(network.forward)
        self._optimizer: Any = None
        self._loss: Any = None
        self._metrics: list[Any] = []

    def prepare(
        self, optimizer: Any = None, loss: Any = None, metrics: Any = None, amp_configs: Any = None
    ) -> None:
        """Say how the network is trained.

        Args:
            optimizer: of the network's parameters.
            loss: called with the outputs and labels; returns a loss or several, which are added.
            metrics: a `paddle.metric.Metric`, or several.
            amp_configs: accepted; everything is computed in the types that it is in.

        Raises:
            TypeError: `loss` cannot be called, or a metric is none.
        """
        if loss is not None and not callable(loss):
            raise TypeError(f"the loss must be a Layer or a function, got {type(loss).__name__}")
        for given in (optimizer, loss, *_listed(metrics)):
            if isinstance(given, type):
                raise TypeError(
                    f"prepare got the class {given.__name__} itself: make one, {given.__name__}(...)"
                )
        for metric in _listed(metrics):
            if not isinstance(metric, Metric):
                raise TypeError(f"{type(metric).__name__} is not sub class of Metric")
        self._optimizer, self._loss, self._metrics = optimizer, loss, _listed(metrics)

    def parameters(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The parameters of the network."""
        return self.network.parameters(*args, **kwargs)

    def summary(self, input_size: Any = None, dtype: Any = None) -> dict[str, int]:
        """`paddle.summary` of the network; `input_size` is by default that of `inputs`.

        Raises ValueError if neither is there.
        """
        if input_size is None and not self._inputs:
            raise ValueError("'input_size' or 'self._input' must be set")
        if input_size is None:
            sizes = [tuple(max(size, 1) for size in spec.shape) for spec in self._inputs]
            return summary(self.network, sizes, dtype or [spec.dtype for spec in self._inputs])
        return summary(self.network, input_size, dtype)

    def train_batch(self, inputs: Any, labels: Any = None, update: bool = True) -> Any:
        """One training step on a batch: forward, backward and, if `update`, the optimizer.

        Returns a list with the losses as numbers, and with metrics a pair of it and of a list of what they say.
        Raises RuntimeError if `prepare` has not given an optimizer and a loss.
        """
        if self._optimizer is None or self._loss is None:
            raise RuntimeError("call prepare(optimizer, loss) before training")
        self.network.train()
        self.mode = "train"
        outputs, losses, metrics = self._forward(inputs, labels)
        total = losses[0]
        for loss in losses[1:]:
            total = total + loss
        total.backward()
        if update:
            self._optimizer.step()
            self._optimizer.clear_grad()
        return self._answer(losses, metrics)

    @no_grad()
    def eval_batch(self, inputs: Any, labels: Any = None) -> Any:
        """The losses and metrics of a batch, as `train_batch` returns them, with nothing changed."""
        self.network.eval()
        self.mode = "eval"
        _, losses, metrics = self._forward(inputs, labels)
        return self._answer(losses, metrics)

    @no_grad()
    def predict_batch(self, inputs: Any) -> list[np.ndarray]:
        """The outputs for a batch, as arrays."""
        self.network.eval()
        self.mode = "test"
        return [output.numpy() for output in _listed(self.network(*_tensors(inputs)))]

    def _forward(self, inputs: Any, labels: Any) -> tuple[list[Any], list[Any], list[Any]]:
        """Outputs, losses (of one element each) and the metrics of the batch."""
        outputs = _listed(self.network(*_tensors(inputs)))
        truths = _tensors(labels)
        losses = [] if self._loss is None else _listed(self._loss(*outputs, *truths))
        said = []
        for metric in self._metrics:
            computed = metric.compute(*outputs, *truths)
            arrays = [item.numpy() if isinstance(item, Tensor) else item for item in _listed(computed)]
            said.append(metric.update(*arrays))
        return outputs, losses, said

    def _answer(self, losses: list[Any], metrics: list[Any]) -> Any:
        numbers = [loss.numpy() for loss in losses]
        if not self._metrics:
            return numbers
        return (numbers, metrics) if numbers else metrics

    def save(self, path: str, training: bool = True) -> None:
        """Save the parameters as `path.pdparams` and the optimizer's state as `path.pdopt`; folders are made.

        Without `training` the network is saved as a program for inference, by `paddle.jit.save`, for which the Model
        needs `inputs`.
        """
        if not training:
            from .. import jit

            jit.save(self.network, path, input_spec=self._inputs or None)
            return
        with atomic_files():
            save(self.network.state_dict(), path + ".pdparams")
            if self._optimizer is not None:
                save(self._optimizer.state_dict(), path + ".pdopt")

    def load(self, path: str, skip_mismatch: bool = False, reset_optimizer: bool = False) -> None:
        """Load what `save` wrote.

        Args:
            path: without the endings.
            skip_mismatch: parameters that are missing or of another shape keep their values, with a warning; else
                that is an error.
            reset_optimizer: leave the optimizer as it is.

        Raises:
            RuntimeError, AssertionError: parameters that do not fit. FileNotFoundError: there is no such file.
        """
        state = load(path + ".pdparams")
        if skip_mismatch:
            self.network.set_state_dict(state)
        else:
            self.network.set_dict(state)
        if self._optimizer is not None and not reset_optimizer and os.path.exists(path + ".pdopt"):
            self._optimizer.set_state_dict(load(path + ".pdopt"))

    def fit(
        self,
        train_data: Any = None,
        eval_data: Any = None,
        batch_size: int = 1,
        epochs: int = 1,
        eval_freq: int = 1,
        log_freq: int = 10,
        save_dir: str | None = None,
        save_freq: int = 1,
        verbose: int = 2,
        drop_last: bool = False,
        shuffle: bool = True,
        num_workers: int = 0,
        callbacks: Any = None,
        accumulate_grad_batches: int = 1,
        num_iters: int | None = None,
    ) -> None:
        """Train.

        Args:
            train_data: a Dataset, or anything that yields batches, such as a DataLoader: lists of inputs and labels.
            eval_data: the same for evaluations; None: there are none.
            batch_size, drop_last, shuffle, num_workers: for Datasets, as for `paddle.io.DataLoader`.
            epochs: how often the data is gone through.
            eval_freq: after how many epochs there is an evaluation.
            log_freq: after how many batches the log has a line.
            save_dir: a folder for checkpoints; None: there are none.
            save_freq: after how many epochs.
            verbose: 0: no log; 1: a progress bar; 2: lines.
            callbacks: a callback or several.
            accumulate_grad_batches: after how many batches the parameters change.
            num_iters: the number of batches after which to stop.
        """
        if train_data is None:
            raise ValueError("train_data must be given")
        loader = _loader(train_data, batch_size, shuffle, drop_last, num_workers)
        testing = None if eval_data is None else _loader(eval_data, batch_size, False, False, num_workers)
        params = {
            "epochs": epochs,
            "steps": _length(loader),
            "batch_size": batch_size,
            "verbose": verbose,
            "log_freq": log_freq,
            "save_freq": save_freq,
            "save_dir": save_dir,
            "metrics": self._names(),
        }
        calls = all_of(self, callbacks, params, training=True)
        self.stop_training = False
        left = num_iters
        try:
            calls.on_train_begin({})
            logs: dict[str, Any] = {}
            for epoch in range(epochs):
                calls.on_epoch_begin(epoch, {})
                logs, done = self._run("train", loader, calls, accumulate_grad_batches, left)
                left = None if left is None else left - done
                calls.on_epoch_end(epoch, logs)
                if testing is not None and (epoch % eval_freq == 0 or epoch == epochs - 1):
                    self._evaluated(testing, calls)
                if self.stop_training or left == 0:
                    break
            calls.on_train_end(logs)
        finally:
            calls.close()

    def evaluate(
        self,
        eval_data: Any,
        batch_size: int = 1,
        log_freq: int = 10,
        verbose: int = 2,
        num_workers: int = 0,
        callbacks: Any = None,
        num_iters: int | None = None,
    ) -> dict[str, Any]:
        """The losses (those of the last batch, as in Paddle) and metrics of all batches; arguments as in `fit`."""
        loader = _loader(eval_data, batch_size, False, False, num_workers)
        params = {
            "verbose": verbose,
            "log_freq": log_freq,
            "metrics": self._names(),
            "steps": _length(loader),
        }
        calls = all_of(self, callbacks, params, training=False)
        try:
            logs = self._evaluated(loader, calls, num_iters)
        finally:
            calls.close()
        return {name: logs[name] for name in self._names() if name in logs}

    def _evaluated(self, loader: Any, calls: Any, limit: int | None = None) -> dict[str, Any]:
        calls.on_eval_begin({"steps": _length(loader), "metrics": self._names()})
        logs, _ = self._run("eval", loader, calls, 1, limit)
        calls.on_eval_end(logs)
        return logs

    def predict(
        self,
        test_data: Any,
        batch_size: int = 1,
        num_workers: int = 0,
        stack_outputs: bool = False,
        verbose: int = 1,
        callbacks: Any = None,
    ) -> list[Any]:
        """The outputs for all batches: for each output a list of arrays, or one array if `stack_outputs`.

        Of batches with more tensors than the network has inputs the first are taken. Other arguments as in `fit`.
        """
        loader = _loader(test_data, batch_size, False, False, num_workers)
        params = {"verbose": verbose, "log_freq": 10, "metrics": [], "steps": _length(loader)}
        calls = all_of(self, callbacks, params, training=False)
        found: list[list[np.ndarray]] = []
        try:
            calls.on_predict_begin({"steps": _length(loader)})
            logs: dict[str, Any] = {}
            for step, batch in enumerate(loader):
                calls.on_predict_batch_begin(step, {})
                given = _listed(batch)
                found.append(self.predict_batch(given[: self._count or len(given)]))
                logs = {"step": step, "batch_size": len(given[0])}
                calls.on_predict_batch_end(step, logs)
            calls.on_predict_end(logs)
        finally:
            calls.close()
        outputs = [list(parts) for parts in zip(*found, strict=True)]
        return [np.concatenate(parts) for parts in outputs] if stack_outputs else outputs

    def _names(self) -> list[str]:
        """The names of what the logs hold."""
        names = [] if self._loss is None else ["loss"]
        for metric in self._metrics:
            names += _listed(metric.name())
        return names

    def _run(
        self, what: str, loader: Any, calls: Any, every: int, limit: int | None
    ) -> tuple[dict[str, Any], int]:
        """Train on or evaluate the batches of `loader`, at most `limit`; the last logs, and how many there were.

        In training the parameters change after `every` batches, and after the last one.
        """
        for metric in self._metrics:
            metric.reset()
        logs: dict[str, Any] = {}
        done = 0
        for step, (batch, last) in enumerate(_with_last_flag(loader, limit)):
            getattr(calls, f"on_{what}_batch_begin")(step, logs)
            inputs, labels = self._parts(_listed(batch))
            if what == "train":
                answer = self.train_batch(inputs, labels, update=last or (step + 1) % every == 0)
            else:
                answer = self.eval_batch(inputs, labels)
            logs = self._logs(answer, step, len(inputs[0]))
            getattr(calls, f"on_{what}_batch_end")(step, logs)
            done += 1
        return logs, done

    def _parts(self, batch: list[Any]) -> tuple[list[Any], list[Any]]:
        """The inputs and labels of a batch."""
        count = self._count or max(len(batch) - (len(self._labels) or 1), 1)
        return batch[:count], batch[count:]

    def _logs(self, answer: Any, step: int, size: int) -> dict[str, Any]:
        losses = answer[0] if isinstance(answer, tuple) else answer
        logs: dict[str, Any] = {}
        if self._loss is not None:
            logs["loss"] = [float(np.asarray(loss).reshape(-1)[0]) for loss in losses]
        for metric in self._metrics:
            logs |= dict(zip(_listed(metric.name()), _listed(metric.accumulate()), strict=True))
        return logs | {"step": step, "batch_size": size}


def _required_inputs(forward: Any) -> int:
    """The number of required inputs of `forward`; 0 if it takes any number."""
    parameters = inspect.signature(forward).parameters.values()
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return 0
    return sum(one.default is one.empty and one.kind is not one.VAR_KEYWORD for one in parameters)


def _loader(data: Any, batch_size: int, shuffle: bool, drop_last: bool, num_workers: int) -> Any:
    if isinstance(data, Dataset):
        return DataLoader(
            data, batch_size=batch_size, shuffle=shuffle, drop_last=drop_last, num_workers=num_workers
        )
    if isinstance(data, type) or not hasattr(data, "__iter__"):
        raise TypeError(
            f"a Model reads a paddle.io.Dataset, a DataLoader or a list of batches, got {data!r:.60}"
        )
    return data


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:
        return None


def _with_last_flag(loader: Any, limit: int | None) -> Iterator[tuple[Any, bool]]:
    """Batches, at most `limit`, and whether each is the last one."""
    if limit is not None and limit <= 0:
        return
    waiting: list[Any] = []
    count = 0
    for batch in loader:
        if waiting:
            count += 1
            if count == limit:
                break
            yield waiting.pop(), False
        waiting.append(batch)
    if waiting:
        yield waiting.pop(), True


class DistributedBatchSampler(samplers.DistributedBatchSampler):
    """Lists of numbers of samples for this process of several (`paddle.incubate.hapi.distributed`).

    Every process gets as many; samples from the beginning fill up what does not come out even.

    Args:
        dataset: what knows its length.
        batch_size: how many samples each process takes at a time; positive.
        shuffle: whether a new order is drawn for each epoch, the same in each process.
        drop_last: whether a last batch that is smaller is left out.

    Raises AssertionError for other types and numbers.
    """

    def __init__(self, dataset: Any, batch_size: int, shuffle: bool = False, drop_last: bool = False) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size <= 0:
            raise AssertionError(f"batch_size should be a positive integer, got {batch_size!r}")
        for name, value in (("shuffle", shuffle), ("drop_last", drop_last)):
            if not isinstance(value, bool):
                raise AssertionError(f"{name} should be a boolean value, got {value!r}")
        self.dataset = dataset  # of any class, unlike that of `paddle.io`
        self.batch_size, self.shuffle, self.drop_last = batch_size, shuffle, drop_last
        self.nranks, self.local_rank = ParallelEnv().nranks, ParallelEnv().local_rank
        self.epoch = 0

    def __iter__(self) -> Iterator[list[int]]:
        epoch = self.epoch
        batches = super().__iter__()
        if not self.shuffle:
            self.epoch = epoch  # only orders that are drawn count
        return batches
