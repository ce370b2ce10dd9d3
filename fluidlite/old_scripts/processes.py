"""Fork as the default start method of `multiprocessing`, as on Linux before Python 3.14."""

from __future__ import annotations

from types import ModuleType


def fork_by_default(context: ModuleType) -> None:
    """Make fork the default start method of the module `multiprocessing.context`.

    With it, lambdas and the script's existing objects are available in the new process.

    Other systems than Linux keep their method, and so does a process that has chosen one.
    """
    default = context._default_context
    forked = context._concrete_contexts.get("fork")
    if (
        default._actual_context is None
        and default._default_context.get_start_method() == "forkserver"
        and forked
    ):
        default._default_context = forked
