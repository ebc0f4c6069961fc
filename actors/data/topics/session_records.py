"""The sessions of MQTT clients that outlive their connections, as they are stored.

Owns the record of a session and the index of its subscriptions, by which those of sleeping clients are found on the
disk: they take no memory. Does not own what waits for a session (`queues.py`), nor when one begins and ends
(`session_actor.py`).

The index is a tree of filters in the order of keys: the levels of a filter, then the client. Who is subscribed to a
topic is found by looking at each level for the same text, for `+` and for `#`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from hashlib import sha256
from typing import Final, NamedTuple

from trunkline.store import keys
from trunkline.store.codec import decode, encode
from trunkline.store.snapshot import Snapshot

FILTER_BYTES_MAX: Final = 400
"""A filter is a part of a key, and LMDB's keys have at most 511 bytes."""


SHARED: Final = "$share/"
"""What the filter of a shared subscription begins with; the name of the group and the filter follow."""


class Options(NamedTuple):
    """What a client asked for with a subscription. `id` is its identifier, 0 for none."""

    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    id: int = 0


class SessionRecord(NamedTuple):
    """A stored session.

    `id` is new with each session of a client. It ends `expiry_s` seconds after its connection; `away_ms` is when that
    was, None while the client is connected. `filters` are its subscriptions. Messages with numbers below `sent_below`
    may have been sent to the client already.
    """

    client_id: str
    id: bytes
    expiry_s: int
    away_ms: int | None
    filters: dict[str, Options]
    sent_below: int

    @property
    def ends_ms(self) -> int | None:
        """When it ends, if its client does not come back."""
        return None if self.away_ms is None else self.away_ms + 1000 * self.expiry_s

    def encoded(self) -> bytes:
        """The stored bytes."""
        filters = {filter: list(options) for filter, options in self.filters.items()}
        return encode([self.client_id, self.id, self.expiry_s, self.away_ms, filters, self.sent_below])


def decode_session(raw: bytes) -> SessionRecord:
    """The session of which `raw` are the stored bytes."""
    client_id, id, expiry_s, away_ms, filters, sent_below = decode(raw)
    options = {filter: Options(*each) for filter, each in filters.items()}
    return SessionRecord(client_id, id, expiry_s, away_ms, options, sent_below)


def index_key(application: bytes, filter: str, client: bytes) -> bytes:
    """The key of a subscription in the index."""
    return keys.filter_key(application, filter.split("/"), client)


def index_value(session: bytes, options: Options) -> bytes:
    """The value of a subscription in the index."""
    return encode([session, *options])


class Sleeper(NamedTuple):
    """A session that gets the messages of a topic, with the QoS and the identifiers of all its subscriptions to it."""

    client: bytes
    session: bytes
    qos: int
    ids: tuple[int, ...]
    no_local: bool
    retain_as_published: bool

    @property
    def is_group(self) -> bool:
        """Whether it is the queue of a shared subscription."""
        return self.client == self.session


def sleepers_of(snapshot: Snapshot, application: bytes, topic: str) -> tuple[Sleeper, ...]:
    """The sessions that get the messages of a topic, as far as they are stored, in the order of their clients."""
    found: dict[tuple[bytes, bytes], list[Options]] = {}
    for levels in _selecting(snapshot, application, topic):
        prefix = keys.filter_prefix(application, levels) + b"\x01"
        for key, raw in snapshot.range(keys.MESSAGES, prefix, keys.prefix_end(prefix)):
            if len(key) == len(prefix) + keys.ID_BYTES:
                session, *options = decode(bytes(raw))
                client = bytes(key[-keys.ID_BYTES :])
                found.setdefault((client, session), []).append(Options(*options))
    return tuple(
        Sleeper(
            client,
            session,
            max(each.qos for each in options),
            tuple(each.id for each in options if each.id),
            all(each.no_local for each in options),
            any(each.retain_as_published for each in options),
        )
        for (client, session), options in sorted(found.items(), key=lambda item: item[0])
    )


def _selecting(snapshot: Snapshot, application: bytes, topic: str) -> Iterator[list[str]]:
    """The levels of the filters of the index that select a topic."""
    levels = topic.split("/")
    nodes: list[list[str]] = [[]]
    for level in levels:
        following: list[list[str]] = []
        for node in nodes:
            for text in dict.fromkeys(("#", "+", level)):
                below = [*node, text]
                if not _has(snapshot, keys.filter_prefix(application, below)):
                    continue
                if text == "#":
                    yield below
                else:
                    following.append(below)
        nodes = following
        if not nodes:
            return
    for node in nodes:
        yield node
        rest = [*node, "#"]  # `a/#` also selects `a` itself
        if _has(snapshot, keys.filter_prefix(application, rest)):
            yield rest


def _has(snapshot: Snapshot, prefix: bytes) -> bool:
    """Whether there is a key with a prefix."""
    return next(snapshot.keys(keys.MESSAGES, prefix, keys.prefix_end(prefix)), None) is not None


def split_shared(filter: str) -> tuple[str, str]:
    """The name of the group and the filter of a shared subscription; the name of any other is empty."""
    if not filter.startswith(SHARED):
        return "", filter
    group, _, rest = filter[len(SHARED) :].partition("/")
    return group, rest


def group_id(filter: str) -> bytes | None:
    """What identifies a shared subscription within its application, by its whole filter; None for any other.

    It is the id of the queue in which messages wait while no member is connected, and of its entry in the index.
    """
    if not filter.startswith(SHARED):
        return None
    return sha256(filter.encode()).digest()[: keys.ID_BYTES]


def applications_of(snapshot: Snapshot, away: Collection[bytes] = ()) -> Iterator[bytes]:
    """The applications with keys in MESSAGES of the own store, except those that are `away`; one search for each.

    Where a search begins is no application, so nothing says which partition has it.
    """
    low: bytes | None = b""
    while (
        low is not None and (key := next(Snapshot.keys(snapshot, keys.MESSAGES, low, None), None)) is not None
    ):
        application = bytes(key[: keys.ID_BYTES])
        if application not in away:
            yield application
        low = keys.prefix_end(application)
