"""Loaders that programs read from, on a simulated GPU."""

from __future__ import annotations

import pytest

from fluidlite import backend
from fluidlite.base.errors import EOFException
from fluidlite.reader import DataLoader

from .device_steps import ROWS, Steps, check, refilled

pytestmark = pytest.mark.usefixtures("programs")


def program_loader(feed_list, **options):
    loader = DataLoader.from_generator(feed_list, 3, iterable=False, **options)
    loader.set_batch_generator(refilled)
    return loader


@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "at once"])
def test_programs_get_batches_on_their_device(any_order, feed_list, ahead: bool) -> None:
    loader = program_loader(feed_list, use_double_buffer=ahead)
    steps = Steps()
    for _ in range(3):
        steps.seen.clear()
        steps.queued = 0
        loader.start()
        with pytest.raises(EOFException):
            while True:
                image, label = loader.take(steps.device)
                steps(image.array, label.array)
                del image, label
        loader.reset()
        assert len(steps.finish()) == 10
        check(steps.seen)


def test_programs_change_their_device(any_order, feed_list) -> None:
    loader = program_loader(feed_list)
    one, other = Steps(0), Steps(1)
    for first, then in ((one.device, other.device), (other.device, None), (None, one.device)):
        loader.start()
        for k, device in enumerate((first, first, then, then)):
            image, label = loader.take(device)
            assert backend.device_of(image.array) is device
            host = backend.to_host(label.array)
            assert host.ravel().tolist() == list(range(k * ROWS, (k + 1) * ROWS))
        loader.reset()
    del image, label


def test_several_devices_read_round_robin(any_order, feed_list) -> None:
    loader = program_loader(feed_list)
    both = Steps(0), Steps(1)
    devices = tuple(steps.device for steps in both)
    for _ in range(2):
        loader.start()
        for _ in range(5):
            for steps in both:
                image, label = loader.take(steps.device, devices)
                steps(image.array, label.array)
        loader.reset()
    del image, label
    for number, steps in enumerate(both):
        check(steps.finish()[:5], number, 2)
        check(steps.finish()[5:], number, 2)
