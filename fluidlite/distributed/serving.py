"""Starting parameter servers and workers on this machine, and telling what becomes of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

TRAINERS_RETURN = "FLUIDLITE_TRAINERS_RETURN"
"""The variable by which servers without barriers know that trainers which have ended will come back."""

_LOOKS, _PATIENCE = 0.05, 5.0


class _Process:
    """A server or worker."""

    def __init__(
        self, kind: str, number: int, command: Sequence[str], environ: dict[str, str], log: str | None
    ):
        self.name = f"{kind} {number}"
        self._command, self._environ = command, environ
        self._log: IO[str] | None = None
        if log is not None:
            Path(log).mkdir(parents=True, exist_ok=True)
            self._log = (Path(log) / f"{kind}log.{number}").open("w", encoding="utf8")
        self.start()

    def start(self) -> None:
        """Start it, for the first time or again."""
        self.running = subprocess.Popen(
            self._command, env=self._environ, stdout=self._log, stderr=self._log, stdin=subprocess.DEVNULL
        )

    def end(self) -> None:
        """End it if it has not ended."""
        self.running.terminate()
        try:
            self.running.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.running.kill()
            self.running.wait()
        if self._log is not None:
            self._log.close()

    def fate(self) -> str:
        """What has become of it."""
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
        command: program and arguments; it learns by its environment (TRAINING_ROLE and the like) what it is.
        servers: `IP:PORT` of each server.
        workers: how many there are.
        log_dir: where `serverlog.N` and `workerlog.N` get what they print, instead of the terminal.
        restarts: how often a worker that fails is started again.

    When a process fails, the others have 5 seconds to say so, too, and are ended then. Servers are ended when all
    workers have ended.
    """
    base = {
        **os.environ,
        "PADDLE_TRAINERS_NUM": str(workers),
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(servers),
        "PYTHONUNBUFFERED": "1",
        TRAINERS_RETURN: "1" if restarts else "0",
    }
    serving, training = [], []
    try:
        for number, endpoint in enumerate(servers):
            host, _, port = endpoint.rpartition(":")
            told = {**base, "TRAINING_ROLE": "PSERVER", "POD_IP": host, "PADDLE_PORT": port}
            serving.append(_Process("server", number, command, told, log_dir))
        for number in range(workers):
            told = {**base, "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": str(number)}
            training.append(_Process("worker", number, command, told, log_dir))
        failed = _follow(serving, training, restarts)
        if failed is not None:
            print(f"fluidlite: {failed.fate()}", file=sys.stderr, flush=True)
            return abs(failed.running.returncode) or 1
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and any(one.running.poll() is None for one in serving):
            time.sleep(_LOOKS)  # those that all workers have told that they are done end by themselves
        return 0
    finally:
        for one in (*training, *serving):
            with suppress(OSError):
                one.end()


def _follow(serving: list[_Process], training: list[_Process], restarts: int) -> _Process | None:
    """Wait for the workers; the first process that has failed, if any has."""
    failed: _Process | None = None
    since = 0.0
    while any(one.running.poll() is None for one in training):
        time.sleep(_LOOKS)
        if failed is not None:
            if time.monotonic() - since > _PATIENCE:
                return failed
            continue
        for one in (*serving, *training):
            if one.running.poll() in (None, 0):
                continue
            if restarts and one in training:
                restarts -= 1
                print(f"fluidlite: {one.fate()} and is started again", file=sys.stderr, flush=True)
                one.start()
                continue
            failed, since = failed or one, time.monotonic()
    return failed or next((one for one in training if one.running.returncode), None)
