"""Telling the service manager how the server is: ready, stopping, alive.

Owns the protocol of systemd's `Type=notify` (sd_notify): a datagram of text to the Unix socket in `NOTIFY_SOCKET`. Any
manager that sets this variable gets it. Without the variable nothing is sent.
"""

from __future__ import annotations

import os
import socket

import structlog
import trio

SOCKET_VARIABLE = "NOTIFY_SOCKET"
INTERVAL_VARIABLE = "WATCHDOG_USEC"
PID_VARIABLE = "WATCHDOG_PID"
VARIABLES = frozenset({SOCKET_VARIABLE, INTERVAL_VARIABLE, PID_VARIABLE})
"""They are for the process that the manager has started, and not for those that this one starts."""

_log = structlog.get_logger("trunkline.serve")


def notify(*states: str) -> None:
    """Send states such as `READY=1`. A manager that cannot be reached is logged, and does not stop the server."""
    path = os.environ.get(SOCKET_VARIABLE)
    if not path:
        return
    # A name in the abstract namespace begins with @ in the variable, and with NUL in the call.
    address = "\0" + path[1:] if path.startswith("@") else path
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.connect(address)
            sender.send("\n".join(states).encode())
    except OSError as problem:
        _log.warning("the service manager cannot be told", states=states, problem=str(problem))


def watchdog_s() -> float | None:
    """The seconds after which the manager restarts a process that says nothing; None if it does not watch this one."""
    interval_us = os.environ.get(INTERVAL_VARIABLE, "")
    if not interval_us.isdecimal() or os.environ.get(PID_VARIABLE, str(os.getpid())) != str(os.getpid()):
        return None
    return int(interval_us) / 1e6


async def feed_watchdog() -> None:
    """Say that the event loop runs, twice in the interval that the manager asks for. Returns if it asks for none.

    It is a task of the event loop: a loop that hangs says nothing, and the manager restarts the server.
    """
    interval_s = watchdog_s()
    while interval_s is not None:
        notify("WATCHDOG=1")
        await trio.sleep(interval_s / 2)
