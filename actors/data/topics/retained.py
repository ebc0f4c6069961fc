"""Retained messages: the last message of a topic that was published to be kept, for who subscribes later.

Owns how they are stored, how many an application may have, and how those of a filter are found. Does not own who gets
them. They live with their application, and are written by the turns of its publishers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.errors import StorageFull
from trunkline.actors.data.topics.expiry_search import ExpirySearch, Looks
from trunkline.actors.data.topics.filters import matches
from trunkline.actors.data.topics.publication import Publication
from trunkline.store import keys
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from trunkline.limits.table import Limits
    from trunkline.store.snapshot import Snapshot


def encoded(publication: Publication) -> bytes:
    """The stored bytes of a message."""
    return encode(
        [
            publication.topic,
            publication.payload,
            publication.qos,
            publication.expires_ms,
            dict(publication.properties),
        ]
    )


def decoded(raw: bytes) -> Publication:
    """The message of which `raw` are the stored bytes."""
    topic, payload, qos, expires_ms, properties = decode(raw)
    return Publication(topic, payload, qos, _with_pairs(properties), expires_ms)


def expires_ms_of(raw: bytes) -> int | None:
    """When the message of which `raw` are the stored bytes expires."""
    expires_ms: int | None = decode(raw)[3]
    return expires_ms


def _with_pairs(properties: dict[str, Any]) -> dict[str, Any]:
    """CBOR has lists where user properties are pairs."""
    pairs = properties.get("user_property")
    if pairs is None:
        return properties
    return properties | {"user_property": [(name, value) for name, value in pairs]}


class _Kept(NamedTuple):
    """How many retained messages an application has, and their bytes."""

    number: int
    size_bytes: int


def stage_retained(actor: Actor, publication: Publication) -> None:
    """Keep a message as the last one of its topic; without a payload, keep none. Where there is no room for it, expired
    ones are removed.

    Raises `StorageFull`, with nothing staged, if the application has as many retained messages, or as many bytes of
    them, as it may have.
    """
    application, limits = actor.ref.parent, actor.system.limits
    key, head_key = keys.retained_key(application, publication.topic), keys.retained_head_key(application)
    get = actor.system.journal.get
    before, head = get(keys.MESSAGES, key), get(keys.MESSAGES, head_key)
    kept = _Kept(0, 0) if head is None else _Kept(*decode(head))
    if before is not None:
        kept = _Kept(kept.number - 1, kept.size_bytes - len(before))
    if publication.payload:
        raw = encoded(publication)
        kept = _Kept(kept.number + 1, kept.size_bytes + len(raw))
        expired: set[bytes] = set()
        if _exceeded(kept, limits) is not None:
            kept, expired = _without_expired(actor, key, kept)
        most = _exceeded(kept, limits)
        if most is not None:
            raise StorageFull(
                f"topic: {publication.topic} cannot retain this message: an application may have {most}; "
                "publish empty messages with the flag retain to topics that need none any more."
            )
        for each in sorted(expired):
            actor.delete(keys.MESSAGES, each)
        actor.put(keys.MESSAGES, key, raw)
        prefix = keys.retained_prefix(application)
        actor.system.component(ExpirySearch).note(prefix, publication.expires_ms)
    elif before is None:
        return
    else:
        actor.delete(keys.MESSAGES, key)
    actor.put(keys.MESSAGES, head_key, encode([*kept]))


def _exceeded(kept: _Kept, limits: Limits) -> str | None:
    """What an application may have at most, if that is less than these."""
    if kept.number > limits.retained_messages_max:
        return f"{limits.retained_messages_max} retained messages"
    if kept.size_bytes > limits.retained_bytes_max:
        return f"{limits.retained_bytes_max} bytes of retained messages"
    return None


def _without_expired(actor: Actor, own_key: bytes, kept: _Kept) -> tuple[_Kept, set[bytes]]:
    """What is kept without expired messages, as far as they are needed to be below the limits, and their keys. The
    message of `own_key` is replaced in any case."""
    system, prefix = actor.system, keys.retained_prefix(actor.ref.parent)
    search, looks, now_ms = system.component(ExpirySearch), Looks(), system.clock.wall_ms()
    removed: set[bytes] = set()
    may_be_more = search.may_find(prefix, now_ms)
    if not may_be_more:
        return kept, removed
    with system.store.snapshot() as snapshot:
        messages = partial(_expiries, snapshot, keys.prefix_end(prefix))
        while may_be_more and _exceeded(kept, system.limits) is not None:
            found, may_be_more = search.find(prefix, messages, now_ms, looks)
            for key in found:
                if key == own_key or key in removed:
                    continue
                raw = system.journal.get(keys.MESSAGES, key)
                expires_ms = None if raw is None else expires_ms_of(raw)
                if raw is not None and expires_ms is not None and expires_ms <= now_ms:
                    kept = _Kept(kept.number - 1, kept.size_bytes - len(raw))
                    removed.add(key)
    return kept, removed


def _expiries(snapshot: Snapshot, high: bytes | None, low: bytes) -> Iterator[tuple[bytes, int, int | None]]:
    """The keys of retained messages, their bytes, and when they expire."""
    for key, raw in snapshot.range(keys.MESSAGES, low, high):
        yield bytes(key), len(raw), expires_ms_of(bytes(raw))


def retained_of(
    snapshot: Snapshot, application: bytes, filter: str, now_ms: int, after: bytes = b""
) -> Iterator[tuple[bytes, Publication]]:
    """The retained messages of the topics that a filter selects, in the order of topics, without expired ones.

    Each comes with its key; those `after` a key are the next ones. Reads the topics that begin as the filter does
    before its first wildcard.
    """
    found: Iterable[tuple[bytes, Any]]
    if "+" not in filter and "#" not in filter:
        key = keys.retained_key(application, filter)
        raw = snapshot.get(keys.MESSAGES, key)
        found = [] if raw is None or after >= key else [(key, raw)]
    else:
        low = keys.retained_prefix(application, _beginning(filter))
        found = snapshot.range(keys.MESSAGES, max(low, after + b"\x00"), keys.prefix_end(low))
    for key, raw in found:
        publication = decoded(bytes(raw))
        expires_ms = publication.expires_ms
        if matches(filter, publication.topic) and (expires_ms is None or now_ms < expires_ms):
            yield bytes(key), publication


def _beginning(filter: str) -> str:
    """What all topics begin with that a filter with wildcards selects."""
    levels = filter.split("/")
    fixed = next(at for at, level in enumerate(levels) if level in ("+", "#"))
    # `a/#` also selects `a` itself.
    return (
        "/".join(levels[:fixed]) if levels[fixed] == "#" else "".join(f"{each}/" for each in levels[:fixed])
    )
