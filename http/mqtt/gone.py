"""What the parts of a session refer to when its connection has ended, instead of the session.

A session and its parts refer to each other. If that stayed so, all of it would wait for the garbage collector, which
examines old objects only when the process has grown much (`http/wire/garbage_collection.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.http.mqtt.service import MqttService
    from trunkline.limits.table import Limits


class GoneClient:
    """A client that is sent nothing any more."""

    __slots__ = ("limits", "service", "version")

    def __init__(self, service: MqttService, limits: Limits, version: int) -> None:
        self.service = service
        self.limits = limits
        self.version = version

    @property
    def client_takes(self) -> bool:
        """It takes nothing."""
        return False

    def send(self, data: bytes) -> None:
        """Send nothing."""

    def wait_s(self, topic: str) -> float:  # noqa: ARG002 - as for one that is there
        """It has no rates."""
        return 0.0

    def flush_later(self, after_s: float) -> None:
        """There is nothing to flush."""
