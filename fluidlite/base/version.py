"""The release of Paddle whose API this package follows, and a check that it is new enough."""

from __future__ import annotations

import re

from .errors import called

FOLLOWED = "1.8.5"

_FORMAT = r"\d+(\.\d+){0,3}"


@called("Exception")
class VersionError(RuntimeError):
    """The release of Paddle followed here is not one that a script takes."""


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Check that the release of Paddle followed here is within bounds (`fluid.require_version`).

    Args:
        min_version: the oldest acceptable release, such as `1.6` or `1.6.0.0`.
        max_version: the newest one, or None.

    Raises:
        TypeError: a version is no string.
        ValueError: a version does not consist of one to four numbers.
        VersionError: the release followed here is out of bounds; a RuntimeError, where Fluid raises a plain Exception.
    """
    lowest = _numbers("min_version", min_version)
    highest = None if max_version is None else _numbers("max_version", max_version)
    here = _numbers("", FOLLOWED)
    if here < lowest or (highest is not None and here > highest):
        bounds = f"{min_version} or higher" if highest is None else f"in [{min_version}, {max_version}]"
        raise VersionError(f"PaddlePaddle version {bounds} is required, but fluidlite follows {FOLLOWED}")


def _numbers(name: str, version: str) -> list[int]:
    """The four numbers of a version; missing ones count as 0."""
    if not isinstance(version, str):
        raise TypeError(f"{name} of require_version must be a str, got {version!r}")
    if re.fullmatch(_FORMAT, version) is None:
        raise ValueError(f"{name} of require_version must look like '1.5.2.0' ({_FORMAT}), got {version!r}")
    numbers = [int(number) for number in version.split(".")]
    return numbers + [0] * (4 - len(numbers))
