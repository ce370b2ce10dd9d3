"""Checks of errors that fit on one line."""

import pytest


def refuses(call, error, match=None):
    """Assert that `call()` raises `error`, with `match` in its message."""
    with pytest.raises(error, match=match):
        call()
