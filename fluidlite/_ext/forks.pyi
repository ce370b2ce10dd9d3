from collections.abc import Callable
from typing import Any

def library_call(function: Callable[..., Any], *args: Any, **options: Any) -> Any: ...
