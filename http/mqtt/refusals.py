"""How refusals are told to MQTT clients, the reason code of each error, and to people, in the list of clients."""

from __future__ import annotations

from typing import Final, NamedTuple

from trunkline.actors.core.values.errors import (
    Crashed,
    DomainError,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Overloaded,
    PayloadTooLarge,
    StorageFull,
    TooManyRequests,
    Unanswered,
    Unauthorized,
)
from trunkline.http.mqtt import packets

SHOWN_CHARS_MAX: Final = 300
"""A sentence that quotes a long value is kept so far."""


class Refusal(NamedTuple):
    """Why a message or a subscription was refused: a reason code of MQTT 5, a sentence, and when."""

    code: int
    message: str
    time_ms: int


_CODES: Final[tuple[tuple[type[DomainError], int], ...]] = (
    (PayloadTooLarge, packets.PACKET_TOO_LARGE),
    (Invalid, packets.PAYLOAD_FORMAT_INVALID),
    (Unauthorized, packets.BAD_USER_NAME_OR_PASSWORD),
    (Forbidden, packets.NOT_AUTHORIZED),
    (NotFound, packets.NOT_AUTHORIZED),
    (Gone, packets.NOT_AUTHORIZED),
    (TooManyRequests, packets.MESSAGE_RATE_TOO_HIGH),
    (Overloaded, packets.SERVER_BUSY),
    (Unanswered, packets.SERVER_BUSY),
    (StorageFull, packets.QUOTA_EXCEEDED),
    (Crashed, packets.UNSPECIFIED_ERROR),
)

_ACCEPTED: Final = frozenset(
    {
        packets.UNSPECIFIED_ERROR,
        packets.IMPLEMENTATION_SPECIFIC_ERROR,
        packets.NOT_AUTHORIZED,
        packets.TOPIC_NAME_INVALID,
        packets.PACKET_IDENTIFIER_IN_USE,
        packets.QUOTA_EXCEEDED,
        packets.PAYLOAD_FORMAT_INVALID,
    }
)
"""The codes of failures that a PUBACK and a PUBREC may have."""


def code_of(refusal: DomainError) -> int:
    """The reason code of an error."""
    return next((code for kind, code in _CODES if isinstance(refusal, kind)), packets.UNSPECIFIED_ERROR)


def ack_code_of(refusal: DomainError) -> int:
    """The reason code of an error in a PUBACK or PUBREC, which may not have all."""
    code = packets.QUOTA_EXCEEDED if isinstance(refusal, TooManyRequests) else code_of(refusal)
    return code if code in _ACCEPTED else packets.IMPLEMENTATION_SPECIFIC_ERROR


def may_succeed_later(refusal: DomainError) -> bool:
    """Whether the same message could be stored later: a client of 3.1.1 is then disconnected, and sends it again."""
    return isinstance(refusal, TooManyRequests | Overloaded | StorageFull | Crashed)
