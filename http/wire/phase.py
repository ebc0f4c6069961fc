"""How far an HTTP/1.1 connection is with its current request: exactly one of eight phases.

Owns the phases, which of them may follow each other, and which have a current request. Does not own what happens in
them (`http1.py`).

Why one value and not several flags: flags can contradict each other, and the code would have to handle every
combination. Here a transition that makes no sense is an assertion that fails.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Phase(Enum):
    """Each value is a bit of its own, so that checking a transition costs next to nothing."""

    IDLE = 1
    """Nothing of the next request was received."""
    READING = 2
    """Part of a request was received, or whole requests were that have not begun."""
    TAKEN = 4
    """The fast path has the request and will call back with its response. The task sleeps."""
    FLUSHING = 8
    """The fast path has responded; the task sends what could not be sent at once."""
    AWAITED = 16
    """The application is to be awaited, or is being awaited, by the task."""
    LINGERING = 32
    """The last response was sent; the client has a moment to read it and to close."""
    CLOSED = 64
    """Nothing more is sent. A response that comes late is dropped."""
    UPGRADED = 128
    """The connection goes on as a WebSocket (`websocket.py`)."""

    def __init__(self, bit: int) -> None:
        self.bit = bit
        self.next_bits = 0
        """The phases that may follow."""
        self.has_request = False
        """The connection has a current request, whose response is due or on its way."""

    def may_precede(self, *phases: Phase) -> None:
        self.next_bits = sum(phase.bit for phase in phases)


# Looking a member up in its class is slow in Python 3.11.
IDLE: Final = Phase.IDLE
READING: Final = Phase.READING
TAKEN: Final = Phase.TAKEN
FLUSHING: Final = Phase.FLUSHING
AWAITED: Final = Phase.AWAITED
LINGERING: Final = Phase.LINGERING
CLOSED: Final = Phase.CLOSED
UPGRADED: Final = Phase.UPGRADED

TAKEN.has_request = FLUSHING.has_request = AWAITED.has_request = True

IDLE.may_precede(READING, TAKEN, AWAITED, CLOSED)
READING.may_precede(TAKEN, AWAITED, LINGERING, CLOSED)  # LINGERING: it was refused as malformed
TAKEN.may_precede(AWAITED, FLUSHING, IDLE, READING, LINGERING, CLOSED)  # AWAITED: the fast path declined
FLUSHING.may_precede(IDLE, READING, LINGERING, CLOSED)
AWAITED.may_precede(IDLE, READING, LINGERING, UPGRADED, CLOSED)
UPGRADED.may_precede(CLOSED)
LINGERING.may_precede(CLOSED)
CLOSED.may_precede(CLOSED)
