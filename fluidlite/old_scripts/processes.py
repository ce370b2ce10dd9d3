"""How `multiprocessing` starts processes: by forking, as it did on Linux before Python 3.14."""

from __future__ import annotations

from types import ModuleType


def fork_by_default(context: ModuleType) -> None:
    """Have the module `multiprocessing.context` fork where nobody asks for another way.

    Functions without a name, and what the script has made before, are there in the new process then.

    Other systems than Linux keep their way, and so does a process that has chosen one.
    """
    default = context._default_context
    forked = context._concrete_contexts.get("fork")
    if (
        default._actual_context is None
        and default._default_context.get_start_method() == "forkserver"
        and forked
    ):
        default._default_context = forked
