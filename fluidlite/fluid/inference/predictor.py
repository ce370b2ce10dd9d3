"""Predictors: a saved model as an object with inputs and outputs (`fluid.core.create_paddle_predictor`)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...backend import device_at, to_host
from ...base.errors import EnforceNotMet, MissingFileError
from ...base.place import CPUPlace, CUDAPlace, resolve
from ...base.storage.files import atomic_files, write_file
from ...executor import LoDTensor, Scope, scope_guard
from ...executor.executor import run_program
from ...framework import Program
from ...framework.serialization.descs import ProgramDesc
from ..io.inference import MODEL, ends_of, parse_model
from ..io.saving import load_persistables, save_persistables
from .config import AnalysisConfig, NativeConfig
from .tensors import PaddleTensor, ZeroCopyTensor, dtype_name

_log = logging.getLogger(__name__)


class PaddlePredictor:
    """A model with parameters, ready to run (`fluid.core.PaddlePredictor`); `create_paddle_predictor` makes one.

    One thread uses a predictor at a time; clones share its parameters and may run at the same time.
    """

    class Config:
        """The files of a model (`PaddlePredictor.Config`)."""

        def __init__(self) -> None:
            self.model_dir = ""

    def __init__(self, program: Program, scope: Scope, place: Any, by_name: bool) -> None:
        self._program, self._scope, self._by_name = program, scope, by_name
        self._place = place
        self._device = device_at(resolve(place))
        self._feeds, self._fetches = ends_of(program, "the model")
        for name in self._feeds:  # operators check what they get, as in Fluid's predictors
            program.global_block().var(name).need_check_feed = False
        self._held: dict[str, LoDTensor] = {name: LoDTensor() for name in self._feeds}
        self._wanted = list(self._fetches)

    def get_input_names(self) -> list[str]:
        """The names of the inputs, in the order in which `run` takes them."""
        return list(self._feeds)

    def get_output_names(self) -> list[str]:
        return list(self._fetches)

    def get_input_tensor_shape(self) -> dict[str, list[int]]:
        """The declared shapes of the inputs, with -1 for dynamic dimensions."""
        block = self._program.global_block()
        return {name: list(block.var(name).shape) for name in sorted(self._feeds)}

    def run(self, inputs: Sequence[PaddleTensor]) -> list[PaddleTensor]:
        """The outputs for `inputs`.

        Another number of inputs than the model has gives no outputs, and a line in the log, as in Fluid.

        Raises TypeError for anything but PaddleTensors, EnforceNotMet for elements or sequences that do not fit.
        """
        if not isinstance(inputs, (list, tuple)) or not all(
            isinstance(tensor, PaddleTensor) for tensor in inputs
        ):
            raise TypeError("run(): incompatible function arguments: it takes a list of PaddleTensor")
        if len(inputs) != len(self._feeds):
            _log.error("wrong feed input size, need %d but get %d", len(self._feeds), len(inputs))
            return []
        feed = {}
        for name, tensor in zip(self._feeds, inputs, strict=True):
            if self._by_name and tensor.name:
                if tensor.name not in self._held:
                    _log.error("feed names from program do not have name: [%s]", tensor.name)
                    return []
                name = tensor.name
            value = LoDTensor.wrap(tensor.array())
            if tensor.lod:
                value.set_lod(tensor.lod)
            feed[name] = value
        if len(feed) != len(self._feeds):
            _log.error("inputs are missing: %s", ", ".join(name for name in self._feeds if name not in feed))
            return []
        return [
            _output(name, value)
            for name, value in zip(self._fetches, self._run(feed, self._fetches), strict=True)
        ]

    def get_input_tensor(self, name: str) -> ZeroCopyTensor:
        """The input `name`, to be filled before `zero_copy_run`. Raises EnforceNotMet for an unknown variable."""
        self._known(name)
        return ZeroCopyTensor(name, lambda: self._tensor(name))

    def get_output_tensor(self, name: str) -> ZeroCopyTensor:
        """The output `name` of `zero_copy_run`, or another variable of the model.

        Raises EnforceNotMet if there is no such variable.
        """
        self._known(name)
        block = self._program.global_block()
        if name not in self._wanted and name not in self._feeds and not block.var(name).persistable:
            self._wanted.append(name)
        return ZeroCopyTensor(name, lambda: self._tensor(name))

    def zero_copy_run(self) -> bool:
        """Compute the outputs from the input tensors; returns True.

        Raises EnforceNotMet, naming it, for an input that holds nothing, or whose elements or sequences do not fit.
        """
        feed = {}
        for name in self._feeds:
            tensor = self._held[name]
            if tensor.array is None:
                raise EnforceNotMet(
                    f"The Tensor in the Input Variable {name!r} is not initialized: fill get_input_tensor({name!r})"
                )
            tensor._take_lod(tensor._lod)
            feed[name] = tensor
        for name, value in zip(self._wanted, self._run(feed, self._wanted), strict=True):
            self._held[name] = value
        return True

    def clone(self) -> PaddlePredictor:
        """A predictor with the same parameters and inputs of its own."""
        copy = type(self).__new__(type(self))
        PaddlePredictor.__init__(
            copy, self._program.clone(), self._scope.new_scope(), self._place, self._by_name
        )
        return copy

    def scope(self) -> Scope:
        """The scope of the parameters."""
        return self._scope

    def get_serialized_program(self) -> bytes:
        """The program as bytes; `Program.parse_from_string` reads them."""
        return self._program.desc.serialize_to_string()

    def _run(self, feed: dict[str, Any], names: Sequence[str]) -> list[Any]:
        return run_program(self._program, feed, tuple(names), self._scope, False, self._device)

    def _known(self, name: str) -> None:
        if not self._program.global_block().has_var(name):
            raise EnforceNotMet(f"no name called {name}: the model has no such variable")

    def _tensor(self, name: str) -> LoDTensor:
        if name not in self._held:
            holder = self._scope.find_var(name)
            if holder is not None and holder.is_set():
                return holder.get_tensor()
            self._held[name] = LoDTensor()
        return self._held[name]


class AnalysisPredictor(PaddlePredictor):
    """The predictor of an `AnalysisConfig` (`fluid.core.AnalysisPredictor`)."""

    def __init__(self, config: AnalysisConfig) -> None:
        if config._used:
            raise EnforceNotMet(
                "Note: Each config can only be used for one predictor; AnalysisConfig(config) copies it"
            )
        program, scope = _loaded(config._dir, config._prog, config._params, config._buffers)
        config._used = True
        super().__init__(program, scope, config.place(), config.specify_input_name())

    def program(self) -> ProgramDesc:
        """The program of the predictor."""
        return ProgramDesc(self._program)

    def SaveOptimModel(self, dir: str) -> None:  # noqa: N802 - its name in Fluid
        """Write the model into the folder `dir`, as files `model` and `params`."""
        with atomic_files(), scope_guard(self._scope):
            write_file(Path(dir, "model"), self.get_serialized_program())
            save_persistables(None, dir, self._program, "params")


class NativePaddlePredictor(PaddlePredictor):
    """The predictor of a `NativeConfig` (`fluid.core.NativePaddlePredictor`)."""

    def __init__(self, config: NativeConfig) -> None:
        program, scope = _loaded(config.model_dir, config.prog_file, config.param_file, None)
        place = CUDAPlace(config.device) if config.use_gpu else CPUPlace()
        super().__init__(program, scope, place, config.specify_input_name)


def create_paddle_predictor(config: AnalysisConfig | NativeConfig) -> PaddlePredictor | None:
    """A predictor for the model of a configuration (`fluid.core.create_paddle_predictor`).

    None, and a line in the log, for a configuration without a model, as in Fluid.

    Raises:
        EnforceNotMet: a file is missing (then also FileNotFoundError), damaged or foreign (then also ValueError); or
            the AnalysisConfig was used before.
        NotSupportedError: the program has operators that fluidlite does not have, or that do more than compute (see
            `io.inference.parse_model`).
        TypeError: for another configuration.
    """
    make: Any
    if isinstance(config, NativeConfig):
        named = bool(config.model_dir or (config.prog_file and config.param_file))
        make = NativePaddlePredictor
    elif isinstance(config, AnalysisConfig):
        named = bool(config._buffers or config._dir or (config._prog and config._params))
        make = AnalysisPredictor
    else:
        raise TypeError(
            f"create_paddle_predictor takes an AnalysisConfig or NativeConfig, got {type(config).__name__}"
        )
    if not named:
        _log.error("Either model_dir or (prog_file, param_file) should be set.")
        return None
    return make(config)


def _loaded(
    folder: str, model: str, params: str, buffers: tuple[bytes, bytes] | None
) -> tuple[Program, Scope]:
    """The program of a model, and a scope with its parameters."""
    if buffers is not None:
        data, source = buffers[0], "the program given as bytes"
        where: tuple[Any, Any] = (None, buffers[1])
    else:
        path = Path(model) if model and params else Path(folder, MODEL)
        try:
            data, source = path.read_bytes(), str(path)
        except OSError as error:
            raise MissingFileError(f"Cannot open file {path}: {error.strerror}") from None
        where = (Path(params).parent, Path(params).name) if model and params else (folder, None)
    program, scope = parse_model(data, source), Scope()
    if any(var.persistable for var in program.list_vars()):
        with scope_guard(scope):
            load_persistables(None, where[0], program, where[1])
    return program, scope


def _output(name: str, value: Any) -> PaddleTensor:
    array = to_host(value.array)
    dtype_name(array)
    return PaddleTensor(array, name, value.lod(), copy=False)
