"""`paddle.version`: the release of Paddle whose API this package follows (not a version of this package)."""

from ..base.version import FOLLOWED

full_version = FOLLOWED
major, minor, patch = full_version.split(".")
rc = "0"
istaged = True
commit = "fluidlite"
with_mkl = "OFF"


def mkl() -> str:
    """'OFF': this package does not come with MKL (`paddle.version.mkl`)."""
    return with_mkl


def show() -> None:
    """Print the release whose API is followed and the version of this package (`paddle.version.show`)."""
    from .. import __version__

    print(f"full_version: {full_version} (API followed by fluidlite {__version__})")
    print(f"major: {major}\nminor: {minor}\npatch: {patch}\nrc: {rc}")
