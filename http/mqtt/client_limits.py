"""How much an MQTT client may send, and be sent: messages for each topic and for each client, connections for each
application.

The limits are those of the API, exact as all throttles, and each direction has its own count. A client that sends too
much is disconnected and banned: for 30 seconds, and for twice as long each time it does so again within an hour after a
ban. What is too much for a client waits, as others have sent it. Owns the windows and the bans, which outlive
connections. Kept in memory: a ban ends with the server.
"""

from __future__ import annotations

from typing import Final

from trunkline.limits.table import Limits, Rate
from trunkline.limits.window import SlidingWindow

BAN_S: Final = 30.0
"""The first ban."""
BAN_MAX_S: Final = 3_600.0
"""The longest ban, and the time without one after which the next is the first again."""
_CLIENTS_MAX: Final = 100_000
"""Clients that are remembered; above it those without a ban and without counted messages are forgotten."""
_TOPICS_MAX: Final = 300
"""Topics of a client with counted messages: as many as it may send messages in a window."""


class _Counts:
    """The messages of a client in one direction."""

    __slots__ = ("messages", "topics")

    def __init__(self) -> None:
        self.messages: SlidingWindow | None = None
        self.topics: dict[str, SlidingWindow] = {}

    def of_topic(self, topic: str, rate: Rate, now_s: float) -> SlidingWindow:
        """The window of a topic."""
        window = self.topics.get(topic)
        if window is None:
            if len(self.topics) >= _TOPICS_MAX:
                self.topics = {name: kept for name, kept in self.topics.items() if not kept.empty(now_s)}
            window = self.topics[topic] = SlidingWindow(rate)
        return window

    def of_all(self, rate: Rate) -> SlidingWindow:
        """The window of all messages."""
        if self.messages is None:
            self.messages = SlidingWindow(rate)
        return self.messages

    def is_empty(self, now_s: float) -> bool:
        windows = self.topics.values() if self.messages is None else (self.messages,)
        return all(window.empty(now_s) for window in windows)


class _Client:
    __slots__ = ("ban_s", "banned_until_s", "received", "sent")

    def __init__(self) -> None:
        self.sent: _Counts | None = None
        self.received: _Counts | None = None
        self.banned_until_s = 0.0
        self.ban_s = 0.0

    def is_idle(self, now_s: float) -> bool:
        return now_s >= self.banned_until_s + BAN_MAX_S and all(
            each is None or each.is_empty(now_s) for each in (self.sent, self.received)
        )


class ClientLimits:
    """The windows and bans of all clients. Times are seconds of the system's monotonic clock."""

    def __init__(self, limits: Limits) -> None:
        self.bans = 0
        """Bans since the start."""
        self.counts_messages = limits.mqtt_client is not None or limits.mqtt_topic is not None
        """Whether messages have a limit, so that `sends` and `wait_s` have to be asked."""
        self._limits = limits
        self._clients: dict[tuple[bytes, bytes], _Client] = {}
        self._connections: dict[bytes, SlidingWindow] = {}

    def connects(self, application: bytes, now_s: float) -> bool:
        """Count a new connection of an application. False if it has too many."""
        rate = self._limits.mqtt_connect
        if rate is None:
            return True
        window = self._connections.get(application)
        if window is None:
            if len(self._connections) >= _CLIENTS_MAX:
                self._connections = {
                    each: kept for each, kept in self._connections.items() if not kept.empty(now_s)
                }
            window = self._connections[application] = SlidingWindow(rate)
        return window.allow(now_s).allowed

    def ban_left_s(self, application: bytes, client: bytes, now_s: float) -> float:
        """For how long a client is still banned; 0 if it is not."""
        found = self._clients.get((application, client))
        return 0.0 if found is None else max(0.0, found.banned_until_s - now_s)

    def sends(self, application: bytes, client: bytes, topic: str, now_s: float) -> str | None:
        """Count a message of a client. A sentence if it may not send it, None if it may."""
        per_client, per_topic = self._limits.mqtt_client, self._limits.mqtt_topic
        found = self._of(application, client, now_s)
        counts = found.sent
        if counts is None:
            counts = found.sent = _Counts()
        if per_topic is not None and not counts.of_topic(topic, per_topic, now_s).allow(now_s).allowed:
            return f"more than {per_topic.calls} messages in {per_topic.window_s:g} s were sent to one topic"
        if per_client is not None and not counts.of_all(per_client).allow(now_s).allowed:
            return f"more than {per_client.calls} messages in {per_client.window_s:g} s were sent"
        return None

    def wait_s(self, application: bytes, client: bytes, topic: str, now_s: float) -> float:
        """Count a message to a client: 0 if it may be sent now. If not, when it may; it does not count then."""
        per_client, per_topic = self._limits.mqtt_client, self._limits.mqtt_topic
        found = self._of(application, client, now_s)
        counts = found.received
        if counts is None:
            counts = found.received = _Counts()
        of_topic = None if per_topic is None else counts.of_topic(topic, per_topic, now_s)
        if of_topic is not None:
            verdict = of_topic.allow(now_s)
            if not verdict.allowed:
                return verdict.reset_s
        if per_client is not None:
            verdict = counts.of_all(per_client).allow(now_s)
            if not verdict.allowed:
                if of_topic is not None:
                    of_topic.take_back()
                return verdict.reset_s
        return 0.0

    def ban(self, application: bytes, client: bytes, now_s: float) -> float:
        """Ban a client that was over a limit. Returns for how many seconds."""
        found = self._of(application, client, now_s)
        again = found.ban_s and now_s < found.banned_until_s + BAN_MAX_S
        found.ban_s = min(BAN_MAX_S, 2 * found.ban_s) if again else BAN_S
        found.banned_until_s = now_s + found.ban_s
        self.bans += 1
        return found.ban_s

    def _of(self, application: bytes, client: bytes, now_s: float) -> _Client:
        found = self._clients.get((application, client))
        if found is None:
            if len(self._clients) >= _CLIENTS_MAX:
                self._clients = {key: kept for key, kept in self._clients.items() if not kept.is_idle(now_s)}
            found = self._clients[application, client] = _Client()
        return found
