"""Retained messages: the last message of a topic that was published to be kept, for who subscribes later.

Owns how they are stored, how many an application may have, and how those of a filter are found. Does not own who gets
them. They live with their application, and are written by the turns of its publishers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.errors import Forbidden
from trunkline.actors.data.topics.filters import matches
from trunkline.actors.data.topics.publication import Publication
from trunkline.store import keys
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
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


def _with_pairs(properties: dict[str, Any]) -> dict[str, Any]:
    """CBOR has lists where user properties are pairs."""
    pairs = properties.get("user_property")
    if pairs is None:
        return properties
    return properties | {"user_property": [(name, value) for name, value in pairs]}


def stage_retained(actor: Actor, publication: Publication) -> None:
    """Keep a message as the last one of its topic; without a payload, keep none.

    Raises `Forbidden` if the application has as many retained messages, or as many bytes of them, as it may have.
    """
    application, limits = actor.ref.parent, actor.system.limits
    key, head_key = keys.retained_key(application, publication.topic), keys.retained_head_key(application)
    get = actor.system.journal.get
    before, head = get(keys.MESSAGES, key), get(keys.MESSAGES, head_key)
    number, size_bytes = (0, 0) if head is None else decode(head)
    if before is not None:
        number, size_bytes = number - 1, size_bytes - len(before)
    if publication.payload:
        raw = encoded(publication)
        number, size_bytes = number + 1, size_bytes + len(raw)
        _check_room(
            publication.topic, number, size_bytes, limits.retained_messages_max, limits.retained_bytes_max
        )
        actor.put(keys.MESSAGES, key, raw)
    elif before is None:
        return
    else:
        actor.delete(keys.MESSAGES, key)
    actor.put(keys.MESSAGES, head_key, encode([number, size_bytes]))


def _check_room(topic: str, number: int, size_bytes: int, number_max: int, bytes_max: int) -> None:
    for is_above, most in (
        (number > number_max, f"{number_max} retained messages"),
        (size_bytes > bytes_max, f"{bytes_max} bytes of retained messages"),
    ):
        if is_above:
            raise Forbidden(
                f"topic: {topic} cannot retain this message: an application may have {most}; "
                "publish empty messages with the flag retain to topics that need none any more."
            )


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
