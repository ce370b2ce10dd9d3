"""Launches a script in several processes by mpiexec, and reports failures.

mpiexec (Open MPI) starts the processes, on this or other machines, and ends them all when one fails. Their output is
prefixed with the rank; the error of the process that failed first is printed last.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from ..base.errors import NotSupportedError
from .environment import FIRST_PORT, default_endpoints

_TAGGED = re.compile(r"^\[\d+,(\d+)\]<(stdout|stderr)>: ?(.*)$", re.DOTALL)
_FAILED = re.compile(r"fluidlite: rank (\d+) failed (on \S+ in step \d+): (.*)")
_STEPS_SEEN = re.compile(r"fluidlite: rank \d+ has seen steps ([\d ]+)")
_STOPPED = re.compile(
    r"fluidlite: (rank (\d+) on \S+ is stopped), and rank \d+ waits for it in step \d+; (.*)"
)
_SIGNALLED = re.compile(r"process rank (\d+) with PID \d+ on node (\S+) exited on")
_SIGNAL = re.compile(r"signal (\d+(?: \([^)]*\))?)")
_EXITED = re.compile(r"Process name: \[[^\]]*,(\d+)\]")
_CODE = re.compile(r"Exit code: +(\d+)")
KEPT = 200
"""The number of last lines of each process that are kept for the report."""

INTERRUPTED = 128 + signal.SIGINT
"""The exit status after Ctrl-C."""

_PATIENCE = 5.0


class LaunchError(ValueError):
    """The processes cannot be started with the given arguments."""


def launch(
    command: Sequence[str],
    hosts: Sequence[str],
    port: int = FIRST_PORT,
    log_dir: str | None = None,
    environ: Mapping[str, str] | None = None,
    restarts: int = 0,
) -> int:
    """Run `command` once for each of `hosts`, and wait for the end; returns the exit status, 0 for success.

    Args:
        command: program and arguments.
        hosts: the machine of each process, by rank; several processes may share one.
        port: the port of the first process of each machine, in the addresses that scripts see.
        log_dir: the folder of files `workerlog.N` for the output of process N, instead of the terminal.
        environ: further variables of the processes.
        restarts: the number of restarts of all processes after a failure, for scripts that resume from checkpoints.

    Raises LaunchError for no process, NotSupportedError without mpiexec.
    """
    if not hosts:
        raise LaunchError("launch needs at least one process, got none")
    environment = dict(os.environ)
    for name in ("PADDLE_TRAINER_ID", "PADDLE_CURRENT_ENDPOINT"):
        environment.pop(name, None)  # of an enclosing run
    endpoints = default_endpoints(len(hosts), list(hosts), port)
    shared = {
        "PADDLE_TRAINERS_NUM": str(len(hosts)),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
        "TRAINING_ROLE": "TRAINER",
        "PYTHONUNBUFFERED": "1",
        **(environ or {}),
    }
    environment.update(shared)
    if len(hosts) == 1:
        # One process needs no MPI.
        environment.update(PADDLE_TRAINER_ID="0", PADDLE_CURRENT_ENDPOINT=endpoints[0])
        started = list(command)
    else:
        started = [*mpiexec(hosts, shared, environment), *command]
    for attempt in range(restarts + 1):
        run = _Run(len(hosts), log_dir, "a" if attempt else "w")
        status = run.follow(started, environment)
        if not status or run.stopped:
            break
        if attempt < restarts:
            print("fluidlite: all are restarted", file=sys.stderr, flush=True)
    return status


def read_hosts(path: str, count: int | None) -> list[str]:
    """The machine of each process, from a file with lines `HOST [slots=N]`, for N processes (1 by default).

    With `count`, the first `count`. Raises LaunchError for an invalid line, or if there are fewer slots.
    """
    hosts: list[str] = []
    for number, line in enumerate(Path(path).read_text(encoding="utf8").splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        slots = 1
        for word in words[1:]:
            name, equals, value = word.partition("=")
            if name != "slots" or not value.isdigit():
                raise LaunchError(f"{path}:{number}: expected HOST [slots=N], got {line.strip()!r}")
            slots = int(value)
        hosts += [words[0]] * slots
    if count is None:
        return hosts
    if count > len(hosts):
        raise LaunchError(f"{path} has room for {len(hosts)} processes, but {count} were asked for")
    return hosts[:count]


def mpiexec(hosts: Sequence[str], shared: Mapping[str, str], environment: dict[str, str]) -> list[str]:
    """The command line of mpiexec without the program; variables for mpiexec are added to `environment`."""
    found = shutil.which(
        "mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    )
    if found is None:
        raise NotSupportedError("several processes need mpiexec of Open MPI: pip install 'fluidlite[mpi]'")
    if hasattr(os, "getuid") and os.getuid() == 0:
        # Otherwise it refuses to run as root, the usual user in containers.
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    command = [found, "-n", str(len(hosts)), "--output", "tag"]
    if set(hosts) <= {"127.0.0.1", "localhost"}:
        return [*command, "--oversubscribe"]
    slots = {host: hosts.count(host) for host in dict.fromkeys(hosts)}
    command += ["--host", ",".join(f"{host}:{n}" for host, n in slots.items()), "--map-by", "slot"]
    for name in (*shared, "PYTHONPATH", "PATH"):
        if name in environment:
            command += ["-x", name]
    return command


class _Run:
    """A run: the output of its processes, and the first failure."""

    def __init__(self, count: int, log_dir: str | None, mode: str = "w") -> None:
        self._count = count
        self.stopped = False
        self._lock = threading.Lock()
        self._last: list[deque[str]] = [deque(maxlen=KEPT) for _ in range(count)]
        self._said = ""
        self._failed: tuple[int, str, str] | None = None
        self._stopped: tuple[int, str] | None = None
        self._steps = [0] * count
        self._logs: list[IO[str]] | None = None
        if log_dir is not None:
            folder = Path(log_dir)
            folder.mkdir(parents=True, exist_ok=True)
            self._logs = [(folder / f"workerlog.{k}").open(mode, encoding="utf8") for k in range(count)]

    def follow(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Start the processes, pass on their output and wait; returns the exit status."""
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        readers = [
            threading.Thread(target=self._read, args=(pipe, name), daemon=True)
            for pipe, name in ((process.stdout, "stdout"), (process.stderr, "stderr"))
        ]
        for reader in readers:
            reader.start()

        def stop(*_: object) -> None:
            self.stopped = True
            process.terminate()

        in_main_thread = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGTERM, stop) if in_main_thread else None
        try:
            status = process.wait()
        except KeyboardInterrupt:
            status = self._interrupt(process)
        finally:
            if before is not None:
                signal.signal(signal.SIGTERM, before)
        for reader in readers:
            reader.join(_PATIENCE)
        for log in self._logs or ():
            log.close()
        if status and status != INTERRUPTED:
            self._tell()
        return status if status >= 0 else 128 - status

    def _interrupt(self, process: subprocess.Popen[bytes]) -> int:
        """Pass on Ctrl-C, then terminate and kill if needed."""
        self.stopped = True
        for stop in (lambda: process.send_signal(signal.SIGINT), process.terminate, process.kill):
            stop()
            try:
                process.wait(_PATIENCE)
                break
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                continue
        return INTERRUPTED

    def _read(self, pipe: IO[bytes], name: str) -> None:
        for raw in pipe:
            line = raw.decode("utf8", "replace").rstrip("\n")
            tagged = _TAGGED.match(line)
            if tagged:
                self._print(int(tagged[1]), tagged[2], tagged[3])
            elif self._count == 1:
                self._print(0, name, line)
            else:
                with self._lock:
                    self._said += f"{line}\n"

    def _print(self, rank: int, stream: str, text: str) -> None:
        with self._lock:
            failed = _FAILED.fullmatch(text)
            if failed and stream == "stderr":
                if self._failed is None:
                    self._failed = int(failed[1]), failed[2], failed[3]
                return
            seen = _STEPS_SEEN.fullmatch(text)
            if seen and stream == "stderr":
                self._steps = [max(both) for both in zip(self._steps, map(int, seen[1].split()), strict=True)]
                return
            stopped = _STOPPED.fullmatch(text)
            if stopped and stream == "stderr":
                self._stopped = int(stopped[2]), f"{stopped[1]}, and all were ended; {stopped[3]}"
            if stream == "stderr" and rank < self._count:
                self._last[rank].append(text)
            if self._logs is not None:
                self._logs[rank].write(f"{text}\n")
                self._logs[rank].flush()
                return
            target = sys.stdout if stream == "stdout" else sys.stderr
            print(f"[{rank}] {text}" if self._count > 1 else text, file=target, flush=True)

    def _tell(self) -> None:
        """Print the process that failed first with its traceback, or the output of mpiexec."""
        if self._count == 1 and self._logs is None:
            return
        said = " ".join(self._said.split())
        signalled, exited = _SIGNALLED.search(said), _EXITED.search(said)
        if self._failed is not None:
            rank, where, what = self._failed
            reason = f"rank {rank} failed {where}, and the others were ended: {what}"
        elif self._stopped is not None:
            rank, reason = self._stopped
        elif signalled:
            rank, died = int(signalled[1]), _SIGNAL.search(said)
            reason = (
                f"rank {rank} on {signalled[2]} died of signal {died[1] if died else '?'}, and the others were ended; "
                f"the last step that it reported is {self._steps[rank]}"
            )
        elif exited:
            rank, code = int(exited[1]), _CODE.search(said)
            reason = f"rank {rank} ended with status {code[1] if code else '?'}, and the others were ended"
        else:
            print(self._said, end="", file=sys.stderr)
            return
        traceback = last_traceback(self._last[rank]) if rank < self._count else []
        for line in traceback:
            print(line, file=sys.stderr)
        print(f"fluidlite: {reason}", file=sys.stderr, flush=True)


def last_traceback(lines: Sequence[str]) -> list[str]:
    """The last traceback in a process's output, to the end."""
    starts = [at for at, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    return list(lines)[starts[-1] :] if starts else []
