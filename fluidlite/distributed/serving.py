"""Launches parameter servers and workers on this machine, and reports failures.

Their output is prefixed with their kind and number; the error of the process that failed first is printed last.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from .launching import INTERRUPTED, KEPT, last_traceback
from .rpc.server import TRAINERS_RETURN, WITH_BARRIERS

_LOOKS, _PATIENCE = 0.05, 5.0
_TOGETHER = 1.0
"""Seconds: a process that exits with an error may do so because of a killed one whose end is noticed later."""


class _Process:
    """A server or worker."""

    def __init__(
        self, kind: str, number: int, command: Sequence[str], environ: dict[str, str], log: IO[str] | None
    ):
        self.kind, self.name = kind, f"{kind} {number}"
        self._command, self._environ, self._log = command, environ, log
        self._last: deque[str] = deque(maxlen=KEPT)
        self.with_barriers = False
        self.start()

    def start(self) -> None:
        """Start or restart it."""
        self.running = subprocess.Popen(
            self._command,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        self._readers = [
            threading.Thread(target=self._read, args=(pipe, target), daemon=True)
            for pipe, target in ((self.running.stdout, sys.stdout), (self.running.stderr, sys.stderr))
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, pipe: IO[bytes], target: IO[str]) -> None:
        for raw in pipe:
            text = raw.decode("utf8", "replace").rstrip("\n")
            if target is sys.stderr:
                self._last.append(text)
                if text == WITH_BARRIERS:
                    self.with_barriers = True
                    continue
            if self._log is not None:
                self._log.write(f"{text}\n")
                self._log.flush()
            else:
                target.write(f"[{self.name}] {text}\n")
                target.flush()

    def end(self) -> None:
        """Terminate it if it still runs, and print the rest of its output."""
        self.running.terminate()
        try:
            self.running.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.running.kill()
            self.running.wait()
        for reader in self._readers:
            reader.join(_PATIENCE)

    def tell(self) -> None:
        """Print how it ended, with its traceback."""
        for line in last_traceback(self._last) if self.running.returncode > 0 else []:
            print(line, file=sys.stderr)
        print(f"fluidlite: {self.fate()}", file=sys.stderr, flush=True)

    def fate(self) -> str:
        """A text that says how it ended."""
        status = self.running.returncode
        if status >= 0:
            return f"{self.name} ended with status {status}"
        known = {one.value: one.name for one in signal.Signals}
        return f"{self.name} died of signal {-status} ({known.get(-status, 'unknown')})"


def run(
    command: Sequence[str],
    servers: Sequence[str],
    workers: int,
    log_dir: str | None = None,
    restarts: int = 0,
) -> int:
    """Run `command` once for each server and worker, until the workers have ended; returns the exit status.

    Args:
        command: program and arguments; environment variables (TRAINING_ROLE etc.) say which process it is.
        servers: `IP:PORT` of each server.
        workers: the number of workers.
        log_dir: the folder of files `serverlog.N` and `workerlog.N` for their output, instead of the terminal.
        restarts: the number of restarts after failures: of the failed process if servers have no barriers, otherwise of
            all, for scripts that resume from checkpoints.

    When a process fails, the others are ended after 5 seconds. Servers are ended when all workers have ended, and
    everything at Ctrl-C.
    """
    base = {
        **os.environ,
        "PADDLE_TRAINERS_NUM": str(workers),
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(servers),
        "PYTHONUNBUFFERED": "1",
        TRAINERS_RETURN: "1" if restarts else "0",
    }
    described = []
    for number, endpoint in enumerate(servers):
        host, _, port = endpoint.rpartition(":")
        described.append(
            ("server", number, {**base, "TRAINING_ROLE": "PSERVER", "POD_IP": host, "PADDLE_PORT": port})
        )
    for number in range(workers):
        described.append(
            ("worker", number, {**base, "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": str(number)})
        )
    logs = _logs(log_dir, [f"{kind}log.{number}" for kind, number, _ in described])
    try:
        while True:
            group = _Group()
            try:
                for (kind, number, environ), log in zip(described, logs, strict=True):
                    group.processes.append(_Process(kind, number, command, environ, log))
                failed, restarts = group.follow(restarts)
            finally:
                group.end()
            if failed is None:
                return 0
            failed.tell()
            if not restarts:
                return abs(failed.running.returncode) or 1
            restarts -= 1
            print("fluidlite: all are restarted", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        for log in logs:
            if log is not None:
                log.close()


def _logs(folder: str | None, names: Sequence[str]) -> list[IO[str] | None]:
    if folder is None:
        return [None] * len(names)
    Path(folder).mkdir(parents=True, exist_ok=True)
    return [Path(folder, name).open("w", encoding="utf8") for name in names]


class _Group:
    """The servers and workers of one attempt."""

    def __init__(self) -> None:
        self.processes: list[_Process] = []

    def _of(self, kind: str) -> list[_Process]:
        return [one for one in self.processes if one.kind == kind]

    def follow(self, restarts: int) -> tuple[_Process | None, int]:
        """Wait for the workers; returns the first process that has failed, or None, and the restarts left."""
        ends: dict[_Process, float] = {}
        training = self._of("worker")
        while any(one.running.poll() is None for one in training):
            time.sleep(_LOOKS)
            self._look(ends)
            if ends and restarts and not any(one.with_barriers for one in self._of("server")):
                ended, _ = ends.popitem()
                restarts -= 1
                print(f"fluidlite: {ended.fate()} and is restarted", file=sys.stderr, flush=True)
                ended.start()
            if time.monotonic() - min(ends.values(), default=math.inf) > _PATIENCE:
                return _first(ends), restarts
        self._look(ends, training)
        failed = _first(ends)
        until = time.monotonic() + (_PATIENCE if failed is None else 0.0)
        while time.monotonic() < until and any(one.running.poll() is None for one in self.processes):
            time.sleep(_LOOKS)  # servers end by themselves when all workers are done
        return failed, restarts

    def _look(self, ends: dict[_Process, float], of: Sequence[_Process] = ()) -> None:
        """Note the times at which failures of processes are first seen."""
        for one in of or self.processes:
            if one.running.poll() not in (None, 0):
                ends.setdefault(one, time.monotonic())

    def end(self) -> None:
        """Terminate all processes that still run."""
        for one in reversed(self.processes):
            with suppress(OSError):
                one.end()


def _first(ends: dict[_Process, float]) -> _Process | None:
    """The first failure; among those within `_TOGETHER` seconds, a killed process is preferred."""
    together = [one for one, when in ends.items() if when - min(ends.values()) < _TOGETHER]
    return min(together, key=lambda one: one.running.returncode > 0, default=None)
