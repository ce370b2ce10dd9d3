# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.reader.slots.feed_description import (
    DataFeedDesc as DataFeedDesc,
)
