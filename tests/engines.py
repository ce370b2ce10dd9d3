"""How programs are run."""

from contextlib import contextmanager

from fluidlite.base import flags


@contextmanager
def run_by(engine):
    """Have programs run by "plan" or "interpret" meanwhile."""
    kept = flags._engine, flags.interprets
    flags.set_engine(engine)
    try:
        yield
    finally:
        flags._engine, flags.interprets = kept
