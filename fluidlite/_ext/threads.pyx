# distutils: language = c++
"""The threads that native kernels share: how many there are, and the pool itself (`threads/pool.cc`).

Work is cut by its size (`parallel.h`); whoever has a thread takes the next piece. BLAS and oneDNN work on one thread within
a piece.
"""
import os
import warnings

from cpython.pycapsule cimport PyCapsule_New

cdef extern from "threads/pool.h" namespace "fl" nogil:
    ctypedef struct Threads:
        pass
    Threads *pool_functions()
    void set_thread_count(int count)
    int thread_count()
    void set_own_share(int count)


def functions():
    """What other extensions are handed, as a capsule."""
    return PyCapsule_New(<void *> pool_functions(), "fluidlite.threads", NULL)


def usable() -> int:
    """How many processors this process may use at the same time: its affinity, and what its control groups leave it."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for quota, period in _quotas():
        count = min(count, (quota + period - 1) // period)
    return max(1, count)


def _quotas(root="/sys/fs/cgroup", groups="/proc/self/cgroup"):
    """(microseconds of processor time, in how many microseconds) of each control group with a limit, of either version."""
    try:
        with open(groups, encoding="utf8", errors="surrogateescape") as file:
            entries = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return
    for entry in entries:
        if len(entry) != 3 or (entry[1] and "cpu" not in entry[1].split(",")):
            continue
        base = os.path.join(root, entry[1]) if entry[1] else root
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if entry[1] else ("cpu.max",)
        parts = [part for part in entry[2].split("/") if part not in ("", "..")]
        for depth in range(len(parts) + 1):  # a group has no more than those around it
            numbers = []
            try:
                for name in names:
                    with open(os.path.join(base, *parts[:depth], name), encoding="ascii") as file:
                        numbers += file.read().split()
            except OSError:
                continue
            if len(numbers) == 2 and all(map(str.isdecimal, numbers)) and min(map(int, numbers)) > 0:
                yield int(numbers[0]), int(numbers[1])


def _at_first() -> int:
    """OMP_NUM_THREADS, of which the first number counts; else as many as there are processors to use.

    What is no number of threads is warned of and left alone, as OpenMP's libraries do.
    """
    setting = os.environ.get("OMP_NUM_THREADS", "").strip()
    text = setting.split(",")[0].strip()
    if text.isdecimal() and 0 < int(text) < 1 << 31:
        return int(text)
    if setting:
        warnings.warn(f"OMP_NUM_THREADS={setting!r} is no number of threads, and is ignored", RuntimeWarning)
    return usable()


def count() -> int:
    """How many threads kernels use, the calling one among them."""
    return thread_count()


def use(int threads) -> int:
    """Have kernels use so many threads (less than one: one) from now on; returns how many they used so far."""
    before = thread_count()
    set_thread_count(threads)
    return before


def share(int threads) -> None:
    """Have kernels that the calling thread runs use so many at most; 0: as many as there are."""
    set_own_share(threads)


set_thread_count(_at_first())
