"""Programs that make slot files of raw lines: `fluid.incubate.data_generator`.

Such a program is the pipe command of a data set: it reads lines on its standard input and writes a line of slots for
each sample (see `reader/slots/files.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["DataGenerator", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]

Record = Iterable[tuple[str, list[Any]]]
"""A sample: name and values of each slot."""


class DataGenerator:
    """Derive from one of the classes below, override `generate_sample`, and call `run_from_stdin`."""

    def __init__(self) -> None:
        self._proto_info: list[tuple[str, str]] | None = None
        self.batch_size_ = 32

    def set_batch(self, batch_size: int) -> None:
        """Set the number of samples that `generate_batch` gets at a time."""
        self.batch_size_ = batch_size

    def generate_sample(self, line: str | None) -> Callable[[], Iterator[Record | None]]:
        """Return a function whose iterator yields the samples of a line, or None to skip; to be overridden."""
        raise NotImplementedError(
            f"{type(self).__name__} must override generate_sample(line): it returns a function whose iterator yields "
            "samples [(name, [number, ...]), ...]"
        )

    def generate_batch(self, samples: list[Any]) -> Callable[[], Iterator[Any]]:
        """Return a function whose iterator yields the samples to write; may be overridden to change batches."""
        return lambda: iter(samples)

    def run_from_stdin(self) -> None:
        """Write the samples of all lines on standard input to standard output."""
        self._run(sys.stdin)

    def run_from_memory(self) -> None:
        """Write the samples of `generate_sample(None)` to standard output."""
        self._run([None])

    def _run(self, lines: Iterable[str | None]) -> None:
        batch: list[Any] = []
        for line in lines:
            for sample in self.generate_sample(line)():
                if sample is None:
                    continue
                batch.append(sample)
                if len(batch) == self.batch_size_:
                    self._write(batch)
                    batch = []
        if batch:
            self._write(batch)

    def _write(self, batch: list[Any]) -> None:
        for sample in self.generate_batch(batch)():
            sys.stdout.write(self._gen_str(sample))

    def _gen_str(self, line: Any) -> str:
        raise NotImplementedError("derive from MultiSlotDataGenerator or MultiSlotStringDataGenerator")


def _checked(line: Any) -> list[tuple[str, list[Any]]]:
    # In Python 2, zip and map returned lists.
    if not isinstance(line, (list, tuple, zip, map)):
        raise ValueError(
            f"a sample must be a list or tuple such as [('words', [1926, 8, 17]), ('label', [1])], got {line!r}"
        )
    return list(line)


class MultiSlotDataGenerator(DataGenerator):
    """Samples are [(name, [number, ...]), ...], with the same names in the same order each time."""

    def _gen_str(self, line: Any) -> str:
        record = _checked(line)
        for name, values in record:
            if not isinstance(name, str):
                raise ValueError(f"the name of a slot must be a string, got {name!r}")
            if not isinstance(values, list):
                raise ValueError(f"the values of slot {name!r} must be a list, got {values!r}")
            if not values:
                raise ValueError(f"slot {name!r} has no values: pad it in generate_sample")
        known = self._proto_info
        if known is not None and len(known) != len(record):
            raise ValueError(
                f"the previous samples had the slots {[name for name, _ in known]}, this one has "
                f"{[name for name, _ in record]}"
            )
        kinds = []
        for index, (name, values) in enumerate(record):
            if known is not None and known[index][0] != name:
                raise ValueError(
                    f"slot {index} was {known[index][0]!r} in the previous samples and is {name!r} now"
                )
            before = known[index][1] if known is not None else "uint64"
            kinds.append((name, "float" if any(isinstance(value, float) for value in values) else before))
        self._proto_info = kinds
        return _line(values for _, values in record)


class MultiSlotStringDataGenerator(DataGenerator):
    """Samples are [(name, [text, ...]), ...]; the texts are written unchecked, which is faster."""

    def _gen_str(self, line: Any) -> str:
        return _line(values for _, values in _checked(line))


def _line(slots: Iterable[list[Any]]) -> str:
    return " ".join(" ".join([str(len(values)), *map(str, values)]) for values in slots) + "\n"
