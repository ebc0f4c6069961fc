"""Who is subscribed to topics: connected MQTT clients, in memory, and the sessions of others, in the store.

Owns the clients that are connected, their subscriptions, and which of them get a message. Does not own how a client is
sent a message, nor what it has not taken yet: that is its `Client`, a connection. Messages are given to clients after
the commit of their publication, in the order of commits.

A client gets a message once, however many of its subscriptions select the topic: with the highest QoS of them, and
with the identifiers of all. The members of a shared subscription take turns.

Who gets the messages of a topic is found by walking the tree of filters once, and kept until a subscription of the
application changes, as a busy topic has many messages between two changes. The module is long because clients, filters
and what was found are one state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import structlog

from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.moves import MOVED
from trunkline.actors.data.topics.publication import Publication
from trunkline.actors.data.topics.session_records import (
    SHARED,
    Options,
    Sleeper,
    group_id,
    sleepers_of,
    split_shared,
)
from trunkline.limits.log_lines import LogLines

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.actors.data.topics.queues import Queued

_APPLICATIONS_KEPT_MAX: Final = 1_024
"""Applications without connected clients for which it is kept who gets the messages of their topics."""
_TOPICS_KEPT_MAX: Final = 4_096
"""Topics of an application for which it is kept who gets their messages."""
_LINES_PER_MINUTE_MAX: Final = 60
"""Lines of the log of one kind: a message may cause each."""

_log = structlog.get_logger("trunkline.topics")


class ClientEnd(Enum):
    """Why the broker ends a connection."""

    TAKEN_OVER = "another connection came with the same client id"
    GONE = "the application was deleted"
    MOVED = MOVED


class Client(Protocol):
    """A connected client, as the broker sees it. No call waits or raises."""

    key: bytes
    session: bytes | None
    """Its session that outlives the connection; messages with QoS 1 and 2 for it wait in the store. None without."""

    def deliver(self, publication: Publication, qos: int, ids: tuple[int, ...], *, retain: bool) -> None:
        """Send a message, or keep it until the client takes it, within the bounds of the client."""

    def offer(self, queued: Queued, publication: Publication) -> None:
        """A message was stored for the session of the client, behind all that were offered before."""

    def take_shared(self) -> None:
        """Messages wait for a shared subscription of which the session of the client is a member."""

    def has_room(self) -> bool:
        """Whether the client takes what it is sent; the members of a shared subscription that do come first."""

    def end(self, why: ClientEnd) -> None:
        """End the connection. Its subscriptions are gone already."""


class Receiver(NamedTuple):
    """How one client gets a message of a topic."""

    client: Client
    qos: int
    ids: tuple[int, ...]
    no_local: bool
    retain_as_published: bool


class Route(NamedTuple):
    """Who of those that are known at its publication gets a message: connected members of shared subscriptions, and
    sessions in which it is stored first. `is_wanted`: anybody is subscribed to its topic."""

    members: list[Receiver]
    sleepers: list[Sleeper]
    is_wanted: bool


class _Matched(NamedTuple):
    """Who is subscribed to a topic: clients, groups, and sessions by the index in the store, once it was read."""

    receivers: tuple[Receiver, ...]
    groups: tuple[_Group, ...]
    sleepers: tuple[Sleeper, ...]


class _Group:
    """The connected members of a shared subscription. `id` is that of its queue."""

    __slots__ = ("id", "members")

    def __init__(self, id: bytes) -> None:
        self.id = id
        self.members: dict[Client, Options] = {}

    def next(self) -> Receiver | None:
        """Whose turn it is: the one that waits longest among those that have room, if any has."""
        if not self.members:
            return None
        client = next((each for each in self.members if each.has_room()), next(iter(self.members)))
        options = self.members.pop(client)
        self.members[client] = options
        return Receiver(
            client, options.qos, (options.id,) if options.id else (), False, options.retain_as_published
        )


class _Node:
    """A level of the tree of filters. `clients` are subscribed to the filter that ends here."""

    __slots__ = ("below", "clients", "groups")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.clients: dict[Client, Options] = {}
        self.groups: dict[str, _Group] = {}

    @property
    def is_empty(self) -> bool:
        return not (self.below or self.clients or self.groups)


class _Subscriptions:
    """The connected clients of one application, and the tree of their filters."""

    __slots__ = ("_kept", "_root", "clients", "groups")

    def __init__(self) -> None:
        self.clients: dict[bytes, Client] = {}
        self.groups: dict[bytes, _Group] = {}
        """The shared subscriptions with connected members, by the ids of their queues."""
        self._root = _Node()
        self._kept: dict[str, _Matched] = {}

    def add(self, client: Client, group: str, filter: str, options: Options) -> bool:
        """Subscribe a client. False if it was subscribed to this before: then only the options are new."""
        node = self._root
        for level in filter.split("/"):
            below = node.below.get(level)
            if below is None:
                below = node.below[level] = _Node()
            node = below
        members = node.clients
        if group:
            id = group_id(f"{SHARED}{group}/{filter}")
            assert id is not None
            shared = node.groups.setdefault(group, _Group(id))
            members, self.groups[id] = shared.members, shared
        is_new = client not in members
        members[client] = options
        self._kept.clear()
        return is_new

    def remove(self, client: Client, group: str, filter: str) -> bool:
        """Unsubscribe a client. False if it was not subscribed."""
        path = [self._root]
        levels = filter.split("/")
        for level in levels:
            below = path[-1].below.get(level)
            if below is None:
                return False
            path.append(below)
        node = path[-1]
        if group:
            shared = node.groups.get(group)
            found = shared is not None and shared.members.pop(client, None) is not None
            if shared is not None and not shared.members:
                del node.groups[group]
                del self.groups[shared.id]
        else:
            found = node.clients.pop(client, None) is not None
        for level in reversed(levels):
            node = path.pop()
            if not node.is_empty:
                break
            del path[-1].below[level]
        if found:
            self._kept.clear()
        return found

    def matched(self, topic: str, find: Callable[[str], tuple[Sleeper, ...]]) -> _Matched:
        """Who gets the messages of a topic; `find` finds sessions in the store."""
        found = self._kept.get(topic)
        if found is None:
            if len(self._kept) >= _TOPICS_KEPT_MAX:
                self._kept.clear()
            found = self._kept[topic] = self._find(topic, find(topic))
        return found

    def forget_matched(self) -> None:
        """The subscriptions in the store have changed."""
        self._kept.clear()

    def _find(self, topic: str, sleepers: tuple[Sleeper, ...]) -> _Matched:
        options: dict[Client, list[Options]] = {}
        groups: list[_Group] = []
        for node in _matching(self._root, topic.split("/"), is_hidden=topic.startswith("$")):
            groups += node.groups.values()
            for client, each in node.clients.items():
                options.setdefault(client, []).append(each)
        receivers = tuple(_receiver(client, each) for client, each in options.items())
        return _Matched(receivers, tuple(groups), sleepers)


def _matching(root: _Node, levels: list[str], *, is_hidden: bool) -> Iterator[_Node]:
    """The nodes of the filters that select a topic. One that `is_hidden` is selected by no leading wildcard."""
    nodes = [root]
    for depth, level in enumerate(levels):
        following: list[_Node] = []
        for node in nodes:
            below = node.below
            if depth or not is_hidden:
                if (rest := below.get("#")) is not None:
                    yield rest
                if (one := below.get("+")) is not None:
                    following.append(one)
            if (same := below.get(level)) is not None:
                following.append(same)
        nodes = following
        if not nodes:
            return
    for node in nodes:
        yield node
        # `a/#` also selects `a` itself.
        if (rest := node.below.get("#")) is not None:
            yield rest


def _receiver(client: Client, options: list[Options]) -> Receiver:
    """How a client gets a message that these of its subscriptions select."""
    return Receiver(
        client,
        max(each.qos for each in options),
        tuple(each.id for each in options if each.id),
        all(each.no_local for each in options),
        any(each.retain_as_published for each in options),
    )


class Broker(Moved):
    """The component of the system. `delivered` counts messages that were given to clients since the start."""

    def __init__(self, system: System) -> None:
        self.delivered = 0
        self.dropped = 0
        """Messages that were not queued for a session, as its queue was full."""
        self._system = system
        self._dropped_lines = LogLines(_LINES_PER_MINUTE_MAX)
        self._retained_lines = LogLines(_LINES_PER_MINUTE_MAX)
        self._applications: dict[bytes, _Subscriptions] = {}
        system.forgotten.append(self._forget)

    def __len__(self) -> int:
        """The number of connected clients."""
        return sum(len(each.clients) for each in self._applications.values())

    def clients_of(self, application: bytes) -> Mapping[bytes, Client]:
        """The connected clients of an application, by their keys, those that connected last at the end."""
        subscriptions = self._applications.get(application)
        return {} if subscriptions is None else subscriptions.clients

    def connect(self, application: bytes, client: Client) -> None:
        """A client is connected. One with the same key is ended."""
        subscriptions = self._applications.get(application)
        if subscriptions is None:
            subscriptions = self._applications[application] = _Subscriptions()
        older = subscriptions.clients.pop(client.key, None)
        subscriptions.clients[client.key] = client
        if older is not None:
            older.end(ClientEnd.TAKEN_OVER)

    def disconnect(self, application: bytes, client: Client) -> None:
        """A client is not connected any more. It has unsubscribed already. Idempotent."""
        subscriptions = self._applications.get(application)
        if subscriptions is None or subscriptions.clients.get(client.key) is not client:
            return
        del subscriptions.clients[client.key]

    def subscribe(self, application: bytes, client: Client, filter: str, options: Options) -> bool:
        """Subscribe a client, also to a shared subscription. False if it was subscribed before.

        The filter was checked, and the client is connected.
        """
        return self._applications[application].add(client, *split_shared(filter), options)

    def unsubscribe(self, application: bytes, client: Client, filter: str) -> bool:
        """Unsubscribe a client. False if it was not subscribed."""
        subscriptions = self._applications.get(application)
        return subscriptions is not None and subscriptions.remove(client, *split_shared(filter))

    def subscriptions_changed(self, application: bytes) -> None:
        """Subscriptions of sessions were stored or removed."""
        subscriptions = self._applications.get(application)
        if subscriptions is not None:
            subscriptions.forget_matched()

    def route(self, application: bytes, publication: Publication) -> Route:
        """Which sessions a message that is published now is stored for, and which members of shared subscriptions get
        it otherwise: they have had their turn then. All others are found when it is delivered."""
        subscriptions = self._of(application)
        receivers, groups, sleepers = subscriptions.matched(
            publication.topic, partial(self._sleepers, application)
        )
        publisher, is_kept = publication.publisher, publication.qos > 0
        members: list[Receiver] = []
        stored = [
            each
            for each in (sleepers if is_kept else ())
            if each.qos
            and not (each.no_local and each.client == publisher)
            and not (each.is_group and each.session in subscriptions.groups)
        ]
        for group in groups:
            member = group.next()
            if member is None:
                continue
            client = member.client
            if is_kept and member.qos and client.session is not None:
                stored.append(
                    Sleeper(
                        client.key, client.session, member.qos, member.ids, False, member.retain_as_published
                    )
                )
            else:
                members.append(member)
        return Route(members, stored, bool(receivers or groups or sleepers))

    def _of(self, application: bytes) -> _Subscriptions:
        subscriptions = self._applications.get(application)
        if subscriptions is None:
            if len(self._applications) >= _APPLICATIONS_KEPT_MAX:
                self._applications = {id: each for id, each in self._applications.items() if each.clients}
            subscriptions = self._applications[application] = _Subscriptions()
        return subscriptions

    def deliver(
        self,
        application: bytes,
        publication: Publication,
        members: Sequence[Receiver],
        queued: Sequence[Queued],
        *,
        retain: bool,
    ) -> None:
        """Give a message to clients, after its commit: so who subscribes before it gets the message itself, and who
        subscribes later finds it among the retained ones."""
        subscriptions = self._applications.get(application)
        if subscriptions is None:
            return
        receivers = subscriptions.matched(publication.topic, partial(self._sleepers, application)).receivers
        most, publisher = publication.qos, publication.publisher
        for client, qos, ids, no_local, as_published in (*receivers, *members):
            if no_local and client.key == publisher:
                continue
            if most and qos and client.session is not None:
                continue  # it gets it from its session
            client.deliver(publication, min(qos, most), ids, retain=retain and as_published)
            self.delivered += 1
        if queued:
            clients = self.clients_of(application)
            for each in queued:
                if each.client == each.session:
                    self._offer_to_group(application, each.session)
                    continue
                found = clients.get(each.client)
                if found is not None and found.session == each.session:
                    found.offer(each, publication)
                    self.delivered += 1

    def _offer_to_group(self, application: bytes, group: bytes) -> None:
        """A message waits for a group: a member that has connected since may take it."""
        found = self._applications[application].groups.get(group)
        for client in () if found is None else tuple(found.members):
            if client.session is not None:
                client.take_shared()
                return

    def note_dropped(self, application: bytes, number: int) -> None:
        """Count messages for which the queues of sessions had no room."""
        self.dropped += number
        self._warn(
            self._dropped_lines,
            "messages were dropped: the queues of MQTT sessions are full",
            application=application.hex(),
            sessions=number,
        )

    def note_not_retained(self, application: bytes, reason: str) -> None:
        """A message was delivered and not retained, of which its publisher could not be told."""
        self._warn(
            self._retained_lines, "a message was not retained", application=application.hex(), reason=reason
        )

    def _warn(self, lines: LogLines, what: str, **fields: Any) -> None:
        left_out = lines.take(self._system.clock.monotonic_s())
        if left_out is not None:
            _log.warning(what, **fields, **left_out)

    def _sleepers(self, application: bytes, topic: str) -> tuple[Sleeper, ...]:
        with self._system.store.snapshot() as snapshot:
            return sleepers_of(snapshot, application, topic)

    async def leave(self, application: bytes) -> None:
        """End the connections of the clients of an application."""
        for client in list(self.clients_of(application).values()):
            client.end(ClientEnd.MOVED)

    def _forget(self, application: bytes) -> None:
        """An application was deleted, or has left."""
        subscriptions = self._applications.pop(application, None)
        if subscriptions is not None:
            why = ClientEnd.MOVED if application in self._system.moves.away else ClientEnd.GONE
            for client in list(subscriptions.clients.values()):
                client.end(why)
