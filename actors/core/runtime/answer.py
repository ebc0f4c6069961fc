"""What an actor answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from trunkline.limits.window import Verdict


class Answer(NamedTuple):
    """The result of an ask: the handler's value, and the throttle's verdict, None if no throttle applied."""

    value: Any
    verdict: Verdict | None
