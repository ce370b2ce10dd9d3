"""Timing inside a measured script; runs under Python 3.8 too, where the peer lives."""

import json
import os
import time

clock = time.process_time if os.environ.get("BENCHMARK_CLOCK") == "processor" else time.perf_counter


def blocks(step, seconds, count=5):
    """Microseconds one call of `step` takes, `count` times over: each value is the mean of a block of calls.

    `seconds` is about how long all blocks together last; a tenth of that goes before them as warm-up.
    """
    calls, until = 0, clock() + seconds / 10
    while calls < 3 or clock() < until:
        step()
        calls += 1
    begin = clock()
    step()
    each = max(1, int(seconds / count / (clock() - begin)))
    found = []
    for _ in range(count):
        begin = clock()
        for _ in range(each):
            step()
        found.append((clock() - begin) / each * 1e6)
    return found


def each(step, inputs, warm=0):
    """Milliseconds of the calls step(input), one after the other; the first `warm` ones don't count."""
    found = []
    for given in inputs:
        begin = clock()
        step(given)
        found.append((clock() - begin) * 1e3)
    return found[warm:]


def epoch_metrics(metrics, name, epoch, count, begin):
    """Take the `count` batches of an epoch that was begun at `begin`; microseconds a batch go to metrics[name], and
    the time until the first batch was there, which is not part of them, to metrics[name + ": first"].
    """
    next(epoch)
    first = time.perf_counter()
    for _ in range(count - 1):
        next(epoch)
    end = time.perf_counter()
    metrics.setdefault(name, []).append((end - first) / (count - 1) * 1e6)
    metrics.setdefault(name + ": first", []).append((first - begin) * 1e6)
    if next(epoch, None) is not None:
        raise AssertionError("there are more than %d batches" % count)


def result(metrics):
    """Print the line that the benchmark looks for: `metrics` is name -> list of values."""
    print("RESULT " + json.dumps(metrics), flush=True)
