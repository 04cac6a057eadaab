"""The way from the verbs for arrays to those for tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def on_tensors(verb: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """The verb of the same name in `structot.torch`, called with these arguments.

    It gets the verb itself as well, for what tensors have no method of their own for.
    """
    from structot.torch import front, many

    home = many if verb.__name__ == "solve_batch" else front
    collected = (arguments.pop(name, {}) for name in ("unknown", "options"))
    named = {key: value for options in collected for key, value in options.items()}
    return getattr(home, verb.__name__)(verb, **arguments, **named)
