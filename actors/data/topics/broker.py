"""Who is subscribed to topics now: the connected MQTT clients of each application, in memory.

Owns the clients that are connected, their subscriptions, and which of them get a message. Does not own how a client is
sent a message, nor what it has not taken yet: that is its `Client`, a connection. Messages are given to clients after
the commit of their publication, in the order of commits.

A client gets a message once, however many of its subscriptions select the topic: with the highest QoS of them, and
with the identifiers of all. The members of a shared subscription take turns.

Who gets the messages of a topic is found by walking the tree of filters once, and kept until a subscription of the
application changes, as a busy topic has many messages between two changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from trunkline.actors.data.topics.publication import Publication

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System

_TOPICS_KEPT_MAX: Final = 4_096
"""Topics of an application for which it is kept who gets their messages."""
SHARED: Final = "$share/"
"""What the filter of a shared subscription begins with; the name of the group and the filter follow."""


class ClientEnd(Enum):
    """Why the broker ends a connection."""

    TAKEN_OVER = "another connection came with the same client id"
    GONE = "the application was deleted"


class Options(NamedTuple):
    """What a client asked for with a subscription. `id` is its identifier, 0 for none."""

    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    id: int = 0


class Client(Protocol):
    """A connected client, as the broker sees it. No call waits or raises."""

    key: bytes

    def deliver(self, publication: Publication, qos: int, ids: tuple[int, ...], *, retain: bool) -> None:
        """Send a message, or keep it until the client takes it, within the bounds of the client."""

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


class _Matched(NamedTuple):
    receivers: tuple[Receiver, ...]
    groups: tuple[_Group, ...]


class _Group:
    """The members of a shared subscription."""

    __slots__ = ("members",)

    def __init__(self) -> None:
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

    __slots__ = ("_kept", "_root", "clients")

    def __init__(self) -> None:
        self.clients: dict[bytes, Client] = {}
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
        members = node.groups.setdefault(group, _Group()).members if group else node.clients
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

    def matched(self, topic: str) -> _Matched:
        """Who gets the messages of a topic."""
        found = self._kept.get(topic)
        if found is None:
            if len(self._kept) >= _TOPICS_KEPT_MAX:
                self._kept.clear()
            found = self._kept[topic] = self._find(topic)
        return found

    def _find(self, topic: str) -> _Matched:
        options: dict[Client, list[Options]] = {}
        groups: list[_Group] = []
        for node in _matching(self._root, topic.split("/"), is_hidden=topic.startswith("$")):
            groups += node.groups.values()
            for client, each in node.clients.items():
                options.setdefault(client, []).append(each)
        return _Matched(tuple(_receiver(client, each) for client, each in options.items()), tuple(groups))


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


class Broker:
    """The component of the system. `delivered` counts messages that were given to clients."""

    def __init__(self, system: System) -> None:
        self.delivered = 0
        self._applications: dict[bytes, _Subscriptions] = {}
        system.forgotten.append(self._forget)

    def __len__(self) -> int:
        """The number of connected clients."""
        return sum(len(each.clients) for each in self._applications.values())

    def clients_of(self, application: bytes) -> Mapping[bytes, Client]:
        """The connected clients of an application, by their keys."""
        subscriptions = self._applications.get(application)
        return {} if subscriptions is None else subscriptions.clients

    def connect(self, application: bytes, client: Client) -> None:
        """A client is connected. One with the same key is ended."""
        subscriptions = self._applications.get(application)
        if subscriptions is None:
            subscriptions = self._applications[application] = _Subscriptions()
        older = subscriptions.clients.get(client.key)
        subscriptions.clients[client.key] = client
        if older is not None:
            older.end(ClientEnd.TAKEN_OVER)

    def disconnect(self, application: bytes, client: Client) -> None:
        """A client is not connected any more. It has unsubscribed already. Idempotent."""
        subscriptions = self._applications.get(application)
        if subscriptions is None or subscriptions.clients.get(client.key) is not client:
            return
        del subscriptions.clients[client.key]
        if not subscriptions.clients:
            del self._applications[application]

    def subscribe(self, application: bytes, client: Client, filter: str, options: Options) -> bool:
        """Subscribe a client, also to a shared subscription. False if it was subscribed before.

        The filter was checked, and the client is connected.
        """
        return self._applications[application].add(client, *split_shared(filter), options)

    def unsubscribe(self, application: bytes, client: Client, filter: str) -> bool:
        """Unsubscribe a client. False if it was not subscribed."""
        subscriptions = self._applications.get(application)
        return subscriptions is not None and subscriptions.remove(client, *split_shared(filter))

    def deliver(self, application: bytes, publication: Publication, *, retain: bool) -> None:
        """Give a message, which is stored, to all who are subscribed."""
        subscriptions = self._applications.get(application)
        if subscriptions is None:
            return
        receivers, groups = subscriptions.matched(publication.topic)
        publisher, most = publication.publisher, publication.qos
        for receiver in receivers:
            client, qos, ids, no_local, as_published = receiver
            if no_local and client.key == publisher:
                continue
            client.deliver(publication, min(qos, most), ids, retain=retain and as_published)
            self.delivered += 1
        for group in groups:
            chosen = group.next()
            if chosen is not None:
                chosen.client.deliver(
                    publication,
                    min(chosen.qos, most),
                    chosen.ids,
                    retain=retain and chosen.retain_as_published,
                )
                self.delivered += 1

    def _forget(self, application: bytes) -> None:
        """An application was deleted."""
        subscriptions = self._applications.pop(application, None)
        if subscriptions is not None:
            for client in list(subscriptions.clients.values()):
                client.end(ClientEnd.GONE)


def split_shared(filter: str) -> tuple[str, str]:
    """The name of the group and the filter of a shared subscription; the name of any other is empty."""
    if not filter.startswith(SHARED):
        return "", filter
    group, _, rest = filter[len(SHARED) :].partition("/")
    return group, rest
