"""Utilities of training scripts for click models (`fluid.incubate.fleet.utils.fleet_util`)."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from .....base.errors import NotSupportedError
from .....base.place import CPUPlace, Place
from .....executor import Executor, Scope, global_scope, scope_guard
from .....framework import Program, Variable
from .... import io
from ..parameter_server.distribute_transpiler import fleet as fleet_transpiler
from . import utils
from .click_metrics import area_under_curve, bucket_error
from .hdfs import HDFSClient

__all__ = ["FleetUtil"]

_logger = logging.getLogger(__name__)

_PATCH, _BASE = "xbox_patch_done.txt", "xbox_base_done.txt"


class FleetUtil:
    """Metrics over all workers, lists of saved models, and inspection of programs (`FleetUtil`).

    Args:
        mode: 'transpiler' or 'pslib'; for both the workers are those of
            `fluid.incubate.fleet.parameter_server.distribute_transpiler.fleet`, and methods that need servers of PSLib
            raise NotSupportedError.

    Raises:
        ValueError: an unknown mode.

    Follows `fluid.incubate.fleet.utils.fleet_util.FleetUtil`.
    """

    def __init__(self, mode: str = "pslib") -> None:
        if mode not in ("pslib", "transpiler"):
            raise ValueError('Please choose one mode from ["pslib", "transpiler"]')

    def _first(self) -> bool:
        return bool(fleet_transpiler.worker_index() == 0)

    def rank0_print(self, s: str) -> None:
        """Print a line in the first worker."""
        if self._first():
            print(s, flush=True)

    def rank0_info(self, s: str) -> None:
        """Log information in the first worker."""
        if self._first():
            _logger.info(s)

    def rank0_error(self, s: str) -> None:
        """Log an error in the first worker."""
        if self._first():
            _logger.error(s)

    def set_zero(
        self, var_name: str, scope: Scope | None = None, place: Place | None = None, param_type: str = "int64"
    ) -> None:
        """Fill a variable with zeros of this type."""
        tensor = (scope or global_scope()).var(var_name).get_tensor()
        tensor.set(np.zeros(tensor.shape(), param_type), place or CPUPlace())

    def _sum(self, scope: Scope | None, name: str) -> np.ndarray | None:
        """The sum over all workers of a variable; None if it is not set."""
        holder = (scope or global_scope()).find_var(name)
        if holder is None or not holder.is_set():
            return None
        own = np.array(holder.get_tensor())
        total = np.zeros_like(own)
        fleet_transpiler._role_maker.all_reduce_worker(own, total)
        return total

    def _counts(
        self, scope: Scope | None, stat_pos: str, stat_neg: str
    ) -> tuple[np.ndarray, np.ndarray] | None:
        pos, neg = self._sum(scope, stat_pos), self._sum(scope, stat_neg)
        if pos is None or neg is None:
            self.rank0_print("not found auc bucket")
            return None
        return pos.reshape(-1), neg.reshape(-1)

    def get_global_auc(
        self,
        scope: Scope | None = None,
        stat_pos: str = "_generated_var_2",
        stat_neg: str = "_generated_var_3",
    ) -> float | None:
        """The AUC over all workers, from the counters of `layers.auc`; None without counters."""
        counts = self._counts(scope, stat_pos, stat_neg)
        return None if counts is None else area_under_curve(*counts)

    def print_global_auc(
        self,
        scope: Scope | None = None,
        stat_pos: str = "_generated_var_2",
        stat_neg: str = "_generated_var_3",
        print_prefix: str = "",
    ) -> None:
        """Print `get_global_auc` in the first worker."""
        self.rank0_print(f"{print_prefix} global auc = {self.get_global_auc(scope, stat_pos, stat_neg)}")

    def get_global_metrics(
        self,
        scope: Scope | None = None,
        stat_pos_name: str = "_generated_var_2",
        stat_neg_name: str = "_generated_var_3",
        sqrerr_name: str = "sqrerr",
        abserr_name: str = "abserr",
        prob_name: str = "prob",
        q_name: str = "q",
        pos_ins_num_name: str = "pos",
        total_ins_num_name: str = "total",
    ) -> list[Any]:
        """The metrics of `contrib.layers.ctr_metric_bundle` over all workers.

        A list: AUC, bucket error, mean absolute error, root mean squared error, actual click rate, predicted click
        rate, their quotient, mean of q, number of samples. Nine times None without counters.
        """
        counts = self._counts(scope, stat_pos_name, stat_neg_name)
        names = (sqrerr_name, abserr_name, prob_name, q_name, pos_ins_num_name, total_ins_num_name)
        sums = [self._sum(scope, name) for name in names]
        if counts is None or any(value is None for value in sums):
            return [None] * 9
        squares, errors, prob, q, pos, total = (value.reshape(-1)[0] for value in sums if value is not None)
        with np.errstate(all="ignore"):
            seen, predicted = pos / total, prob / total
            metrics = [errors / total, float(np.sqrt(np.float64(squares / total))), seen, predicted]
            quotient = seen / predicted if abs(predicted) > 1e-6 else type(seen)(0)
        return [area_under_curve(*counts), bucket_error(*counts), *metrics, quotient, q / total, int(total)]

    def print_global_metrics(
        self,
        scope: Scope | None = None,
        stat_pos_name: str = "_generated_var_2",
        stat_neg_name: str = "_generated_var_3",
        sqrerr_name: str = "sqrerr",
        abserr_name: str = "abserr",
        prob_name: str = "prob",
        q_name: str = "q",
        pos_ins_num_name: str = "pos",
        total_ins_num_name: str = "total",
        print_prefix: str = "",
    ) -> None:
        """Print `get_global_metrics` in the first worker."""
        metrics = self.get_global_metrics(
            scope,
            stat_pos_name,
            stat_neg_name,
            sqrerr_name,
            abserr_name,
            prob_name,
            q_name,
            pos_ins_num_name,
            total_ins_num_name,
        )
        if metrics[0] is None:
            return
        labels = "AUC BUCKET_ERROR MAE RMSE Actural_CTR Predicted_CTR COPC".split()
        texts = [f"{label}={value:.6f}" for label, value in zip(labels, metrics, strict=False)]
        more = f"MEAN Q_VALUE={metrics[7]:.6f} Ins number={metrics[8]}"
        self.rank0_print(f"{print_prefix} global {' '.join(texts)} {more}")

    def get_online_pass_interval(
        self, days: str, hours: str, split_interval: int, split_per_pass: int, is_data_hourly_placed: bool
    ) -> list[list[str]]:
        """The data splits of each pass over a day: lists of names `HHMM`, or `HH` if data is stored by hour.

        Args:
            days: accepted and without effect.
            hours: the hours to train with, as `0 1 2` or `{0..23}`.
            split_interval: the minutes of a split.
            split_per_pass: the number of splits in a pass.
            is_data_hourly_placed: True if splits are named by hours.
        """
        listed = hours.strip("{} ").replace("..", " ").split()
        first, last = int(listed[0]), int(listed[-1])
        minutes = range(0, (last - first + 1) * 60 // split_interval * split_interval, split_interval)
        names = [
            f"{first + at // 60:02d}" + ("" if is_data_hourly_placed else f"{at % 60:02d}") for at in minutes
        ]
        passes = len(names) // split_per_pass
        return [names[k * split_per_pass : (k + 1) * split_per_pass] for k in range(passes)]

    # Programs.

    def program_type_trans(self, prog_dir: str, prog_fn: str, is_text: bool) -> str:
        """See `utils.program_type_trans`."""
        return utils.program_type_trans(prog_dir, prog_fn, is_text)

    def draw_from_program_file(
        self, model_filename: str, is_text: bool, output_dir: str, output_filename: str
    ) -> None:
        """Draw the program in a file; see `utils.graphviz`."""
        self.draw_from_program(utils.load_program(model_filename, is_text), output_dir, output_filename)

    def draw_from_program(self, program: Program, output_dir: str, output_name: str) -> None:
        """Draw a program; see `utils.graphviz`."""
        utils.graphviz(program.global_block(), output_dir, output_name)

    def check_two_programs(self, config: Any) -> bool:
        """True if a pruned program fits the whole one; see `utils.check_pruned_program_vars`.

        `config` has their files: `train_prog_path`, `is_text_train_program`, `pruned_prog_path`,
        `is_text_pruned_program`; with `draw` they are drawn as `draw_out_name` in `draw_dir`.
        """
        whole = utils.load_program(config.train_prog_path, config.is_text_train_program)
        pruned = utils.load_program(config.pruned_prog_path, config.is_text_pruned_program)
        if getattr(config, "draw", False):
            for program, name in (
                (whole, config.draw_out_name + "_train"),
                (pruned, config.draw_out_name + "_pruned"),
            ):
                self.draw_from_program(program, config.draw_dir, name)
        return bool(utils.check_pruned_program_vars(whole, pruned))

    def check_vars_and_dump(self, config: Any) -> Any:
        """Call `utils.check_saved_vars_try_dump` with the attributes of `config` as arguments."""
        return utils.check_saved_vars_try_dump(
            config.dump_model_dir,
            config.dump_program_filename,
            config.is_text_dump_program,
            config.feed_config,
            config.fetch_config,
            config.batch_size,
            config.save_params_filename,
        )

    def parse_program_proto(self, prog_path: str, is_text: bool, output_dir: str) -> None:
        """Write a listing of the program in a file; see `utils.parse_program`."""
        utils.parse_program(utils.load_program(prog_path, is_text), output_dir)

    # Models and the files that list them.

    def _append(self, client: HDFSClient, folder: str, name: str, line: str, known: Any, what: str) -> None:
        """Append a line to a file of `folder`, in the first worker, unless `known` is true of a line there."""
        if self._first():
            path = f"{folder}/{name}"
            before = client.cat(path) if client.is_file(path) else ""
            lines = before.split("\n") if before else []
            if any(map(known, lines)):
                self.rank0_error(f"not write {name} because {what} already exists")
            else:
                self._put(client, folder, name, "\n".join([*lines, line]) + "\n")
                self.rank0_error(f"write {what} {name} succeed")
        fleet_transpiler._role_maker.barrier_worker()

    def _put(self, client: HDFSClient, folder: str, name: str, text: str) -> None:
        with tempfile.TemporaryDirectory() as here:
            local = os.path.join(here, name)
            with open(local, "w", encoding="utf-8") as file:
                file.write(text)
            client.delete(f"{folder}/{name}")
            if not client.upload(folder, local):
                raise OSError(f"{name} could not be put into {folder}")

    def write_model_donefile(
        self,
        output_path: str,
        day: str | int,
        pass_id: str | int,
        xbox_base_key: str | int,
        hadoop_fs_name: str,
        hadoop_fs_ugi: str,
        hadoop_home: str = "$HADOOP_HOME",
        donefile_name: str = "donefile.txt",
    ) -> None:
        """Add the model of a pass to a list in `output_path`; pass -1 is the model of the whole day."""
        base = str(pass_id) == "-1"
        folder = f"{output_path}/{day}/{0 if base else pass_id}/"
        line = f"{day}\t{int(xbox_base_key)}\t{folder}\t{pass_id}\t0"
        client = _client(hadoop_fs_name, hadoop_fs_ugi, hadoop_home)

        def known(text: str) -> bool:
            return text.split("\t")[2:3] == [folder]

        self._append(client, output_path, donefile_name, line, known, f"{day}/{pass_id}")

    def write_xbox_donefile(
        self,
        output_path: str,
        day: str | int,
        pass_id: str | int,
        xbox_base_key: str | int,
        data_path: str,
        hadoop_fs_name: str,
        hadoop_fs_ugi: str,
        monitor_data: Mapping[str, str] = {},  # noqa: B006 Fluid's default
        hadoop_home: str = "$HADOOP_HOME",
        donefile_name: str | None = None,
    ) -> None:
        """Add a model to the list for serving: that of a day (pass -1), or the delta of a pass."""
        base = str(pass_id) == "-1"
        folder = f"{output_path}/{day}/{'base' if base else f'delta-{pass_id}'}"
        entry = {
            "id": str(int(xbox_base_key) if base else int(time.time())),
            "key": str(xbox_base_key),
            "input": f"{hadoop_fs_name.rstrip('/')}{folder}/000",
            "record_count": "111111",
            "partition_type": "2",
            "job_name": "default_job_name",
            "ins_tag": "feasign",
            "ins_path": data_path,
            "job_id": os.environ.get("PADDLE_JOB_ID", ""),
            "monitor_data": " ".join(f"{name}:{value}" for name, value in monitor_data.items()),
            "monitor_path": f"{output_path.rstrip('/')}/monitor/{day}.txt",
            "mpi_size": str(fleet_transpiler.worker_num()),
        }
        client = _client(hadoop_fs_name, hadoop_fs_ugi, hadoop_home)
        name = donefile_name or (_BASE if base else _PATCH)

        def known(text: str) -> bool:
            return bool(json.loads(text)["input"] == entry["input"])

        self._append(client, output_path, name, json.dumps(entry), known, f"{day}/{pass_id}")

    def write_cache_donefile(
        self,
        output_path: str,
        day: str | int,
        pass_id: str | int,
        key_num: int,
        hadoop_fs_name: str,
        hadoop_fs_ugi: str,
        hadoop_home: str = "$HADOOP_HOME",
        donefile_name: str = "sparse_cache.meta",
        **kwargs: Any,
    ) -> None:
        """Write the number of keys of a cache of table `table_id` (0), unless the file exists."""
        table = kwargs.get("table_id", 0)
        part = "base" if str(pass_id) == "-1" else f"delta-{pass_id}"
        folder = f"{output_path}/{day}/{part}/{table:03d}_cache"
        client = _client(hadoop_fs_name, hadoop_fs_ugi, hadoop_home)
        line = f"file_prefix:part\npart_num:{kwargs.get('file_num', 16)}\nkey_num:{key_num}"
        self._append(client, folder, donefile_name, line, lambda text: True, folder)

    def _last(self, path: str, name: str, *hadoop: str) -> str:
        client = _client(*hadoop)
        return client.cat(f"{path}/{name}").split("\n")[-1]

    def get_last_save_model(
        self, output_path: str, hadoop_fs_name: str, hadoop_fs_ugi: str, hadoop_home: str = "$HADOOP_HOME"
    ) -> list[Any]:
        """[day, pass, path, key] of the last line of `donefile.txt`; [-1, -1, '', now] without the file."""
        last = self._last(output_path, "donefile.txt", hadoop_fs_name, hadoop_fs_ugi, hadoop_home)
        if not last:
            return [-1, -1, "", int(time.time())]
        day, key, path, pass_id = last.split("\t")[:4]
        return [int(day), int(pass_id), path, int(key)]

    def get_last_save_xbox(
        self, output_path: str, hadoop_fs_name: str, hadoop_fs_ugi: str, hadoop_home: str = "$HADOOP_HOME"
    ) -> list[Any]:
        """[day, pass, path, key] of the last delta in the list for serving; [-1, -1, '', now] without one."""
        last = self._last(output_path, _PATCH, hadoop_fs_name, hadoop_fs_ugi, hadoop_home)
        if not last:
            return [-1, -1, "", int(time.time())]
        entry = json.loads(last)
        *_, day, part, _ = entry["input"].split("/")
        return [int(day), int(part.split("-")[-1]), entry["input"].rpartition("/")[0], int(entry["key"])]

    def get_last_save_xbox_base(
        self, output_path: str, hadoop_fs_name: str, hadoop_fs_ugi: str, hadoop_home: str = "$HADOOP_HOME"
    ) -> list[Any]:
        """[day, path, key] of the last day's model in the list for serving; [-1, -1, now] without one."""
        last = self._last(output_path, _BASE, hadoop_fs_name, hadoop_fs_ugi, hadoop_home)
        if not last:
            return [-1, -1, int(time.time())]
        entry = json.loads(last)
        return [int(entry["input"].split("/")[-3]), entry["input"].rpartition("/")[0], int(entry["key"])]

    def save_paddle_inference_model(
        self,
        executor: Executor,
        scope: Scope,
        program: Program,
        feeded_vars: Sequence[Variable],
        target_vars: Sequence[Variable],
        output_path: str,
        day: str | int,
        pass_id: str | int,
        hadoop_fs_name: str,
        hadoop_fs_ugi: str,
        hadoop_home: str = "$HADOOP_HOME",
        save_combine: bool = True,
    ) -> None:
        """Save `dnn_plugin/inference_model` in the folder of a pass, in the first worker."""
        with self._plugin(
            scope, output_path, day, pass_id, hadoop_fs_name, hadoop_fs_ugi, hadoop_home
        ) as put:
            if put is not None:
                io.save_inference_model(
                    put("inference_model"),
                    [var.name for var in feeded_vars],
                    list(target_vars),
                    executor,
                    program.clone(),
                    params_filename="params" if save_combine else None,
                )

    def save_paddle_params(
        self,
        executor: Executor,
        scope: Scope,
        program: Program,
        model_name: str,
        output_path: str,
        day: str | int,
        pass_id: str | int,
        hadoop_fs_name: str,
        hadoop_fs_ugi: str,
        hadoop_home: str = "$HADOOP_HOME",
        var_names: Sequence[str] | None = None,
        save_combine: bool = True,
    ) -> None:
        """Save all or the named parameters as `dnn_plugin/MODEL_NAME` in the folder of a pass, in the first worker."""
        with self._plugin(
            scope, output_path, day, pass_id, hadoop_fs_name, hadoop_fs_ugi, hadoop_home
        ) as put:
            if put is None:
                return
            chosen = None if var_names is None else [program.global_block().var(name) for name in var_names]
            target = put(model_name)
            if chosen is None:
                io.save_params(executor, target, program, "params" if save_combine else None)
            else:
                io.save_vars(executor, target, program, chosen, filename="params" if save_combine else None)

    @contextmanager
    def _plugin(
        self, scope: Scope, output_path: str, day: str | int, pass_id: str | int, *hadoop: str
    ) -> Iterator[Any]:
        """Yield a function that creates local folders, which are uploaded at the end; None in other workers than 0."""
        part = "base" if str(pass_id) == "-1" else f"delta-{pass_id}"
        with tempfile.TemporaryDirectory() as here, scope_guard(scope):
            folders: list[str] = []

            def put(name: str) -> str:
                folders.append(os.path.join(here, name))
                return folders[-1]

            yield put if self._first() else None
            for folder in folders:
                if not _client(*hadoop).upload_dir(
                    f"{output_path}/{day}/{part}/dnn_plugin", folder, overwrite=True
                ):
                    raise OSError(
                        f"{os.path.basename(folder)} could not be put into {output_path}/{day}/{part}"
                    )
        fleet_transpiler._role_maker.barrier_worker()


def _client(fs_name: str, fs_ugi: str, home: str) -> HDFSClient:
    return HDFSClient(os.path.expandvars(home), {"fs.default.name": fs_name, "hadoop.job.ugi": fs_ugi})


def _refused(name: str) -> Any:
    def method(self: FleetUtil, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotSupportedError(
            f"FleetUtil.{name} needs servers of PSLib, which exist inside Baidu only: use fleet.save_persistables"
        )

    method.__name__ = name
    method.__doc__ = "Raises NotSupportedError: it needs servers of PSLib."
    return method


for _name in (
    "load_fleet_model load_fleet_model_one_table load_model pull_all_dense_params save_batch_model "
    "save_cache_base_model save_cache_model save_delta_model save_fleet_model save_model save_xbox_base_model"
).split():
    setattr(FleetUtil, _name, _refused(_name))
